// SPDX-License-Identifier: Apache-2.0
// Checks every fact of every operator against its expressions. Each operator runs on inputs of many kinds, and the
// interpreter's results must agree with the facts. A fact that holds for all of them must be stated.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/ops/families.h"
#include "compiler/graph/passes/channels_last.h"
#include "compiler/graph/passes/permute.h"
#include "compiler/graph/traits.h"
#include "compiler/ir/match.h"
#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

using ir::DType;

constexpr int64_t kMaxSteps = 1 << 20;

struct FactAttempt {
  std::vector<Constant> inputs;
  std::map<std::string, Attribute> attributes = {};
  int opset = 17;
  size_t outputs = 1;
};

// Returns numbers that all differ (except in bool), in an order that `seed` decides.
Constant Data(DType dtype, const Shape& shape, int64_t seed = 1) {
  const int64_t count = TensorType{dtype, shape}.elements().value();
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t k = (i * 61 + seed * 17) % count;
    numbers.push_back(dtype == DType::kBool      ? static_cast<double>(k % 2)
                      : ir::IsUnsignedInt(dtype) ? static_cast<double>(k)
                      : ir::IsFloat(dtype)       ? static_cast<double>(k - count / 2) + 0.25
                                                 : static_cast<double>(k - count / 2));
  }
  return Tensor(dtype, shape, numbers);
}

std::vector<std::map<std::string, Attribute>> FactAttributeSets(size_t rank) {
  const size_t space = rank > 2 ? rank - 2 : 1;
  return {{},
          {{"axis", Int(1)},
           {"axes", IntList({1})},
           {"kernel_shape", IntList(Shape(space, 2))},
           {"to", Int(7)},  // i64
           {"k", Int(1)},
           {"p", Int(2)},
           {"num_groups", Int(2)},
           {"blocksize", Int(2)},
           {"size", Int(3)},
           {"direction", std::string("LEFT")},
           {"fmod", Int(1)},
           {"hidden_size", Int(2)},
           {"equation", std::string("...i,...i->...")}},
          {{"axis", Int(-1)},
           {"axes", IntList({0, 2})},
           {"kernel_shape", IntList(Shape(space, 1))},
           {"strides", IntList(Shape(space, 2))},
           {"direction", std::string("RIGHT")},
           {"mode", std::string("reflect")},
           {"equation", std::string("i...->...")}}};
}

// Lists of inputs that an operator might accept with data of this type and shape.
std::vector<std::vector<Constant>> InputLists(DType type, const Shape& shape) {
  const size_t rank = shape.size();
  const Constant x = Data(type, shape), other = Data(type, shape, 5), third = Data(type, shape, 9);
  const int64_t channels = rank > 1 ? shape[1] : shape[0];
  const Constant channel = Data(type, {channels}), row = Data(type, {shape.back()}), scalar = Data(type, {});
  const Constant scale = Floats({}, {0.5}), scales = Data(DType::kFloat32, {channels});
  const Constant slope = Data(DType::kFloat32, shape);
  std::vector<double> doubled(rank, 1), ones(2 * rank, 1), wider(shape.begin(), shape.end());
  doubled.back() = 2;
  wider.insert(wider.begin(), 2);
  const int64_t r = static_cast<int64_t>(rank);
  Shape kernel(rank, 2), first_kernel(rank, 2);
  kernel[0] = 3;
  first_kernel[0] = channels;
  if (rank > 1) kernel[1] = channels;
  return {{x},
          {x, other},
          {x, other, third},
          {x, row},
          {row, x},
          {x, channel, channel, channel, channel},
          {x, channel, channel},
          {x, scalar, scalar},
          {x, scalar},
          {x, scale},
          {x, scales},
          {x, slope},
          {Data(DType::kBool, shape), x, other},
          {Data(DType::kBool, shape), x, row},
          {x, Data(type, kernel)},
          {x, Data(type, first_kernel)},
          {x, Ints({1}, {1})},
          {x, Ints({}, {1})},
          {x, Ints({1}, {0})},
          {x, Ints({1}, {-1})},
          {x, Ints({3}, {0, 0, 1})},
          {x, Ints({2}, {1, static_cast<double>(channels - 1)})},
          {x, Ints({r}, doubled)},
          {x, Ints({2 * r}, ones)},
          {x, Ints({r + 1}, wider)},
          {x, Ints({1}, {1}), Ints({1}, {2}), Ints({1}, {-1}), Ints({1}, {1})},
          {x, Ints({2}, {1, 0}), Ints({2}, {3, 2})},
          {x, Tensor(DType::kFloat32, {r}, doubled)},
          {x, Absent(), Tensor(DType::kFloat32, {r}, doubled)},
          {Ints({2}, {2, 3})},
          {scalar, scalar, scalar}};
}

