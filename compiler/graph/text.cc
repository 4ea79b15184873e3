// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/text.h"

#include <cstring>
#include <map>
#include <span>

#include "base/digest.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/ir/elements.h"
#include "compiler/ir/match.h"
#include "compiler/ir/printer.h"

namespace hone::graph {
namespace {

constexpr int64_t kInlineElements = 16;

std::string Hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte b : bytes) {
    text += kDigits[static_cast<unsigned>(b) >> 4];
    text += kDigits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

class GraphPrinter {
 public:
  GraphPrinter(const Graph& graph, bool brief) : graph_(graph), brief_(brief), buffers_(graph.values.size()) {
    out_.WriteBufferName(absent_);  // reserves "_"; a value of that name gets another one
    out_.Take();
  }

  std::string Run() {
    out_.Write("graph\n");
    for (const ir::OpenSize& size : graph_.sizes) out_.WriteOpenSize(size);
    for (const ValueId id : graph_.inputs) {
      out_.Write("input ");
      WriteDeclaration(id);
      out_.Write("\n");
    }
    for (const Node& node : graph_.nodes) WriteNode(node);
    for (const ValueId id : graph_.outputs) WriteIfConstant(id);
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      out_.Write("output ");
      WriteValue(graph_.outputs[i]);
      out_.Write(" as ");
      out_.WriteString(graph_.output_names[i]);
      out_.Write("\n");
    }
    return out_.Take();
  }

 private:
  const ir::Buffer& BufferOf(ValueId id) {
    if (id == kAbsent) return absent_;
    const Value& value = graph_.values[id];
    if (buffers_[id] == nullptr) buffers_[id] = ir::MakeBuffer(value.name, value.type.dtype, value.type.shape);
    return buffers_[id];
  }

  void WriteValue(ValueId id) { out_.WriteBufferName(BufferOf(id)); }
  void WriteDeclaration(ValueId id) {
    if (id == kAbsent) return WriteValue(id);
    out_.WriteDeclaration(BufferOf(id));
  }

  template <typename T, typename Write>
  void WriteList(const std::vector<T>& list, const Write& write) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i != 0) out_.Write(", ");
      write(list[i]);
    }
  }

  // Writes constants, and values that are known but for open sizes, before their first reader.
  void WriteIfConstant(ValueId id) {
    if (id == kAbsent || buffers_[id] != nullptr) return;
    const Value& value = graph_.values[id];
    if (value.data == nullptr && value.elements == nullptr) return;
    out_.Write("const ");
    WriteDeclaration(id);
    out_.Write(" = ");
    if (value.data != nullptr) {
      WriteElements({value.type, value.data});
    } else {
      out_.Write("sizes [");
      WriteList(*value.elements, [&](const ir::Expr& element) { out_.Write(element); });
      out_.Write("]");
    }
    out_.Write("\n");
  }

  void WriteElements(const Constant& constant) {
    const std::span<const std::byte> bytes = *constant.data;
    const size_t size = static_cast<size_t>(ir::SizeOf(constant.type.dtype));
    bool spelled = true,
         equal = true;  // spelled: every element's text parses back to its bytes; equal: all elements are equal
    for (size_t at = 0; at < bytes.size(); at += size) {
      std::byte back[8] = {};
      ir::WriteElement(ir::ReadElement(constant.type.dtype, &bytes[at]), back);
      spelled = spelled && std::memcmp(back, &bytes[at], size) == 0;
      equal = equal && std::memcmp(bytes.data(), &bytes[at], size) == 0;
    }
    const auto element = [&](size_t i) { out_.Write(ir::ReadElement(constant.type.dtype, &bytes[i * size])); };
    const size_t count = bytes.size() / size;
    if (spelled && count <= kInlineElements) {
      out_.Write("[");
      for (size_t i = 0; i < count; ++i) {
        if (i != 0) out_.Write(", ");
        element(i);
      }
      out_.Write("]");
    } else if (spelled && equal) {
      out_.Write("splat ");
      element(0);
    } else if (brief_) {
      const auto* text = reinterpret_cast<const char*>(bytes.data());
      out_.Write("omitted ");
      out_.WriteString(Sha256Hex({text, bytes.size()}).substr(0, 12));
    } else {
      out_.Write("hex ");
      out_.WriteString(Hex(bytes));
    }
  }

  void WriteNode(const Node& node) {
    for (const ValueId id : node.inputs) WriteIfConstant(id);
    WriteList(node.outputs, [&](ValueId id) { WriteDeclaration(id); });
    out_.Write(" = ");
    out_.WriteName(node.domain.empty() ? node.op : node.domain + "." + node.op);
    out_.Write("(");
    WriteList(node.inputs, [&](ValueId id) { WriteValue(id); });
    out_.Write(")");
    if (node.opset != kOwnOpset) {
      out_.Write(" opset ");
      out_.WriteNumber(node.opset);
    }
    if (!node.attributes.empty()) WriteAttributes(node);
    out_.Write("\n");
  }

  void WriteAttributes(const Node& node) {
    out_.Write(" {");
    bool first = true;
    for (const auto& [name, attribute] : node.attributes) {
      if (!first) out_.Write(", ");
      first = false;
      out_.WriteName(name);
      out_.Write(" = ");
      WriteAttribute(attribute);
    }
    out_.Write("}");
  }

  void WriteFloat(double value) { out_.Write(ir::MakeFloat({ir::DType::kFloat64, 1}, value)); }

  void WriteAttribute(const Attribute& attribute) {
    std::visit(ir::Overload{
                   [&](int64_t value) { out_.WriteNumber(value); },
                   [&](double value) { WriteFloat(value); },
                   [&](const std::string& text) { out_.WriteString(text); },
                   [&](const std::vector<int64_t>& list) {
                     out_.Write("ints [");
                     WriteList(list, [&](int64_t value) { out_.WriteNumber(value); });
                     out_.Write("]");
                   },
                   [&](const std::vector<double>& list) {
                     out_.Write("floats [");
                     WriteList(list, [&](double value) { WriteFloat(value); });
                     out_.Write("]");
                   },
                   [&](const std::vector<std::string>& list) {
                     out_.Write("strings [");
                     WriteList(list, [&](const std::string& text) { out_.WriteString(text); });
                     out_.Write("]");
                   },
                   [&](const Constant& constant) {
                     out_.Write("tensor ");
                     out_.WriteDeclaration(ir::MakeBuffer("value", constant.type.dtype, constant.type.shape));
                     out_.Write(" = ");
                     WriteElements(constant);
                   },
                   [&](const std::shared_ptr<const Graph>& body) {
                     out_.Write("graph ");
                     out_.WriteString(GraphPrinter(*body, brief_).Run());
                   },
               },
               attribute);
  }

  const Graph& graph_;
  const bool brief_;
  const ir::Buffer absent_ = ir::MakeBuffer("_", ir::DType::kBool, {});
  std::vector<ir::Buffer> buffers_;  // per value; null until the value is written
  ir::Printer out_;
};

}  // namespace

std::string Print(const Graph& graph) { return GraphPrinter(graph, false).Run(); }
std::string PrintBrief(const Graph& graph) { return GraphPrinter(graph, true).Run(); }

}  // namespace hone::graph
