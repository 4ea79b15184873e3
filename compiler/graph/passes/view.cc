#include "compiler/graph/passes/view.h"

#include <algorithm>
#include <cmath>

namespace hone::graph {
namespace {

template <typename T>
std::optional<double> Uniform(const Value& value) {
  const std::vector<T> elements = ReadConstant<T>(value);
  if (elements.empty()) return std::nullopt;
  const auto first = static_cast<double>(elements[0]);
  // By sign as well: -0 and 0 are equal, but adding the one is not adding the other.
  const auto same = [&](T e) {
    return e == elements[0] && std::signbit(static_cast<double>(e)) == std::signbit(first);
  };
  if (!std::all_of(elements.begin(), elements.end(), same)) return std::nullopt;
  return first;
}

}  // namespace

std::optional<double> UniformValue(const Value& value) {
  if (value.data == nullptr) return std::nullopt;
  switch (value.type.dtype) {
    case ir::DType::kFloat32:
      return Uniform<float>(value);
    case ir::DType::kFloat64:
      return Uniform<double>(value);
    case ir::DType::kInt64:
      return Uniform<int64_t>(value);
    case ir::DType::kInt32:
      return Uniform<int32_t>(value);
    default:
      return std::nullopt;
  }
}

const Node* View::Producer(ValueId id) const {
  if (id == kAbsent || id >= static_cast<ValueId>(producers_.size()) || producers_[id] < 0) return nullptr;
  return &graph_.nodes[producers_[id]];
}

const Node* View::Producer(ValueId id, std::string_view op) const {
  const Node* node = Producer(id);
  return node != nullptr && Is(*node, op) ? node : nullptr;
}

const std::vector<int>& View::ConsumersOf(ValueId id) const {
  static const std::vector<int> kNone;
  return id == kAbsent || id >= static_cast<ValueId>(consumers_.size()) ? kNone : consumers_[id];
}

const Node* View::OnlyConsumer(ValueId id) const {
  const std::vector<int>& consumers = ConsumersOf(id);
  if (consumers.size() != 1 || IsOutput(graph_, id)) return nullptr;
  return &graph_.nodes[consumers[0]];
}

bool View::IsNumber(ValueId id, double number) const {
  if (id == kAbsent) return false;
  const std::optional<double> value = UniformValue(graph_.values[id]);
  return value && std::fabs(*value - number) <= 1e-4 * std::fabs(number);
}

ValueId View::Other(const Node& node, ValueId id) {
  if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return kAbsent;
  if (node.inputs[0] == id) return node.inputs[1];
  return node.inputs[1] == id ? node.inputs[0] : kAbsent;
}

}  // namespace hone::graph