// Inputs for operators with special requirements.
std::vector<FactAttempt> SpecialAttempts() {
  const DType f32 = DType::kFloat32, u8 = DType::kUInt8;
  const Constant scale = Floats({}, {0.5}), zero = Tensor(u8, {}, {3});
  std::vector<FactAttempt> attempts = {
      {{Data(f32, {2, 3, 3})}},
      {{Data(f32, {2, 6, 1})}},
      {{Data(f32, {1, 8, 1}), Ints({}, {2}), Absent(), Ints({}, {4})}},
      {{Ints({}, {3}), Ints({}, {8}), Ints({}, {8000}), Floats({}, {0}), Floats({}, {4000})}},
      {{Data(u8, {2, 3}), scale, zero, Data(u8, {3, 2}), scale, zero, scale, zero}},
      {{Data(u8, {1, 1, 3, 3}), scale, zero, Data(u8, {1, 1, 2, 2}), scale, zero, scale, zero}},
      {{Ints({3}, {0, 1, 2}), Ints({}, {4}), Floats({2}, {0, 1})}},
      {{Data(f32, {1, 2, 4, 4}), Floats({1, 4}, {0, 0, 3, 2}), Ints({1}, {0})}, {{"sampling_ratio", Int(1)}}},
      {{Ints({}, {2}), Ints({}, {9}), Ints({}, {3})}},
      {{Data(f32, {1, 1, 2, 2}), Ints({1, 1, 2, 2}, {5, 7, 13, 15})},
       {{"kernel_shape", IntList({2, 2})}, {"strides", IntList({2, 2})}}},
      {{Data(f32, {4, 2}), Ints({2, 1}, {1, 3}), Data(f32, {2, 2})}},
      {{Data(f32, {1, 4, 3, 3}), Data(f32, {2, 3, 2, 2, 2})}},
      {{Data(f32, {1, 2, 3, 4}), Data(f32, {1, 3, 2}), Data(f32, {1, 3, 2}, 5)}},
      {{Data(f32, {3, 2}), Ints({1}, {1}), Floats({1}, {0.5}), Ints({2}, {1, 2}), Ints({2}, {0, 2})},
       {{"depth", Int(1)}}},
      {{Data(f32, {1, 2, 4, 4}), Floats({1, 4}, {0, 0, 1, 1}), Ints({1}, {0}), Ints({2}, {2, 2})}},
      {{Data(f32, {2, 32}), Data(u8, {3, 1, 16}), Data(f32, {3, 1})},
       {{"K", Int(32)}, {"N", Int(3)}, {"block_size", Int(32)}}},
      {{Data(f32, {1, 3, 3, 2})}, {{"pads", IntList({0})}, {"sizes", IntList({3})}, {"strides", IntList({2})}}},
      {{Data(f32, {2, 3, 2, 2})}, {{"to", Int(6)}}},  // i32
      {{Data(f32, {2, 3, 2}), Data(f32, {2, 1, 2}), Ints({2}, {1, 2})}},
      {{Data(f32, {1, 4, 2}), Ints({1}, {3}), Ints({1}, {2})}},
      {{Data(f32, {1, 2, 4}), Data(f32, {1, 2, 4}), Data(f32, {1, 2, 4})},
       {{"q_num_heads", Int(2)}, {"kv_num_heads", Int(2)}, {"update_rule", std::string("linear")}}},
      {{}, {{"shape", IntList({2, 3})}}},
      {{Data(f32, {1, 2, 4, 4}), Floats({1, 5}, {0, 0, 0, 3, 2})}, {{"pooled_shape", IntList({2, 2})}}},
      {{Data(f32, {1, 2, 3}), Ints({4}, {1, 1, 2, 2})}},
      {{Data(f32, {1, 2, 3, 3}), Data(f32, {2, 2, 2, 2}), Data(f32, {1, 8, 2, 2})}},
      {{Data(f32, {4, 6})},
       {{"workload", std::string("workload \"squares\"\ninput x: f32[4,6]\n"
                                 "y: f32[4] over i:4 = sum j:6 of x[i, j] * x[i, j]\noutput y\n")}}}};
  for (int64_t gates : {1, 3, 4}) {
    attempts.push_back({{Data(f32, {2, 1, 3}), Data(f32, {1, 2 * gates, 3}), Data(f32, {1, 2 * gates, 2})},
                        {{"hidden_size", Int(2)}}});
    attempts.push_back({{Data(f32, {2, 1, 2 * gates}), Absent(), Data(f32, {1, 2 * gates, 2})}});
  }
  return attempts;
}

