// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/import_as_loop.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

// More positions of a delta rule are a loop. Fewer are unrolled, which compiles longer and runs faster.
constexpr int64_t kUnrolledDeltaPositionsMax = 32;

using RawValue = decltype(RawAttribute::value);
using RawAttributes = std::map<std::string, RawValue>;

// Returns the attribute, or nullptr if the node has none of this name and type.
template <typename T>
const T* FindAttribute(const RawNode& node, const std::string& name) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? nullptr : std::get_if<T>(&found->second.value);
}

int64_t IntOf(const RawNode& node, const std::string& name, int64_t fallback) {
  const auto* value = FindAttribute<int64_t>(node, name);
  return value == nullptr ? fallback : *value;
}

// Writes nodes one by one. A value is named after its node, whose name begins with a prefix that names in files lack.
class RawWriter {
 public:
  explicit RawWriter(std::string prefix) : prefix_(std::move(prefix)) {}

  // Appends a node with one output, and returns the name of the output.
  std::string Op(const std::string& op, std::vector<std::string> inputs, RawAttributes attributes = {}) {
    return Ops(op, std::move(inputs), 1, std::move(attributes)).front();
  }
  std::vector<std::string> Ops(const std::string& op, std::vector<std::string> inputs, size_t outputs,
                               RawAttributes attributes = {}, const std::string& domain = "") {
    RawNode node = {.name = fmt::format("{}{}_{}", prefix_, op, nodes_.size()),
                    .op = op,
                    .domain = domain,
                    .inputs = std::move(inputs)};
    for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(fmt::format("{}:{}", node.name, i));
    for (auto& [name, value] : attributes) node.attributes[name].value = std::move(value);
    nodes_.push_back(std::move(node));
    return nodes_.back().outputs;
  }
  std::string Int(int64_t number) { return Op("Constant", {}, {{"value_int", number}}); }
  std::string Ints(std::vector<int64_t> numbers) { return Op("Constant", {}, {{"value_ints", std::move(numbers)}}); }
  std::string Extent(const std::string& value, int64_t axis) { return Op("Gather", {Op("Shape", {value}), Int(axis)}); }
  std::string Unsqueeze(const std::string& value, int64_t axis) { return Op("Unsqueeze", {value, Ints({axis})}); }
  std::string Squeeze(const std::string& value, int64_t axis) { return Op("Squeeze", {value, Ints({axis})}); }

  // Gives the last node's only output another name.
  void Name(const std::string& name) { nodes_.back().outputs.front() = name; }
  std::vector<RawNode> Take() { return std::move(nodes_); }

 private:
  const std::string prefix_;
  std::vector<RawNode> nodes_;
};

// A Loop over `steps`, which begins if `condition` holds ("": always).
RawNode MakeLoop(const RawNode& node, const std::string& steps, const std::string& condition, RawGraph body) {
  RawNode loop = {.name = node.name, .op = "Loop", .inputs = {steps, condition}};
  loop.attributes["body"].value = std::make_shared<const RawGraph>(std::move(body));
  return loop;
}

absl::StatusOr<std::vector<int64_t>> ScanList(const RawNode& node, const std::string& name, size_t count) {
  if (!node.attributes.contains(name)) return std::vector<int64_t>(count, 0);
  const auto* list = FindAttribute<std::vector<int64_t>>(node, name);
  if (list == nullptr || list->size() != count) {
    return absl::InvalidArgumentError(fmt::format("attribute {} must be a list of {} integers", name, count));
  }
  return *list;
}

// What of a Scan's inputs are states, and what is scanned.
struct ScanParts {
  std::shared_ptr<const RawGraph> body;
  size_t states = 0, scanned = 0, rows = 0;
};

absl::StatusOr<ScanParts> PartsOf(const RawNode& node) {
  const auto* body = FindAttribute<std::shared_ptr<const RawGraph>>(node, "body");
  const auto* scanned = FindAttribute<int64_t>(node, "num_scan_inputs");
  if (body == nullptr || *body == nullptr) return absl::InvalidArgumentError("body is missing");
  if (scanned == nullptr || *scanned < 1 || static_cast<size_t>(*scanned) > node.inputs.size()) {
    return absl::InvalidArgumentError("attribute num_scan_inputs must be a number from 1 to that of the inputs");
  }
  const size_t states = node.inputs.size() - static_cast<size_t>(*scanned);
  if ((*body)->outputs.size() < states || (*body)->inputs.size() != node.inputs.size()) {
    return absl::InvalidArgumentError("its body does not have the inputs and outputs of the scan");
  }
  return ScanParts{*body, states, static_cast<size_t>(*scanned), (*body)->outputs.size() - states};
}

