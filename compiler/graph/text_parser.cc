// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "base/digest.h"
#include "base/status.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/text.h"
#include "compiler/ir/elements.h"
#include "compiler/ir/expr_parser.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

// Limit on the bytes of a constant, because the text may be untrusted.
constexpr int64_t kConstantBytesMax = int64_t{1} << 32;

using Bytes = std::vector<std::byte>;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Parses exactly bytes.size() bytes in hexadecimal; returns false if the text is anything else.
bool ReadHex(std::string_view text, Bytes* bytes) {
  if (text.size() != 2 * bytes->size()) return false;
  for (size_t i = 0; i < bytes->size(); ++i) {
    const int high = HexDigit(text[2 * i]), low = HexDigit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    (*bytes)[i] = static_cast<std::byte>(high * 16 + low);
  }
  return true;
}

class GraphParser {
 public:
  explicit GraphParser(ir::TokenStream tokens) : exprs_(std::move(tokens)), tokens_(exprs_.tokens()) {}

  absl::StatusOr<Graph> Run() {
    HONE_RETURN_IF_ERROR(tokens_.Expect("graph"));
    while (!tokens_.AtEnd()) {
      if (tokens_.Accept("size")) {
        HONE_RETURN_IF_ERROR(ParseOpenSize());
      } else if (tokens_.Accept("input")) {
        HONE_ASSIGN_OR_RETURN(const ValueId id, ParseDeclaration());
        graph_.inputs.push_back(id);
      } else if (tokens_.Accept("const")) {
        HONE_ASSIGN_OR_RETURN(const ValueId id, ParseDeclaration());
        HONE_RETURN_IF_ERROR(tokens_.Expect("="));
        if (tokens_.Accept("sizes")) {
          HONE_ASSIGN_OR_RETURN(graph_.values[id].elements, ParseSizes(graph_.values[id].type));
        } else {
          HONE_ASSIGN_OR_RETURN(graph_.values[id].data, ParseElements(graph_.values[id].type));
        }
      } else if (tokens_.Accept("output")) {
        HONE_ASSIGN_OR_RETURN(const ValueId id, ParseUse());
        HONE_RETURN_IF_ERROR(tokens_.Expect("as"));
        HONE_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectString("the name of the output"));
        graph_.outputs.push_back(id);
        graph_.output_names.push_back(std::move(name));
      } else {
        HONE_RETURN_IF_ERROR(ParseNode());
      }
    }
    return std::move(graph_);
  }

 private:
  absl::Status ParseOpenSize() {
    const ir::Token at = tokens_.Peek();
    HONE_ASSIGN_OR_RETURN(ir::OpenSize size, exprs_.ParseOpenSize());
    if (std::ranges::find(graph_.sizes, size.name, &ir::OpenSize::name) != graph_.sizes.end()) {
      return ir::TokenStream::ErrorAt(at, fmt::format("there are two sizes '{}'", size.name));
    }
    graph_.sizes.push_back(std::move(size));
    return absl::OkStatus();
  }

  // Elements that are arithmetic on sizes.
  absl::StatusOr<ElementExprs> ParseSizes(const TensorType& type) {
    const ir::Token at = tokens_.Peek();
    std::vector<ir::Expr> elements;
    HONE_RETURN_IF_ERROR(tokens_.Expect("["));
    while (!tokens_.Accept("]")) {
      if (!elements.empty()) HONE_RETURN_IF_ERROR(tokens_.Expect(","));
      HONE_ASSIGN_OR_RETURN(elements.emplace_back(), exprs_.ParseExpr());
      if (elements.back().type() != ir::Type{type.dtype, 1}) {
        return ir::TokenStream::ErrorAt(at, fmt::format("the sizes must have type {}", ir::Name(type.dtype)));
      }
    }
    if (type.elements() != ir::Size(elements.size())) {
      return ir::TokenStream::ErrorAt(at, fmt::format("{} sizes do not fit {}", elements.size(), Print(type)));
    }
    return std::make_shared<const std::vector<ir::Expr>>(std::move(elements));
  }

  absl::StatusOr<TensorType> ParseTensorType(std::string* name) {
    HONE_ASSIGN_OR_RETURN(const ir::Buffer declared, exprs_.ParseDeclaration(ir::Scope::kParam));
    *name = declared->name;
    return TensorType{declared->dtype, declared->shape};
  }

  absl::StatusOr<ValueId> ParseDeclaration() {
    const ir::Token at = tokens_.Peek();
    Value value;
    HONE_ASSIGN_OR_RETURN(value.type, ParseTensorType(&value.name));
    const ValueId id = static_cast<ValueId>(graph_.values.size());
    if (!ids_.emplace(value.name, id).second) {
      return ir::TokenStream::ErrorAt(at, fmt::format("there are two values '{}'", value.name));
    }
    graph_.values.push_back(std::move(value));
    return id;
  }

  absl::StatusOr<ValueId> ParseUse() {
    const ir::Token at = tokens_.Peek();
    HONE_ASSIGN_OR_RETURN(const std::string name, tokens_.ExpectName("a value"));
    const auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    return ir::TokenStream::ErrorAt(at, fmt::format("there is no value '{}' yet; declare it first", name));
  }

  // A constant of that element type in the IR's notation: 1.5f32, -3, true.
  absl::StatusOr<ir::Expr> ParseElement(ir::DType dtype) {
    const ir::Token at = tokens_.Peek();
    HONE_ASSIGN_OR_RETURN(ir::Expr element, exprs_.ParseExpr());
    const bool constant = element.As<ir::IntImm>() != nullptr || element.As<ir::FloatImm>() != nullptr;
    if (constant && element.type() == ir::Type{dtype, 1}) return element;
    return ir::TokenStream::ErrorAt(at, fmt::format("expected a constant of type {}", ir::Name(dtype)));
  }

  absl::StatusOr<TensorData> ParseElements(const TensorType& type) {
    const ir::Token at = tokens_.Peek();
    const size_t size = static_cast<size_t>(ir::SizeOf(type.dtype));
    if (!ir::IsFixed(type.shape)) return tokens_.Error("the shape of a constant must be numbers");
    if (type.elements().value() > kConstantBytesMax / ir::SizeOf(type.dtype)) {
      return tokens_.Error("the constant has more than 4 GiB");
    }
    Bytes bytes(static_cast<size_t>(ByteSize(type)));
    if (tokens_.Accept("splat")) {
      HONE_ASSIGN_OR_RETURN(const ir::Expr element, ParseElement(type.dtype));
      for (size_t i = 0; i < bytes.size(); i += size) ir::WriteElement(element, &bytes[i]);
    } else if (tokens_.Accept("hex")) {
      HONE_ASSIGN_OR_RETURN(const std::string text, tokens_.ExpectString("the bytes"));
      if (!ReadHex(text, &bytes)) {
        return ir::TokenStream::ErrorAt(at, fmt::format("expected {} bytes in hexadecimal", bytes.size()));
      }
    } else if (tokens_.Accept("omitted")) {
      HONE_ASSIGN_OR_RETURN(const std::string digest, tokens_.ExpectString("the digest"));
      Random random(std::stoull(Sha256Hex(digest).substr(0, 15), nullptr, 16));
      const bool floats = ir::IsFloat(type.dtype);
      ir::FillRandom(type.dtype, floats ? -1 : 0, 1, random, bytes);
    } else {
      HONE_RETURN_IF_ERROR(tokens_.Expect("["));
      for (size_t i = 0; i < bytes.size(); i += size) {
        if (i != 0) HONE_RETURN_IF_ERROR(tokens_.Expect(","));
        HONE_ASSIGN_OR_RETURN(const ir::Expr element, ParseElement(type.dtype));
        ir::WriteElement(element, &bytes[i]);
      }
      HONE_RETURN_IF_ERROR(tokens_.Expect("]"));
    }
    return std::make_shared<const Bytes>(std::move(bytes));
  }

  absl::Status ParseNode() {
    Node node{.name = {}, .op = {}, .domain = {}, .opset = kOwnOpset, .inputs = {}, .outputs = {}, .attributes = {}};
    do {
      const bool absent = tokens_.Accept("_");
      HONE_ASSIGN_OR_RETURN(const ValueId id, absent ? absl::StatusOr<ValueId>(kAbsent) : ParseDeclaration());
      node.outputs.push_back(id);
      if (!absent && node.name.empty()) node.name = graph_.values[id].name;
    } while (tokens_.Accept(","));
    HONE_RETURN_IF_ERROR(tokens_.Expect("="));
    HONE_ASSIGN_OR_RETURN(node.op, tokens_.ExpectName("an operator"));
    if (const size_t dot = node.op.rfind('.'); dot != std::string::npos) {
      node.domain = node.op.substr(0, dot);
      node.op.erase(0, dot + 1);
    }
    HONE_RETURN_IF_ERROR(tokens_.Expect("("));
    while (!tokens_.Accept(")")) {
      if (!node.inputs.empty()) HONE_RETURN_IF_ERROR(tokens_.Expect(","));
      HONE_ASSIGN_OR_RETURN(const ValueId id, tokens_.Accept("_") ? absl::StatusOr<ValueId>(kAbsent) : ParseUse());
      node.inputs.push_back(id);
    }
    if (tokens_.Accept("opset")) {
      HONE_ASSIGN_OR_RETURN(const int64_t opset, tokens_.ExpectInteger("the version of the operator set"));
      if (opset > std::numeric_limits<int>::max())
        return tokens_.Error(fmt::format("the version of the operator set is {}, which is out of range", opset));
      node.opset = static_cast<int>(opset);
    }
    HONE_RETURN_IF_ERROR(ParseAttributes(&node));
    graph_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status ParseAttributes(Node* node) {
    if (!tokens_.Accept("{")) return absl::OkStatus();
    do {
      HONE_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectName("an attribute"));
      HONE_RETURN_IF_ERROR(tokens_.Expect("="));
      HONE_ASSIGN_OR_RETURN(Attribute attribute, ParseAttribute());
      if (!node->attributes.emplace(name, std::move(attribute)).second) {
        return tokens_.Error(fmt::format("there are two attributes '{}'", name));
      }
    } while (tokens_.Accept(","));
    return tokens_.Expect("}");
  }

  absl::StatusOr<int64_t> ParseInt() {
    HONE_ASSIGN_OR_RETURN(const ir::Expr value, ParseElement(ir::DType::kInt64));
    return value.As<ir::IntImm>()->value;
  }
  absl::StatusOr<double> ParseFloat() {
    HONE_ASSIGN_OR_RETURN(const ir::Expr value, ParseElement(ir::DType::kFloat64));
    return value.As<ir::FloatImm>()->value;
  }

  template <typename T, typename Parse>
  absl::StatusOr<Attribute> ParseList(const Parse& parse) {
    std::vector<T> list;
    HONE_RETURN_IF_ERROR(tokens_.Expect("["));
    while (!tokens_.Accept("]")) {
      if (!list.empty()) HONE_RETURN_IF_ERROR(tokens_.Expect(","));
      HONE_ASSIGN_OR_RETURN(T element, parse());
      list.push_back(std::move(element));
    }
    return Attribute(std::move(list));
  }

  absl::StatusOr<Attribute> ParseAttribute() {
    if (tokens_.Peek().kind == ir::Token::Kind::kString) return Attribute(tokens_.Next().text);
    if (tokens_.Accept("ints")) return ParseList<int64_t>([&] { return ParseInt(); });
    if (tokens_.Accept("floats")) return ParseList<double>([&] { return ParseFloat(); });
    if (tokens_.Accept("strings")) {
      return ParseList<std::string>([&] { return tokens_.ExpectString("a string"); });
    }
    if (tokens_.Accept("graph")) {
      HONE_ASSIGN_OR_RETURN(const std::string text, tokens_.ExpectString("the text of a graph"));
      HONE_ASSIGN_OR_RETURN(Graph body, ParseGraph(text));
      return Attribute(std::make_shared<const Graph>(std::move(body)));
    }
    if (tokens_.Accept("tensor")) {
      Constant constant;
      std::string name;
      HONE_ASSIGN_OR_RETURN(constant.type, ParseTensorType(&name));
      HONE_RETURN_IF_ERROR(tokens_.Expect("="));
      HONE_ASSIGN_OR_RETURN(constant.data, ParseElements(constant.type));
      return Attribute(std::move(constant));
    }
    const ir::Token at = tokens_.Peek();
    HONE_ASSIGN_OR_RETURN(const ir::Expr value, exprs_.ParseExpr());
    const ir::IntImm* integer = value.As<ir::IntImm>();
    const ir::FloatImm* number = value.As<ir::FloatImm>();
    if (integer != nullptr && integer->type == ir::kIndexType) return Attribute(integer->value);
    if (number != nullptr && number->type.dtype == ir::DType::kFloat64) return Attribute(number->value);
    return ir::TokenStream::ErrorAt(
        at, "expected an attribute: 3, 0.5f64, a string, ints, floats, strings, tensor or graph");
  }

  ir::ExprParser exprs_;
  ir::TokenStream& tokens_;
  Graph graph_;
  std::map<std::string, ValueId, std::less<>> ids_;
};

}  // namespace

absl::StatusOr<Graph> ParseGraph(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(ir::TokenStream tokens, ir::TokenStream::Make(text));
  return GraphParser(std::move(tokens)).Run();
}

}  // namespace hone::graph
