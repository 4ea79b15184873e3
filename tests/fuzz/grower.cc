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
#include "fmt/format.h"

namespace hone::fuzz {
namespace {

constexpr int64_t kElementsMax = 2048;
constexpr int64_t kStepsMax = 60'000;  // interpreter steps for one node, at each of the sizes
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

Grower::Grower(uint64_t seed, bool open) : random_(seed) {
  computed_.resize(open ? 3 : 1);
  if (open) DrawSizes();
}

void Grower::DrawSizes() {
  constexpr int64_t kPrimes[] = {7, 11, 13, 17, 19};
  constexpr int64_t kLeast[] = {0, 1, 1, 1, 2, 3, 5};
  constexpr std::string_view kNames[] = {"n", "m", "k"};
  const auto count = static_cast<size_t>(OneIn(3) ? Between(2, 3) : 1);
  while (examples_.size() < count) {
    const int64_t example = OneOf(kPrimes);
    if (std::ranges::count(examples_, example) > 0) continue;
    const std::string name(kNames[examples_.size()]);
    const ir::OpenSize size{name, OneOf(kLeast), example + Below(12)};
    graph_.sizes.push_back(size);
    examples_.push_back(example);
    const int64_t numbers[] = {example, size.min, size.max};
    for (size_t c = 0; c < computed_.size(); ++c) computed_[c].sizes[name] = numbers[c];
  }
}

ir::Size Grower::AsSize(int64_t number) const {
  ir::Size size = 1;
  for (size_t i = 0; i < examples_.size(); ++i) {
    for (; number != 0 && number % examples_[i] == 0; number /= examples_[i]) {
      size *= ir::Size::Open(graph_.sizes[i]);
    }
  }
  return size * ir::Size(number);
}

ir::Shape Grower::AsShape(const Ints& shape) const {
  ir::Shape sizes;
  for (const int64_t extent : shape) sizes.push_back(AsSize(extent));
  return sizes;
}

TensorType Grower::At(const TensorType& type, const Computed& computed) {
  TensorType fixed{type.dtype, {}};
  for (const ir::Size& extent : type.shape) fixed.shape.push_back(extent.Substitute(computed.sizes));
  return fixed;
}

Ints Grower::LeastShapeOf(ValueId id) const {
  Ints least;
  for (const ir::Size& extent : graph_.values[static_cast<size_t>(id)].type.shape) least.push_back(extent.min());
  return least;
}

int64_t Grower::Extent() {
  constexpr int64_t kExtents[] = {1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 19, 31, 33};
  if (!examples_.empty() && OneIn(3)) return OneOf(std::span<const int64_t>(examples_));
  while (true) {
    const int64_t extent = OneOf(kExtents);
    if (AsSize(extent).IsFixed()) return extent;
  }
}

Ints Grower::Shape(int64_t min_rank, int64_t max_rank) {
  while (true) {
    Ints shape(static_cast<size_t>(Between(min_rank, max_rank)));
    for (int64_t& extent : shape) extent = Extent();
    if (ir::Product(AsShape(shape)).max() <= kElementsMax / 2) return shape;
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

ValueId Grower::Add(std::string_view hint, const TensorType& type, graph::TensorData data) {
  const ValueId id = graph::AddValue(graph_, hint, type, data);
  for (Computed& computed : computed_) graph::AddValue(computed.graph, hint, type, data);
  exact_.push_back(true);
  pickable_.push_back(true);
  return id;
}

ValueId Grower::AddInput(const TensorType& type) {
  const ValueId id = graph::AddValue(graph_, "x", type);
  for (Computed& computed : computed_) {
    const TensorType fixed = At(type, computed);
    auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(graph::ByteSize(fixed)));
    // As hone-opt --interpret does.
    ir::FillRandom(type.dtype, ir::IsFloat(type.dtype) ? -1 : 0, 1, random_, *bytes);
    graph::AddValue(computed.graph, "x", fixed, std::move(bytes));
  }
  exact_.push_back(true);
  pickable_.push_back(true);
  graph_.inputs.push_back(id);
  return id;
}

// A constant of an open shape is one of a fixed shape, repeated along the open dimensions.
ValueId Grower::Constant(ir::DType dtype, const Ints& shape, double low, double high) {
  Ints fixed = shape;
  for (int64_t& extent : fixed) extent = AsSize(extent).IsFixed() ? extent : 1;
  const TensorType type{dtype, fixed};
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(graph::ByteSize(type)));
  ir::FillRandom(dtype, low, high, random_, *bytes);
  const ValueId id = Add("c", type, std::move(bytes));
  return fixed == shape ? id : GrowOne("Expand", {id, Numbers(shape)}, Effect::kMoves);
}

ValueId Grower::Input(ir::DType dtype, const Ints& shape) { return AddInput({dtype, AsShape(shape)}); }

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

// A number now and then stays one although it could stand for an open size.
ValueId Grower::Numbers(const Ints& numbers) {
  ir::Shape sizes = examples_.empty() || OneIn(8) ? ir::Shape(numbers) : AsShape(numbers);
  const ValueId id = graph::AddSizes(graph_, "n", sizes);
  for (Computed& computed : computed_) {
    graph::AddInts(computed.graph, "n", ir::Values(At({ir::DType::kInt64, sizes}, computed).shape));
  }
  exact_.push_back(true);
  pickable_.push_back(false);
  return id;
}

bool Grower::ExactInputs(const graph::Node& node) const {
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return id == graph::kAbsent || IsExact(id); });
}

bool Grower::Acceptable(const graph::Node& node, Effect effect, const std::vector<TensorType>& types) const {
  bool jumps = effect == Effect::kJumps;
  for (const TensorType& type : types) {
    if (type.elements() == 0 || type.elements().max() > kElementsMax) return false;
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
  std::vector<std::vector<graph::Constant>> results;
  for (const Computed& computed : computed_) {
    auto values = graph::Evaluate(computed.graph, node, kStepsMax);
    if (!values.ok()) return Refused(values.status());
    if (!HaveTypes(*values, *types, computed) || !std::ranges::all_of(*values, IsBounded)) return {};
    results.push_back(*std::move(values));
  }
  const bool exact = ExactInputs(node);
  const auto ids = graph::AddNode(graph_, std::move(node));
  if (!ids.ok()) {
    fault_ = ids.status();
    return {};
  }
  for (size_t i = 0; i < types->size(); ++i) {
    for (size_t c = 0; c < computed_.size(); ++c) {
      graph::AddValue(computed_[c].graph, "y", results[c][i].type, results[c][i].data);
    }
    exact_.push_back(!ir::IsFloat((*types)[i].dtype) || (exact && effect != Effect::kRounds));
    pickable_.push_back(true);
  }
  return *ids;
}

bool Grower::HaveTypes(const std::vector<graph::Constant>& values, const std::vector<TensorType>& types,
                       const Computed& computed) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].type == At(types[i], computed)) continue;
    std::string sizes;
    for (const auto& [name, value] : computed.sizes) sizes += fmt::format(" {} = {}", name, value);
    fault_ =
        absl::DataLossError(fmt::format("the type {} is {} at{}, should be {}", graph::Print(types[i]),
                                        graph::Print(At(types[i], computed)), sizes, graph::Print(values[i].type)));
    return false;
  }
  return true;
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
