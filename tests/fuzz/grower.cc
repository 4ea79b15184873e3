// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/grower.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/status.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/ir/elements.h"

namespace hone::fuzz {
namespace {

constexpr int64_t kElementsMax = 2048;
constexpr int64_t kStepsMax = 60'000;  // interpreter steps for one node
constexpr int64_t kRankMax = 6;
constexpr size_t kInputsMax = 5;
// Rounding errors grow with the values, so values are limited.
constexpr double kMagnitudeMax = 50;

bool IsBounded(const graph::Constant& value) {
  if (!ir::IsFloat(value.type.dtype)) return true;
  const auto size = static_cast<size_t>(ir::SizeOf(value.type.dtype));
  for (size_t at = 0; at < value.data->size(); at += size) {
    if (!(std::fabs(ir::ElementAsDouble(value.type.dtype, &(*value.data)[at])) <= kMagnitudeMax)) return false;
  }
  return true;
}

}  // namespace

int64_t Grower::Extent() {
  constexpr int64_t kExtents[] = {1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 19, 31, 33};
  return OneOf(kExtents);
}

Ints Grower::Shape(int64_t min_rank, int64_t max_rank) {
  while (true) {
    Ints shape(static_cast<size_t>(Between(min_rank, max_rank)));
    int64_t elements = 1;
    for (int64_t& extent : shape) elements *= extent = Extent();
    if (elements <= kElementsMax / 2) return shape;
  }
}

ValueId Grower::Pick(const std::function<bool(ValueId id)>& passes) {
  std::vector<ValueId> fitting;
  for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) {
    if (pickable_[static_cast<size_t>(id)] && passes(id)) fitting.push_back(id);
  }
  if (fitting.empty()) return graph::kAbsent;
  const auto count = static_cast<int64_t>(fitting.size());
  return fitting[static_cast<size_t>(std::max(Below(count), Below(count)))];
}

ValueId Grower::PickFloat(int64_t min_rank, int64_t max_rank) {
  return Pick(
      [&](ValueId id) { return ir::IsFloat(TypeOf(id).dtype) && RankOf(id) >= min_rank && RankOf(id) <= max_rank; });
}

ValueId Grower::PickExactFloat() {
  const ValueId id = Pick([&](ValueId v) { return ir::IsFloat(TypeOf(v).dtype) && IsExact(v); });
  return id != graph::kAbsent ? id : Operand(ir::DType::kFloat32, Shape(1, 4));
}

ValueId Grower::PickNumber() {
  return Pick([&](ValueId id) { return TypeOf(id).dtype != ir::DType::kBool; });
}

ValueId Grower::PickAny(int64_t min_rank) {
  return Pick([&](ValueId id) { return RankOf(id) >= min_rank; });
}

ValueId Grower::Add(std::string_view hint, const TensorType& type, graph::TensorData data, bool constant, bool exact) {
  const ValueId id = graph::AddValue(graph_, hint, type, constant ? data : nullptr);
  graph::AddValue(computed_, hint, type, std::move(data));
  exact_.push_back(exact);
  pickable_.push_back(true);
  return id;
}

ValueId Grower::Constant(ir::DType dtype, const Ints& shape, double low, double high) {
  const TensorType type{dtype, shape};
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(graph::ByteSize(type)));
  ir::FillRandom(dtype, low, high, random_, *bytes);
  return Add("c", type, std::move(bytes), true, true);
}

ValueId Grower::Input(ir::DType dtype, const Ints& shape) {
  const TensorType type{dtype, shape};
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(graph::ByteSize(type)));
  ir::FillRandom(dtype, ir::IsFloat(dtype) ? -1 : 0, 1, random_, *bytes);  // as hone-opt --interpret does
  const ValueId id = Add("x", type, std::move(bytes), false, true);
  graph_.inputs.push_back(id);
  return id;
}

ValueId Grower::Operand(ir::DType dtype, const Ints& shape) {
  const TensorType type{dtype, shape};
  if (OneIn(2)) {
    const ValueId same = Pick([&](ValueId id) { return TypeOf(id) == type; });
    if (same != graph::kAbsent) return same;
  }
  if (graph_.inputs.size() < kInputsMax && OneIn(2)) return Input(dtype, shape);
  if (OneIn(6)) {  // numbers that passes look for
    constexpr double kSpecial[] = {0, 1, 2};
    const double number = OneOf(kSpecial);
    return Constant(dtype, shape, number, number);
  }
  if (ir::IsFloat(dtype)) return Constant(dtype, shape, -1, 1);
  return Constant(dtype, shape, ir::IsSignedInt(dtype) ? -9 : 0, 9);
}