// Every step gathers the elements of the scanned inputs.
absl::StatusOr<AsLoop> SpellPlainScan(const RawNode& node) {
  HONE_ASSIGN_OR_RETURN(const ScanParts parts, PartsOf(node));
  HONE_ASSIGN_OR_RETURN(const auto input_axes, ScanList(node, "scan_input_axes", parts.scanned));
  HONE_ASSIGN_OR_RETURN(const auto input_directions, ScanList(node, "scan_input_directions", parts.scanned));
  HONE_ASSIGN_OR_RETURN(const auto output_axes, ScanList(node, "scan_output_axes", parts.rows));
  HONE_ASSIGN_OR_RETURN(const auto output_directions, ScanList(node, "scan_output_directions", parts.rows));
  RawWriter before("scan:"), inside("scan:body:");
  const std::string steps = before.Extent(node.inputs[parts.states], input_axes[0]);
  RawGraph body = *parts.body;
  body.inputs.resize(parts.states);
  body.inputs.insert(body.inputs.begin(), {{.name = "scan:step"}, {.name = "scan:goes_on"}});
  body.outputs.insert(body.outputs.begin(), "scan:goes_on");
  const std::string from_end = inside.Op("Sub", {inside.Op("Sub", {steps, inside.Int(1)}), "scan:step"});
  for (size_t k = 0; k < parts.scanned; ++k) {
    const std::string place = input_directions[k] == 0 ? "scan:step" : from_end;
    inside.Op("Gather", {node.inputs[parts.states + k], place}, {{"axis", input_axes[k]}});
    inside.Name(parts.body->inputs[parts.states + k].name);
  }
  std::vector<RawNode> nodes = inside.Take();
  body.nodes.insert(body.nodes.begin(), std::make_move_iterator(nodes.begin()), std::make_move_iterator(nodes.end()));
  RawNode loop = MakeLoop(node, steps, "", std::move(body));
  loop.inputs.insert(loop.inputs.end(), node.inputs.begin(),
                     node.inputs.begin() + static_cast<std::ptrdiff_t>(parts.states));
  loop.outputs = node.outputs;
  AsLoop result = {before.Take(), true, node.outputs, std::vector<int64_t>(parts.states, 0),
                   std::vector<bool>(parts.states, false)};
  result.nodes.push_back(std::move(loop));
  result.axes.insert(result.axes.end(), output_axes.begin(), output_axes.end());
  for (const int64_t direction : output_directions) result.reversed.push_back(direction != 0);
  return result;
}

// Scan of opset 8: the first dimension of all inputs and outputs is a batch, and a loop over it contains a scan. Input
// 0, the lengths in the batch, must be absent.
absl::StatusOr<AsLoop> SpellBatchedScan(const RawNode& node) {
  if (node.inputs.size() < 2 || !node.inputs[0].empty()) {
    return absl::UnimplementedError(
        "Scan of opset 8 is supported without lengths of the sequences (input 0); convert the model to opset 9");
  }
  RawNode inner = node;
  inner.inputs.erase(inner.inputs.begin());
  RawWriter before("batch:"), inside("batch:body:");
  for (std::string& input : inner.inputs) input = inside.Op("Gather", {input, "batch:step"}, {{"axis", int64_t{0}}});
  if (const auto directions = inner.attributes.find("directions"); directions != inner.attributes.end()) {
    inner.attributes["scan_input_directions"] = directions->second;
    inner.attributes.erase(directions);
  }
  HONE_ASSIGN_OR_RETURN(const ScanParts parts, PartsOf(inner));
  inner.outputs.clear();
  for (size_t i = 0; i < parts.body->outputs.size(); ++i) inner.outputs.push_back(fmt::format("batch:output{}", i));
  HONE_ASSIGN_OR_RETURN(AsLoop scan, SpellPlainScan(inner));
  RawGraph body;
  body.inputs = {{.name = "batch:step"}, {.name = "batch:goes_on"}};
  body.outputs = inner.outputs;
  body.outputs.insert(body.outputs.begin(), "batch:goes_on");
  body.nodes = inside.Take();
  std::ranges::move(scan.nodes, std::back_inserter(body.nodes));
  RawNode loop = MakeLoop(node, before.Extent(node.inputs[1], 0), "", std::move(body));
  loop.outputs = node.outputs;
  AsLoop result = {before.Take(), true, node.outputs, std::vector<int64_t>(inner.outputs.size(), 0),
                   std::vector<bool>(inner.outputs.size(), false)};
  result.nodes.push_back(std::move(loop));
  return result;
}