std::vector<FactAttempt> Attempts() {
  std::vector<FactAttempt> attempts = SpecialAttempts();
  for (DType type : {DType::kFloat32, DType::kInt32, DType::kUInt8, DType::kBool}) {
    for (const Shape& shape : {Shape{6}, Shape{4, 6}, Shape{2, 3, 4}, Shape{1, 4, 2, 6}, Shape{1, 4, 2, 2, 3}}) {
      for (const auto& attributes : FactAttributeSets(shape.size())) {
        for (const auto& inputs : InputLists(type, shape)) {
          attempts.push_back({inputs, attributes, 1, 1});
          attempts.push_back({inputs, attributes, 18, 1});
          attempts.push_back({inputs, attributes, 18, 2});
        }
      }
    }
  }
  return attempts;
}

// Makes a node of the operator without inputs and outputs.
Node MakeNode(const OpFamily& family, const OpDef& op, const FactAttempt& attempt) {
  Node node;
  node.name = "node";
  node.op = op.name;
  node.domain = family.domain;
  node.opset = attempt.opset;
  node.attributes = attempt.attributes;
  return node;
}

std::string DescribeNode(const Node& node, const std::vector<Constant>& inputs) {
  std::string text = node.op;
  for (const Constant& input : inputs) text += input.data == nullptr ? " none" : " " + Print(input.type);
  for (const auto& [name, value] : node.attributes) text += " " + name;
  return text + " opset " + std::to_string(node.opset);
}

// A graph of only this node, which reads the constants and has so many outputs.
Graph GraphOf(Node node, const std::vector<Constant>& inputs, size_t outputs) {
  Graph graph;
  for (const Constant& input : inputs) {
    node.inputs.push_back(input.data == nullptr ? kAbsent : static_cast<ValueId>(graph.values.size()));
    if (input.data != nullptr) graph.values.push_back({"input", input.type, input.data});
  }
  for (size_t k = 0; k < outputs; ++k) {
    node.outputs.push_back(static_cast<ValueId>(graph.values.size()));
    graph.values.push_back({"output", {}, nullptr});
  }
  graph.nodes.push_back(std::move(node));
  return graph;
}

absl::StatusOr<std::vector<Constant>> RunAll(const Graph& graph) { return Evaluate(graph, graph.nodes[0], kMaxSteps); }

// Runs the node and returns its only output.
absl::StatusOr<Constant> Run(const Node& node, const std::vector<Constant>& inputs) {
  HONE_ASSIGN_OR_RETURN(std::vector<Constant> outputs, RunAll(GraphOf(node, inputs, 1)));
  return outputs[0];
}

bool Equal(const Constant& a, const Constant& b) { return a.type == b.type && *a.data == *b.data; }

Constant Transposed(const Constant& x, const Perm& perm) {
  return {{x.type.dtype, PermuteDims(x.type.shape, perm)}, Permute({"", x.type, x.data}, perm)};
}

// For each input: true if the stages load it or it is an output itself.
std::vector<bool> Loaded(const EmittedNode& emitted) {
  std::set<const ir::BufferNode*> read;
  for (const ir::Buffer& output : emitted.outputs) read.insert(output.get());
  for (const ir::Stage& stage : emitted.stages) {
    ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
      if (const auto* load = e.As<ir::Load>()) read.insert(load->buffer.get());
    });
  }
  std::vector<bool> loaded;
  for (const ir::Buffer& input : emitted.inputs) loaded.push_back(input != nullptr && read.contains(input.get()));
  return loaded;
}

// --- Where elements come from