ValueId Grower::Partner(ir::DType dtype, const Ints& shape) {
  Ints partner = shape;
  if (!OneIn(3)) {
    for (int64_t& extent : partner) {
      if (OneIn(3)) extent = 1;
    }
    if (OneIn(2)) partner.erase(partner.begin(), partner.begin() + Between(0, static_cast<int64_t>(partner.size())));
  }
  for (int64_t& extent : partner) {
    if (extent == 1 && OneIn(6)) extent = Extent();  // then the other operand is broadcast
  }
  return Operand(dtype, partner);
}

ValueId Grower::Numbers(const Ints& numbers) {
  auto bytes = std::make_shared<std::vector<std::byte>>(numbers.size() * sizeof(int64_t));
  for (size_t i = 0; i < numbers.size(); ++i) {
    ir::WriteElement(ir::MakeConst({ir::DType::kInt64, 1}, static_cast<double>(numbers[i])),
                     &(*bytes)[i * sizeof(int64_t)]);
  }
  const ValueId id =
      Add("n", {ir::DType::kInt64, {static_cast<int64_t>(numbers.size())}}, std::move(bytes), true, true);
  pickable_.back() = false;
  return id;
}

bool Grower::ExactInputs(const graph::Node& node) const {
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return id == graph::kAbsent || IsExact(id); });
}

bool Grower::Acceptable(const graph::Node& node, Effect effect, const std::vector<TensorType>& types) const {
  bool jumps = effect == Effect::kJumps;
  for (const TensorType& type : types) {
    if (type.elements() == 0 || type.elements().value() > kElementsMax) return false;
    if (static_cast<int64_t>(type.shape.size()) > kRankMax) return false;
    jumps |= !ir::IsFloat(type.dtype);
  }
  return !jumps || ExactInputs(node);
}

std::vector<ValueId> Grower::Refused(const absl::Status& why) {
  const bool expected = absl::IsInvalidArgument(why) || absl::IsUnimplemented(why) || absl::IsResourceExhausted(why);
  if (!expected) fault_ = why;
  return {};
}

std::vector<ValueId> Grower::Grow(std::string_view op, std::vector<ValueId> inputs, Effect effect,
                                  Attributes attributes, size_t outputs, std::string_view domain) {
  graph::Node node{.op = std::string(op),
                   .domain = std::string(domain),
                   .opset = graph::kOwnOpset,
                   .inputs = std::move(inputs),
                   .outputs = std::vector<ValueId>(outputs, graph::kNewValue),
                   .attributes = std::move(attributes)};
  const auto types = graph::InferTypes(graph_, node);
  if (!types.ok()) return Refused(types.status());
  if (!Acceptable(node, effect, *types)) return {};
  // All inputs are known here, so the operator may refuse their values too.
  const auto values = graph::Evaluate(computed_, node, kStepsMax);
  if (!values.ok()) return Refused(values.status());
  if (!std::all_of(values->begin(), values->end(), IsBounded)) return {};
  const bool exact = ExactInputs(node);
  const auto ids = graph::AddNode(graph_, std::move(node));
  if (!ids.ok()) {
    fault_ = ids.status();
    return {};
  }
  for (const graph::Constant& value : *values) {
    graph::AddValue(computed_, "y", value.type, value.data);
    exact_.push_back(!ir::IsFloat(value.type.dtype) || (exact && effect != Effect::kRounds));
    pickable_.push_back(true);
  }
  return *ids;
}

ValueId Grower::GrowOne(std::string_view op, std::vector<ValueId> inputs, Effect effect, Attributes attributes,
                        std::string_view domain) {
  const std::vector<ValueId> outputs = Grow(op, std::move(inputs), effect, std::move(attributes), 1, domain);
  return outputs.empty() ? graph::kAbsent : outputs[0];
}

graph::Graph Grower::Finish() {
  const std::vector<std::vector<int>> consumers = graph::Consumers(graph_);
  for (const graph::Node& node : graph_.nodes) {
    for (const ValueId id : node.outputs) {
      if (!consumers[static_cast<size_t>(id)].empty() && !OneIn(8)) continue;
      graph_.outputs.push_back(id);
      graph_.output_names.push_back(graph_.values[static_cast<size_t>(id)].name);
    }
  }
  graph::Tidy(graph_);
  return graph_;
}

}  // namespace hone::fuzz