absl::StatusOr<AsLoop> SpellScan(const RawNode& node, int64_t opset) {
  return opset < 9 ? SpellBatchedScan(node) : SpellPlainScan(node);
}

// --- NonMaxSuppression.

// The edges of boxes, each f32[batch, boxes]; `area` is theirs.
struct Boxes {
  std::string top, left, bottom, right, area;
};

// Inputs: boxes f32[batch, boxes, 4]: two corners in any order or, if `center`, the center and the size.
Boxes EdgesOf(RawWriter& w, const std::string& boxes, bool center) {
  std::vector<std::string> c;
  for (int64_t i = 0; i < 4; ++i) c.push_back(w.Op("Gather", {boxes, w.Int(i)}, {{"axis", int64_t{2}}}));
  Boxes edges;
  if (center) {  // x, y, width, height
    const std::string half = w.Op("Constant", {}, {{"value_float", 0.5}});
    const std::string x = w.Op("Mul", {c[2], half}), y = w.Op("Mul", {c[3], half});
    edges = {w.Op("Sub", {c[1], y}), w.Op("Sub", {c[0], x}), w.Op("Add", {c[1], y}), w.Op("Add", {c[0], x}), ""};
  } else {  // y, x, y, x
    edges = {w.Op("Min", {c[0], c[2]}), w.Op("Min", {c[1], c[3]}), w.Op("Max", {c[0], c[2]}), w.Op("Max", {c[1], c[3]}),
             ""};
  }
  edges.area = w.Op("Mul", {w.Op("Sub", {edges.bottom, edges.top}), w.Op("Sub", {edges.right, edges.left})});
  return edges;
}

// One step: takes the box with the highest score of each batch and class, and removes it and all that overlap it. A
// removed box has the score -inf. States: the scores f32[batch, classes, boxes]. Rows, [batch, classes]: the box, and
// whether there was one.
RawGraph SuppressionStep(const Boxes& boxes, const std::string& threshold, const std::string& lowest) {
  RawWriter w("nms:body:");
  const std::string scores = "nms:scores";
  const RawAttributes last = {{"axis", int64_t{2}}};
  const std::string best = w.Op("ArgMax", {scores}, last);  // [batch, classes, 1]
  const std::string place = w.Squeeze(best, 2);
  const std::string found =
      w.Op("Greater", {w.Op("GatherElements", {scores, best}, last), lowest});  // [batch, classes, 1]
  const auto both = [&](const std::string& edge, const char* op) {              // of the best box and of every box
    const std::string own = w.Unsqueeze(w.Op("GatherElements", {edge, place}, {{"axis", int64_t{1}}}), 2);
    return w.Op(op, {own, w.Unsqueeze(edge, 1)});
  };
  const std::string zero = w.Op("Constant", {}, {{"value_float", 0.0}});
  const auto common = [&](const std::string& begin, const std::string& end) {
    return w.Op("Max", {w.Op("Sub", {both(end, "Min"), both(begin, "Max")}), zero});
  };
  const std::string shared = w.Op("Mul", {common(boxes.top, boxes.bottom), common(boxes.left, boxes.right)});
  const std::string overlap = w.Op("Div", {shared, w.Op("Sub", {both(boxes.area, "Add"), shared})});
  const std::string places = w.Op("Range", {w.Int(0), w.Extent(scores, 2), w.Int(1)});
  const std::string removed = w.Op("Or", {w.Op("Greater", {overlap, threshold}), w.Op("Equal", {places, best})});
  const std::string next = w.Op("Where", {removed, lowest, scores});
  const std::string goes_on = w.Op("Greater", {w.Op("ReduceMax", {next}, {{"keepdims", int64_t{0}}}), lowest});
  RawGraph body;
  for (const char* name : {"nms:step", "nms:goes_on", "nms:scores"}) body.inputs.push_back({.name = name});
  body.outputs = {goes_on, next, place, w.Squeeze(found, 2)};
  body.nodes = w.Take();
  return body;
}