// Returns numbers that all differ and are not 0, counted on from *next.
Constant Numbered(const TensorType& type, bool backwards, int64_t* next) {
  std::vector<double> numbers;
  const bool floats = ir::IsFloat(type.dtype);
  const int64_t count = type.elements().value();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t k = *next + (backwards ? count - i : i + 1);
    const double sign = k % 2 == 0 || ir::IsUnsignedInt(type.dtype) ? 1 : -1;
    numbers.push_back(sign * static_cast<double>(k) * (floats ? 1.0 / 16 : 1));
  }
  *next += count;
  return Tensor(type.dtype, ir::Values(type.shape), numbers);
}

// Returns the inputs with other values where the stages load them; inputs that only decide shapes stay. Inputs of the
// output's type are numbered consecutively.
std::vector<Constant> Renumbered(const EmittedNode& emitted, const std::vector<Constant>& inputs, bool backwards) {
  const std::vector<bool> loaded = Loaded(emitted);
  std::vector<Constant> renumbered = inputs;
  int64_t next = backwards ? 100 : 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!loaded[i]) continue;
    if (inputs[i].type.dtype == emitted.outputs[0]->dtype) {
      renumbered[i] = Numbered(inputs[i].type, backwards, &next);
    } else {
      std::vector<double> numbers = Numbers(inputs[i]);
      for (double& number : numbers) number = backwards == (number > 0) ? 0 : 1;
      renumbered[i] = Tensor(inputs[i].type.dtype, ir::Values(inputs[i].type.shape), numbers);
    }
  }
  return renumbered;
}

// For each element of the outputs: the element, counted over all loaded inputs, that has its type and number, or -1.
std::vector<int64_t> Sources(const std::vector<Constant>& inputs, const std::vector<bool>& loaded,
                             const std::vector<Constant>& outputs) {
  std::map<std::pair<DType, double>, int64_t> places;
  int64_t place = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!loaded[i]) continue;
    for (double number : Numbers(inputs[i])) places.emplace(std::pair(inputs[i].type.dtype, number), place++);
  }
  std::vector<int64_t> sources;
  for (const Constant& output : outputs) {
    for (double number : Numbers(output)) {
      const auto found = places.find({output.type.dtype, number});
      sources.push_back(found == places.end() ? -1 : found->second);
    }
  }
  return sources;
}

std::vector<double> AllNumbers(const std::vector<Constant>& tensors) {
  std::vector<double> all;
  for (const Constant& tensor : tensors) {
    const std::vector<double> numbers = Numbers(tensor);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return all;
}

// Returns the Movement that the node's results show: copied elements stay at the same places whatever their values are.
// nullopt if there are too few values to tell.
std::optional<Movement> MovementOf(const Node& node, const std::vector<Constant>& inputs, size_t count) {
  const Graph graph = GraphOf(node, inputs, count);
  const EmittedNode emitted = EmitNode(graph, graph.nodes[0]).value();
  if (emitted.outputs[0]->dtype == DType::kBool) return std::nullopt;
  const std::vector<Constant> forwards = Renumbered(emitted, inputs, false);
  const std::vector<Constant> backwards = Renumbered(emitted, inputs, true);
  const auto first = RunAll(GraphOf(node, forwards, count)), second = RunAll(GraphOf(node, backwards, count));
  if (!first.ok() || !second.ok()) return Movement::kNone;
  const std::vector<bool> loaded = Loaded(emitted);
  const std::vector<int64_t> sources = Sources(forwards, loaded, *first);
  if (sources.empty()) return std::nullopt;
  if (sources != Sources(backwards, loaded, *second) || *std::ranges::max_element(sources) < 0) return Movement::kNone;
  std::vector<int64_t> in_order(static_cast<size_t>(inputs[0].type.elements().value()));
  std::iota(in_order.begin(), in_order.end(), int64_t{0});
  in_order.resize(sources.size(), -1);  // further outputs may copy no elements of inputs
  if (sources == in_order) return Movement::kView;
  const auto mode = node.attributes.find("mode");
  const bool mirrors = AxisFormOf(node) == AxisForm::kPads && mode != node.attributes.end();
  std::set<int64_t> taken;
  const std::vector<double> numbers = AllNumbers(*first), others = AllNumbers(*second);
  for (size_t k = 0; k < sources.size(); ++k) {
    if (sources[k] < 0 && numbers[k] != others[k]) return Movement::kNone;
    if (sources[k] >= 0 && !taken.insert(sources[k]).second && !mirrors) return Movement::kNone;
  }
  return Movement::kOnce;
}

// --- Element by element

std::optional<Shape> BroadcastShape(const std::vector<Constant>& inputs, const std::vector<bool>& which) {
  Shape shape;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!which[i]) continue;
    Shape next = ir::Values(inputs[i].type.shape);
    if (next.size() > shape.size()) shape.insert(shape.begin(), next.size() - shape.size(), 1);
    next.insert(next.begin(), shape.size() - next.size(), 1);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != next[d] && shape[d] != 1 && next[d] != 1) return std::nullopt;
      if (shape[d] == 1) shape[d] = next[d];
    }
  }
  return shape;
}

