// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/passes/view.h"

#include <cmath>
#include <cstring>

#include "compiler/ir/elements.h"

namespace hone::graph {

std::optional<double> UniformValue(const Value& value) {
  if (value.data == nullptr || value.data->empty()) return std::nullopt;
  const std::byte* bytes = value.data->data();
  const size_t size = static_cast<size_t>(ir::SizeOf(value.type.dtype));
  // Compares each element with the next one by bits: -0 differs from 0, because adding them differs.
  if (std::memcmp(bytes, bytes + size, value.data->size() - size) != 0) return std::nullopt;
  const double number = ir::ElementAsDouble(value.type.dtype, bytes);
  return std::isnan(number) ? std::nullopt : std::optional(number);
}

const Node* UseDefView::Producer(ValueId id) const {
  if (id == kAbsent || id >= static_cast<ValueId>(producers_.size()) || producers_[id] < 0) return nullptr;
  return &graph_.nodes[producers_[id]];
}

const Node* UseDefView::Producer(ValueId id, std::string_view op) const {
  const Node* node = Producer(id);
  return node != nullptr && Is(*node, op) ? node : nullptr;
}

const std::vector<int>& UseDefView::ConsumersOf(ValueId id) const {
  static const std::vector<int> kNone;
  return id == kAbsent || id >= static_cast<ValueId>(consumers_.size()) ? kNone : consumers_[id];
}

const Node* UseDefView::OnlyConsumer(ValueId id) const {
  const std::vector<int>& consumers = ConsumersOf(id);
  if (consumers.size() != 1 || IsOutput(graph_, id)) return nullptr;
  return &graph_.nodes[consumers[0]];
}

bool UseDefView::IsNumber(ValueId id, double number) const {
  if (id == kAbsent) return false;
  const std::optional<double> value = UniformValue(graph_.values[id]);
  return value && std::fabs(*value - number) <= 1e-4 * std::fabs(number);
}

ValueId UseDefView::Other(const Node& node, ValueId id) {
  if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return kAbsent;
  if (node.inputs[0] == id) return node.inputs[1];
  return node.inputs[1] == id ? node.inputs[0] : kAbsent;
}

}  // namespace hone::graph