// Inputs: boxes [batch, boxes, 4], scores [batch, classes, boxes], and as scalars the most boxes per batch and class
// (0 if absent), the overlap from which on a box is removed (0), the score from which on a box counts (none). Output:
// i64[selected, 3]: batch, class and box.
absl::StatusOr<AsLoop> SpellNonMaxSuppression(const RawNode& node, int64_t /*opset*/) {
  const auto given = [&](size_t i) { return i < node.inputs.size() && !node.inputs[i].empty(); };
  const bool has_centers = IntOf(node, "center_point_box", 0) == 1;
  if (!given(0) || !given(1)) return absl::InvalidArgumentError("input 0 or 1 is missing");
  RawWriter w("nms:");
  const auto scalar = [&](size_t i, const std::string& fallback) {
    return given(i) ? w.Op("Reshape", {node.inputs[i], w.Ints({})}) : fallback;
  };
  const std::string lowest = w.Op("Constant", {}, {{"value_float", -std::numeric_limits<double>::infinity()}});
  const Boxes boxes = EdgesOf(w, node.inputs[0], has_centers);
  const std::string most = scalar(2, w.Int(0));
  const std::string threshold = scalar(3, w.Op("Constant", {}, {{"value_float", 0.0}}));
  std::string scores = node.inputs[1];
  if (given(4)) scores = w.Op("Where", {w.Op("Greater", {scores, scalar(4, "")}), scores, lowest});
  const std::string begins = w.Op("Greater", {w.Op("ReduceMax", {scores}, {{"keepdims", int64_t{0}}}), lowest});
  const std::string steps = w.Op("Min", {most, w.Extent(scores, 2)});
  std::vector<RawNode> nodes = w.Take();
  nodes.push_back(MakeLoop(node, steps, begins, SuppressionStep(boxes, threshold, lowest)));
  nodes.back().inputs.push_back(scores);
  nodes.back().outputs = {"", "nms:places", "nms:found"};
  RawWriter after("nms:after:");
  const RawAttributes steps_last = {{"perm", std::vector<int64_t>{1, 2, 0}}};  // [batch, classes, steps]
  const std::string selected =
      after.Op("Transpose", {after.Op("NonZero", {after.Op("Transpose", {"nms:found"}, steps_last)})},
               {{"perm", std::vector<int64_t>{1, 0}}});  // [selected, 3]
  const std::string box =
      after.Unsqueeze(after.Op("GatherND", {after.Op("Transpose", {"nms:places"}, steps_last), selected}), 1);
  const std::string result =
      after.Op("Concat", {after.Op("Slice", {selected, after.Ints({0}), after.Ints({2}), after.Ints({1})}), box},
               {{"axis", int64_t{1}}});
  for (RawNode& last : after.Take()) nodes.push_back(std::move(last));
  return AsLoop{std::move(nodes), false, {result}, {0}, {false}};
}

// --- Recurrences.

bool HasRecurrence(const RawNode& node) { return node.op == "RNN" || node.op == "GRU" || node.op == "LSTM"; }

std::string DirectionOf(const RawNode& node) {
  const auto* text = FindAttribute<std::string>(node, "direction");
  return text == nullptr ? "forward" : *text;
}

// Inputs of a recurrence: x, weights, recurrent weights, biases, lengths, states, peepholes.
constexpr size_t kWeights = 1, kRecurrent = 2, kLengths = 4, kFirstState = 5, kPeepholes = 7;