Constant Spread(const Constant& x, const Shape& shape) {
  const std::vector<double> extents(shape.begin(), shape.end());
  return RunCase({"Expand", {x, Ints({static_cast<int64_t>(shape.size())}, extents)}}).value()[0];
}

// True if the node behaves as AxisForm::kBroadcast says. Each element depends only on its own place and the shape is
// numpy's. Reshaping or transposing all inputs of this shape does the same to the result.
bool Broadcasts(const Node& node, const std::vector<Constant>& inputs) {
  const Graph graph = GraphOf(node, inputs, 1);
  const EmittedNode emitted = EmitNode(graph, graph.nodes[0]).value();
  const std::vector<bool> loaded = Loaded(emitted);
  const std::optional<Shape> shape = BroadcastShape(inputs, loaded);
  const absl::StatusOr<Constant> y = Run(node, inputs);
  if (!shape || !y.ok() || y->type.shape != *shape) return false;
  if (std::ranges::find(loaded, true) == loaded.end()) return false;  // it reads only types
  if (!emitted.stages.empty() && !FindTraits(graph, graph.nodes[0])->elementwise) return false;
  std::vector<Constant> whole = inputs;
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = loaded[i] ? Spread(whole[i], *shape) : whole[i];
  const absl::StatusOr<Constant> spread = Run(node, whole);
  if (spread.ok() && !Equal(*spread, *y)) return false;
  if (!spread.ok()) whole = inputs;  // it accepts only single numbers there
  Perm reverse(shape->size());
  std::iota(reverse.rbegin(), reverse.rend(), int64_t{0});
  std::vector<Constant> transposed = whole, flat = whole;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (!loaded[i] || whole[i].type.shape != *shape) continue;
    transposed[i] = Transposed(whole[i], reverse);
    flat[i].type.shape = {whole[i].type.elements()};
  }
  const absl::StatusOr<Constant> turned = Run(node, transposed), line = Run(node, flat);
  return turned.ok() && Equal(*turned, Transposed(*y, reverse)) && line.ok() && *line->data == *y->data;
}

// --- Another order of dimensions

// True if the node's channels-last form computes the same; nullopt if there is no such form.
std::optional<bool> MovesAxes(const Node& node, const std::vector<Constant>& inputs, size_t count) {
  Graph graph = GraphOf(node, inputs, count);
  const absl::StatusOr<std::vector<Constant>> wanted = RunAll(graph);
  if (!wanted.ok()) return std::nullopt;
  const Node first = graph.nodes[0];
  for (size_t k = 0; k < count; ++k) graph.values[first.outputs[k]].type = (*wanted)[k].type;
  const size_t rank = inputs[0].type.shape.size();
  const AxisForm form = AxisFormOf(node);
  const bool several = form == AxisForm::kBroadcast || form == AxisForm::kAxis;
  std::map<ValueId, TensorData> data;
  for (ValueId id : first.inputs) {
    if (id == kAbsent || (id != first.inputs[0] && !several) || graph.values[id].type.shape.size() != rank) continue;
    data[id] = std::exchange(graph.values[id].data, nullptr);
  }
  if (!HasChannelsLastForm(graph, first)) return std::nullopt;
  std::vector<ValueId> entered;
  const auto outputs = AddChannelsLast(graph, first, [&](ValueId id) -> absl::StatusOr<ValueId> {
    const Constant moved = Transposed({graph.values[id].type, data[id]}, ToChannelsLast(rank));
    entered.push_back(AddValue(graph, "moved", moved.type));
    data[entered.back()] = moved.data;
    return entered.back();
  });
  if (!outputs.ok()) return false;
  for (const auto& [id, bytes] : data) graph.values[id].data = bytes;
  const absl::StatusOr<std::vector<Constant>> made = Evaluate(graph, graph.nodes.back(), kMaxSteps);
  if (!made.ok()) return false;
  for (size_t k = 0; k < count; ++k) {
    const Constant back = Transposed((*made)[k], ToChannelsFirst(rank));
    const std::vector<double> numbers = Numbers(back), expected = Numbers((*wanted)[k]);
    if (back.type != (*wanted)[k].type) return false;
    for (size_t i = 0; i < numbers.size(); ++i) {  // sums may be added in another order
      if (std::fabs(numbers[i] - expected[i]) > 1e-4 * (1 + std::fabs(expected[i]))) return false;
      if (std::isnan(numbers[i]) != std::isnan(expected[i])) return false;
    }
  }
  return true;
}

