// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/verify.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "compiler/graph/emit.h"
#include "compiler/ir/match.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

class GraphVerifier {
 public:
  explicit GraphVerifier(const Graph& graph) : graph_(graph), defined_(graph.values.size(), false) {}

  absl::Status Run() {
    for (size_t id = 0; id < graph_.values.size(); ++id) {
      const Value& value = graph_.values[id];
      HONE_RETURN_IF_ERROR(CheckSymbols(value));
      if (value.data == nullptr && value.elements == nullptr) continue;
      if (value.data == nullptr) {
        HONE_RETURN_IF_ERROR(CheckElements(value));
        defined_[id] = true;
        continue;
      }
      if (!ir::IsFixed(value.type.shape)) {
        return Illegal("constant '{}' is {}, but the shape of a constant must be numbers", value.name,
                       Print(value.type));
      }
      if (static_cast<int64_t>(value.data->size()) != ByteSize(value.type)) {
        return Illegal("constant '{}' has {} bytes, but its type {} has {}", value.name, value.data->size(),
                       Print(value.type), ByteSize(value.type));
      }
      defined_[id] = true;
    }
    for (const ValueId id : graph_.inputs) HONE_RETURN_IF_ERROR(Define(id, "the graph's inputs"));
    for (const Node& node : graph_.nodes) HONE_RETURN_IF_ERROR(CheckNode(node));
    for (const ValueId id : graph_.outputs) HONE_RETURN_IF_ERROR(CheckUse(id, "the graph's outputs"));
    if (graph_.output_names.size() == graph_.outputs.size()) return absl::OkStatus();
    return Illegal("there are {} outputs and {} names for them", graph_.outputs.size(), graph_.output_names.size());
  }

 private:
  template <typename... Args>
  static absl::Status Illegal(fmt::format_string<Args...> format, Args&&... args) {
    return absl::InvalidArgumentError(fmt::format(format, std::forward<Args>(args)...));
  }

  // Checks that the graph declares all open sizes of the value's shape, with their ranges.
  absl::Status CheckSymbols(const Value& value) const {
    absl::Status status;
    for (const ir::Size& extent : value.type.shape) {
      extent.ForEachSymbol([&](const ir::OpenSize& symbol) {
        if (std::ranges::find(graph_.sizes, symbol) != graph_.sizes.end()) return;
        status = Illegal("value '{}' has the size '{}' in its shape, which is not declared", value.name, symbol.name);
      });
    }
    return status;
  }

  absl::Status CheckElements(const Value& value) const {
    if (value.type.elements() != ir::Size(value.elements->size())) {
      return Illegal("value '{}' has {} expressions for elements, but its type is {}", value.name,
                     value.elements->size(), Print(value.type));
    }
    bool legal = true;
    for (const ir::Expr& element : *value.elements) {
      legal = legal && element.type() == ir::Type{value.type.dtype, 1};
      ir::ForEachExpr(element, [&](const ir::Expr& e) {
        const auto* var = e.As<ir::Var>();
        legal = legal && e.As<ir::Load>() == nullptr;
        legal = legal && (var == nullptr ||
                          std::ranges::find(graph_.sizes, var->name, &ir::OpenSize::name) != graph_.sizes.end());
      });
    }
    if (legal) return absl::OkStatus();
    return Illegal("an element of value '{}' is no arithmetic on the graph's sizes of type {}", value.name,
                   ir::Name(value.type.dtype));
  }

  absl::Status CheckKnown(ValueId id, const std::string& where) const {
    if (id >= 0 && id < static_cast<ValueId>(graph_.values.size())) return absl::OkStatus();
    return Illegal("{}: there is no value {}", where, id);
  }

  absl::Status CheckUse(ValueId id, const std::string& where) const {
    HONE_RETURN_IF_ERROR(CheckKnown(id, where));
    if (defined_[id]) return absl::OkStatus();
    return Illegal("{}: value '{}' is used before it is defined", where, graph_.values[id].name);
  }

  absl::Status Define(ValueId id, const std::string& where) {
    HONE_RETURN_IF_ERROR(CheckKnown(id, where));
    if (defined_[id]) return Illegal("{}: value '{}' is defined twice", where, graph_.values[id].name);
    defined_[id] = true;
    return absl::OkStatus();
  }

  absl::Status CheckNode(const Node& node) {
    const std::string where = fmt::format("node '{}' ({})", node.name, node.op);
    if (!graph_.origins.empty() && node.origins.empty()) return Illegal("{}: it has no origin in the file", where);
    for (const int origin : node.origins) {
      if (origin < 0 || static_cast<size_t>(origin) >= graph_.origins.size()) {
        return Illegal("{}: there is no origin {}", where, origin);
      }
    }
    for (const ValueId id : node.inputs) {
      if (id != kAbsent) HONE_RETURN_IF_ERROR(CheckUse(id, where));
    }
    for (const ValueId id : node.outputs) {
      if (id != kAbsent) HONE_RETURN_IF_ERROR(Define(id, where));
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferTypes(graph_, node));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kAbsent) continue;
      const Value& value = graph_.values[node.outputs[i]];
      if (value.type == types[i]) continue;
      return Illegal("{}: output '{}' is {}, but the operator makes {}", where, value.name, Print(value.type),
                     Print(types[i]));
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  std::vector<bool> defined_;  // per value
};

}  // namespace

absl::Status Verify(const Graph& graph) { return GraphVerifier(graph).Run(); }

}  // namespace hone::graph