// Writes one direction of a recurrence as a loop over one-step recurrences of the same kind.
class RecurrenceWriter {
 public:
  // `step` has the inputs and attributes of the direction. Names start with `prefix`. projects: one product before the
  // loop multiplies the inputs of all steps by the weights, which each step would read again.
  RecurrenceWriter(RawNode step, std::string prefix, bool reversed, bool projects)
      : step_(std::move(step)), prefix_(std::move(prefix)), reversed_(reversed), projects_(projects), before_(prefix_) {
    step_.inputs.resize(kPeepholes + 1);
  }

  // The nodes; the sequence and the last states are values named by Output.
  std::vector<RawNode> Write() {
    const std::string steps = before_.Extent(step_.inputs[0], TimeAxis());
    const size_t states = step_.op == "LSTM" ? 2 : 1;
    const std::string data = projects_ ? Projected() : step_.inputs[0];
    RawNode loop = MakeLoop(step_, steps, "", Body(data, steps, states));
    loop.name = prefix_ + "Loop";
    for (size_t i = 0; i < states; ++i) {
      loop.inputs.push_back(FirstState(step_.inputs[kFirstState + i]));
      loop.outputs.push_back(Output(1 + i));
    }
    loop.outputs.push_back(prefix_ + "rows");
    std::vector<RawNode> nodes = before_.Take();
    nodes.push_back(std::move(loop));
    RawWriter after(prefix_ + "after:");
    // The rows are [steps, directions, batch, units], or with the batch first [steps, batch, directions, units].
    std::string sequence = prefix_ + "rows";
    if (reversed_) {
      sequence = after.Op("Slice", {sequence, after.Ints({-1}), after.Ints({std::numeric_limits<int64_t>::min()}),
                                    after.Ints({0}), after.Ints({-1})});
    }
    const std::vector<int64_t> order =
        IsBatchFirst() ? std::vector<int64_t>{1, 0, 2, 3} : std::vector<int64_t>{0, 1, 2, 3};
    after.Op("Transpose", {sequence}, {{"perm", order}});
    after.Name(Output(0));
    for (RawNode& node : after.Take()) nodes.push_back(std::move(node));
    return nodes;
  }

  std::string Output(size_t index) const { return fmt::format("{}out{}", prefix_, index); }

 private:
  bool IsBatchFirst() const { return IntOf(step_, "layout", 0) != 0; }
  int64_t TimeAxis() const { return IsBatchFirst() ? 1 : 0; }

  // The products of x [.., .., inputs] and the weights [1, gates * units, inputs].
  std::string Projected() {
    const std::string weights = before_.Squeeze(step_.inputs[kWeights], 0);
    return before_.Op("MatMul", {step_.inputs[0], before_.Op("Transpose", {weights})});
  }

  // The state before the first step: the given one, or zeros.
  std::string FirstState(const std::string& given) {
    if (!given.empty()) return given;
    const auto extent = [&](size_t input, int64_t axis) {
      return before_.Unsqueeze(before_.Extent(step_.inputs[input], axis), 0);
    };
    const std::string one = before_.Ints({1}), batch = extent(0, 1 - TimeAxis()), units = extent(kRecurrent, 2);
    const std::string shape = before_.Op(
        "Concat",
        IsBatchFirst() ? std::vector<std::string>{batch, one, units} : std::vector<std::string>{one, batch, units},
        {{"axis", int64_t{0}}});
    return before_.Op("CastLike", {before_.Op("ConstantOfShape", {shape}), step_.inputs[0]});
  }