// --- The tests

// Calls check(node, attempt) for every attempt that the operator accepts, until check returns false.
template <typename Check>
void TryAll(const OpFamily& family, const OpDef& op, const Check& check) {
  static const std::vector<FactAttempt> kAttempts = Attempts();
  int taken = 0;
  for (const FactAttempt& attempt : kAttempts) {
    const Node node = MakeNode(family, op, attempt);
    const Graph graph = GraphOf(node, attempt.inputs, attempt.outputs);
    if (!EmitNode(graph, graph.nodes[0]).ok()) continue;
    ++taken;
    if (!check(node, attempt)) return;
  }
  EXPECT_GT(taken, 0) << "no attempt fits " << op.name << ": add one to this test";
}

template <typename Body>
void ForEachOperator(const Body& body) {
  for (const OpFamily& family : AllFamilies()) {
    for (const OpDef& op : family.ops) body(family, op);
  }
}

TEST(Facts, MovementIsWhatTheExpressionsShow) {
  ForEachOperator([](const OpFamily& family, const OpDef& op) {
    std::optional<Movement> shown;  // the weakest Movement of all attempts
    TryAll(family, op, [&](const Node& node, const FactAttempt& attempt) {
      const std::optional<Movement> here = MovementOf(node, attempt.inputs, attempt.outputs);
      if (!here) return true;
      EXPECT_GE(*here, op.facts.movement) << DescribeNode(node, attempt.inputs) << " does not move as stated";
      shown = std::min(shown.value_or(*here), *here);
      return *here >= op.facts.movement && *shown > Movement::kNone;
    });
    EXPECT_EQ(shown.value_or(Movement::kNone), op.facts.movement)
        << op.name << " moves elements: state it, or add an attempt that shows else";
  });
}

TEST(Facts, BroadcastIsWhatTheExpressionsShow) {
  ForEachOperator([](const OpFamily& family, const OpDef& op) {
    const bool stated = op.facts.axes.form == AxisForm::kBroadcast;
    bool shown = true;
    TryAll(family, op, [&](const Node& node, const FactAttempt& attempt) {
      if (stated && (attempt.outputs > 1 || node.opset < op.facts.axes.since)) return true;
      shown = shown && attempt.outputs == 1 && Broadcasts(node, attempt.inputs);
      EXPECT_TRUE(shown || !stated) << DescribeNode(node, attempt.inputs) << " does not broadcast as stated";
      return shown;
    });
    EXPECT_EQ(shown, stated) << op.name << " works element by element: state it, or add an attempt that shows else";
  });
}

TEST(Facts, AxesMoveAsTheFormSays) {
  ForEachOperator([](const OpFamily& family, const OpDef& op) {
    if (op.facts.axes.form == AxisForm::kOwn) return;
    std::set<size_t> ranks;
    TryAll(family, op, [&](const Node& node, const FactAttempt& attempt) {
      const std::optional<bool> moves = MovesAxes(node, attempt.inputs, attempt.outputs);
      if (moves) ranks.insert(attempt.inputs[0].type.shape.size());
      EXPECT_TRUE(moves.value_or(true)) << DescribeNode(node, attempt.inputs) << " differs with the channels last";
      return moves.value_or(true);
    });
    EXPECT_TRUE(ranks.contains(4)) << "no attempt moves the axes of " << op.name << ": add one to this test";
  });
}

}  // namespace
}  // namespace hone::graph