  // data: the inputs of all steps.
  RawGraph Body(const std::string& data, const std::string& steps, size_t states) const {
    RawWriter w(prefix_ + "body:");
    RawGraph body;
    const std::string counter = prefix_ + "step", goes_on = prefix_ + "goes_on";
    body.inputs = {{.name = counter}, {.name = goes_on}};
    body.outputs = {goes_on};
    const std::string time = reversed_ ? w.Op("Sub", {w.Op("Sub", {steps, w.Int(1)}), counter}) : counter;
    RawNode step = step_;
    step.attributes.erase("direction");
    step.inputs[0] = w.Unsqueeze(w.Op("Gather", {data, time}, {{"axis", TimeAxis()}}), TimeAxis());
    if (projects_) {
      step.op = "Projected" + step.op;  // ops/recurrent.cc
      step.domain = "hone";
      step.inputs[kWeights].clear();
    }
    // A length that is at most the number of steps before makes the one-step recurrence keep its state.
    if (!step_.inputs[kLengths].empty()) {
      step.inputs[kLengths] = w.Op("Sub", {step_.inputs[kLengths], w.Op("CastLike", {time, step_.inputs[kLengths]})});
    }
    std::vector<RawAttributes::value_type> attributes;
    for (const auto& [name, attribute] : step.attributes) attributes.emplace_back(name, attribute.value);
    for (size_t i = 0; i < states; ++i) {
      step.inputs[kFirstState + i] = fmt::format("{}state{}", prefix_, i);
      body.inputs.push_back({.name = step.inputs[kFirstState + i]});
    }
    const std::vector<std::string> made =
        w.Ops(step.op, step.inputs, 1 + states, RawAttributes(attributes.begin(), attributes.end()), step.domain);
    body.outputs.insert(body.outputs.end(), made.begin() + 1, made.end());
    body.outputs.push_back(w.Squeeze(made[0], TimeAxis()));
    body.nodes = w.Take();
    return body;
  }

  RawNode step_;
  const std::string prefix_;
  const bool reversed_, projects_;
  RawWriter before_;
};

// The inputs and attributes of one direction of a bidirectional recurrence.
absl::StatusOr<RawNode> OneDirection(const RawNode& node, int64_t direction, RawWriter& w) {
  RawNode one = node;
  const int64_t state_axis = IntOf(node, "layout", 0) != 0 ? 1 : 0;
  for (size_t i = kWeights; i < one.inputs.size(); ++i) {
    if (one.inputs[i].empty() || i == kLengths) continue;
    const int64_t axis = i == kFirstState || i == kFirstState + 1 ? state_axis : 0;
    one.inputs[i] = w.Op("Slice", {one.inputs[i], w.Ints({direction}), w.Ints({direction + 1}), w.Ints({axis})});
  }
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (one.attributes.contains(name)) {
      return absl::UnimplementedError(fmt::format(
          "attribute {} of a bidirectional recurrence is supported only if the number of steps is fixed", name));
    }
  }
  const auto activations = one.attributes.find("activations");
  if (activations == one.attributes.end()) return one;
  auto* names = std::get_if<std::vector<std::string>>(&activations->second.value);
  if (names == nullptr || names->size() % 2 != 0) return absl::InvalidArgumentError("attribute activations is wrong");
  const auto half = static_cast<std::ptrdiff_t>(names->size() / 2);
  const auto begin = names->begin() + direction * half;
  *names = std::vector<std::string>(begin, begin + half);
  return one;
}

template <bool projects>
absl::StatusOr<AsLoop> SpellRecurrence(const RawNode& node, int64_t /*opset*/) {
  const std::string direction = DirectionOf(node);
  AsLoop result;
  const size_t outputs = node.op == "LSTM" ? 3 : 2;
  if (direction != "bidirectional") {
    RecurrenceWriter writer(node, "rnn:", direction == "reverse", projects);
    result.nodes = writer.Write();
    for (size_t i = 0; i < outputs; ++i) result.outputs.push_back(writer.Output(i));
  } else {
    RawWriter before("rnn:"), after("rnn:after:");
    std::vector<RawNode> parts;
    std::vector<std::string> names;
    for (const int64_t d : {0, 1}) {
      HONE_ASSIGN_OR_RETURN(RawNode one, OneDirection(node, d, before));
      RecurrenceWriter writer(std::move(one), fmt::format("rnn{}:", d), d == 1, projects);
      for (RawNode& part : writer.Write()) parts.push_back(std::move(part));
      for (size_t i = 0; i < outputs; ++i) names.push_back(writer.Output(i));
    }
    result.nodes = before.Take();
    for (RawNode& part : parts) result.nodes.push_back(std::move(part));
    const bool batch_first = IntOf(node, "layout", 0) != 0;
    for (size_t i = 0; i < outputs; ++i) {
      const int64_t axis = i == 0 ? (batch_first ? 2 : 1) : (batch_first ? 1 : 0);
      result.outputs.push_back(after.Op("Concat", {names[i], names[outputs + i]}, {{"axis", axis}}));
    }
    for (RawNode& last : after.Take()) result.nodes.push_back(std::move(last));
  }
  result.outputs.resize(node.outputs.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) result.outputs[i].clear();
  }
  result.axes.assign(node.outputs.size(), 0);
  result.reversed.assign(node.outputs.size(), false);
  return result;
}

// --- LinearAttention with a delta rule (ops/linear_attention.cc), an iteration for each position.

std::string InputOf(const RawNode& node, size_t i) { return i < node.inputs.size() ? node.inputs[i] : std::string(); }

// The nodes of one iteration: "delta:state" becomes the state after position "delta:step". It computes in the type
// `wide` of ONNX.
class DeltaStep {
 public:
  DeltaStep(const RawNode& node, int64_t wide, RawWriter& w) : node_(node), wide_(wide), w_(w) {}

  // Returns the state after the position.
  std::string Write(int64_t kv_heads) {
    std::string state = "delta:state";
    if (!InputOf(node_, 4).empty())
      state = w_.Op("Mul", {state, w_.Unsqueeze(w_.Op("Exp", {At(4, {0, kv_heads, -1})}), 3)});
    const std::string key = At(1, {0, kv_heads, -1});
    const std::string erased = InputOf(node_, 6).empty() ? key : w_.Op("Mul", {key, At(6, {0, kv_heads, -1})});
    const std::string found = w_.Squeeze(w_.Op("MatMul", {w_.Unsqueeze(erased, 2), state}), 2);
    const std::string error = w_.Op("Sub", {At(2, {0, kv_heads, -1}), found});
    const std::string written = w_.Op("Mul", {At(5, {0, -1, 1}), error});
    return w_.Op("Add", {state, w_.Op("MatMul", {w_.Unsqueeze(key, 3), w_.Unsqueeze(written, 2)})});
  }
  // The input at this position, in this shape.
  std::string At(size_t input, std::vector<int64_t> shape) {
    const std::string row = w_.Op("Gather", {node_.inputs[input], "delta:step"}, {{"axis", int64_t{1}}});
    return w_.Op("Reshape", {w_.Op("Cast", {row}, {{"to", wide_}}), w_.Ints(std::move(shape))});
  }

 private:
  const RawNode& node_;
  const int64_t wide_;
  RawWriter& w_;
};

// The state before the first position, if the node has no past state.
std::string NoState(const RawNode& node, int64_t heads, int64_t kv_heads, RawWriter& w) {
  const std::string batch = w.Extent(node.inputs[0], 0);
  const std::string key_size = w.Op("Div", {w.Extent(node.inputs[0], 2), w.Int(heads)});
  const std::string value_size = w.Op("Div", {w.Extent(node.inputs[2], 2), w.Int(kv_heads)});
  const std::string shape =
      w.Op("Concat", {w.Unsqueeze(batch, 0), w.Ints({kv_heads}), w.Unsqueeze(key_size, 0), w.Unsqueeze(value_size, 0)},
           {{"axis", int64_t{0}}});
  return w.Op("ConstantOfShape", {shape});
}

// 1 / scale.
std::string Divisor(const RawNode& node, int64_t heads, int64_t wide, RawWriter& w) {
  const auto* scale = FindAttribute<double>(node, "scale");
  if (scale != nullptr && *scale != 0) {
    return w.Op("Cast", {w.Op("Constant", {}, {{"value_float", 1 / *scale}})}, {{"to", wide}});
  }
  const std::string key_size = w.Op("Div", {w.Extent(node.inputs[0], 2), w.Int(heads)});
  return w.Op("Sqrt", {w.Op("Cast", {key_size}, {{"to", wide}})});
}

template <int64_t wide>
absl::StatusOr<AsLoop> SpellDeltaRule(const RawNode& node, int64_t /*opset*/) {
  const int64_t heads = IntOf(node, "q_num_heads", 0), kv_heads = IntOf(node, "kv_num_heads", 0);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0) {
    return absl::InvalidArgumentError(
        fmt::format("q_num_heads ({}) must be a multiple of kv_num_heads ({})", heads, kv_heads));
  }
  RawWriter before("delta:"), inside("delta:body:"), after("delta:after:");
  const std::string past = InputOf(node, 3);
  const std::string first = past.empty() ? NoState(node, heads, kv_heads, before) : past;
  const std::string divisor = Divisor(node, heads, wide, before);
  RawGraph body;
  body.inputs = {{.name = "delta:step"}, {.name = "delta:goes_on"}, {.name = "delta:state"}};
  DeltaStep step(node, wide, inside);
  const std::string state = step.Write(kv_heads);
  const std::string read = inside.Op("MatMul", {step.At(0, {0, kv_heads, heads / kv_heads, -1}), state});
  const std::string row = inside.Op("Reshape", {inside.Op("Div", {read, divisor}), inside.Ints({0, -1})});
  body.outputs = {"delta:goes_on", state, inside.Op("CastLike", {row, node.inputs[0]})};
  body.nodes = inside.Take();
  RawNode loop = MakeLoop(node, before.Extent(node.inputs[0], 1), "", std::move(body));
  loop.inputs.push_back(before.Op("Cast", {first}, {{"to", wide}}));
  loop.outputs = {"delta:present", "delta:rows"};
  AsLoop result = {.nodes = before.Take(), .axes = {1, 0}, .reversed = {false, false}};
  result.nodes.push_back(std::move(loop));
  result.outputs = {"delta:rows", after.Op("CastLike", {"delta:present", past.empty() ? node.inputs[0] : past})};
  for (RawNode& last : after.Take()) result.nodes.push_back(std::move(last));
  result.outputs.resize(node.outputs.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) result.outputs[i].clear();
  }
  return result;
}

// Null if the operator's own function takes it: other rules, a few positions, and forms that it refuses.
SpellAsLoop FindDeltaRule(const RawNode& node, const TensorType* first) {
  const auto* rule = FindAttribute<std::string>(node, "update_rule");
  const bool gated = rule == nullptr || *rule == "gated_delta";
  if ((!gated && *rule != "delta") || first == nullptr || first->shape.size() != 3) return nullptr;
  if (first->shape[1].IsFixed() && first->shape[1].value() <= kUnrolledDeltaPositionsMax) return nullptr;
  if (gated == InputOf(node, 4).empty() || InputOf(node, 5).empty()) return nullptr;
  if (first->dtype == ir::DType::kFloat64) return SpellDeltaRule<11>;
  return SpellDeltaRule<1>;
}

}  // namespace

SpellAsLoop FindAsLoop(const RawNode& node, const TensorType* first) {
  if (!node.domain.empty()) return nullptr;
  if (node.op == "Scan") return SpellScan;
  if (node.op == "NonMaxSuppression") return SpellNonMaxSuppression;
  if (node.op == "LinearAttention") return FindDeltaRule(node, first);
  const size_t time_axis = IntOf(node, "layout", 0) != 0 ? 1 : 0;
  const bool is_open = HasRecurrence(node) && first != nullptr && first->shape.size() == 3 &&
                       !first->shape[time_axis].IsFixed() && node.inputs.size() > kRecurrent;
  if (!is_open) return nullptr;
  // The products would be rounded to a short type.
  return ir::SizeOf(first->dtype) < 4 ? SpellRecurrence<false> : SpellRecurrence<true>;
}

absl::StatusOr<ValueId> PlaceRows(Graph& graph, ValueId rows, int64_t axis, bool reversed) {
  if (axis == 0 && !reversed) return rows;
  if (reversed) {
    HONE_ASSIGN_OR_RETURN(rows, AddOp(graph, "Slice",
                                      {rows, AddInts(graph, "starts", {-1}),
                                       AddInts(graph, "ends", {std::numeric_limits<int64_t>::min()}),
                                       AddInts(graph, "axes", {0}), AddInts(graph, "steps", {-1})}));
  }
  const size_t rank = graph.values[rows].type.shape.size();
  const int64_t place = AxisFromFront(axis, rank);
  if (place < 0 || place >= static_cast<int64_t>(rank)) {
    return absl::InvalidArgumentError(fmt::format("axis {} is not one of {} dimensions", axis, rank));
  }
  if (place == 0) return rows;
  std::vector<int64_t> order;
  for (int64_t d = 1; d < static_cast<int64_t>(rank); ++d) order.push_back(d);
  order.insert(order.begin() + place, 0);
  return AddOp(graph, "Transpose", {rows}, {{"perm", std::move(order)}});
}

}  // namespace hone::graph
