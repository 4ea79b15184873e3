// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/import_sequence.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/node_order.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

constexpr int64_t kSequenceStepsMax = 256;
constexpr int64_t kSplitPartsMax = 65'536;  // of a tensor that is split; each is a node
constexpr std::string_view kSequenceOperators[] = {"SequenceConstruct",  "SequenceEmpty",      "SequenceInsert",
                                                   "SequenceErase",      "SequenceAt",         "SequenceLength",
                                                   "ConcatFromSequence", "SequenceMap",        "Optional",
                                                   "OptionalGetElement", "OptionalHasElement", "SplitToSequence"};

template <typename T>
T AttributeOf(const RawNode& node, const std::string& name, T fallback) {
  const auto found = node.attributes.find(name);
  const T* value = found == node.attributes.end() ? nullptr : std::get_if<T>(&found->second.value);
  return value == nullptr ? fallback : *value;
}

bool IsGivenInput(const std::vector<ValueId>& inputs, size_t i) { return i < inputs.size() && inputs[i] != kAbsent; }

// The elements of a list or scalar of integers that is known; nullopt if it is not.
absl::StatusOr<std::optional<std::vector<int64_t>>> KnownInts(ImportGraph& at, ValueId id, int64_t& steps_left) {
  HONE_RETURN_IF_ERROR(at.FoldValue(id, steps_left).status());
  const Value& value = at.graph.values[id];
  if (value.data == nullptr) return std::nullopt;
  if (value.type.dtype == ir::DType::kInt64) return ReadConstant<int64_t>(value);
  if (value.type.dtype != ir::DType::kInt32) return absl::InvalidArgumentError("a position or length must be integers");
  const std::vector<int32_t> narrow = ReadConstant<int32_t>(value);
  return std::vector<int64_t>(narrow.begin(), narrow.end());
}

ValueId AddScalar(ImportGraph& at, ir::DType dtype, int64_t number) {
  if (dtype == ir::DType::kBool) {
    return AddConstant(at.graph, "optional.present", dtype, {}, std::vector<uint8_t>{number != 0});
  }
  return AddConstant(at.graph, "sequence.number", dtype, {}, std::vector<int64_t>{number});
}

absl::StatusOr<ValueId> InsertAxis(ImportGraph& at, ValueId value, int64_t axis) {
  ir::Shape shape = at.graph.values[value].type.shape;
  shape.insert(shape.begin() + axis, ir::Size(1));
  return AddReshape(at.graph, value, shape);
}

absl::StatusOr<ValueId> AddConcat(ImportGraph& at, std::vector<ValueId> parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  return AddOp(at.graph, "Concat", std::move(parts), {{"axis", axis}});
}

// Joins the rows of a stacked sequence along the axis, which may be new.
absl::StatusOr<ValueId> ConcatStacked(ImportGraph& at, ValueId stacked, int64_t axis, bool is_new) {
  const ir::Shape rows = at.graph.values[stacked].type.shape;
  std::vector<int64_t> order;
  for (int64_t d = 1; d <= axis; ++d) order.push_back(d);
  order.push_back(0);
  for (auto d = static_cast<int64_t>(order.size()); d < static_cast<int64_t>(rows.size()); ++d) order.push_back(d);
  ValueId moved = stacked;
  if (axis > 0) {
    HONE_ASSIGN_OR_RETURN(moved, AddOp(at.graph, "Transpose", {stacked}, {{"perm", order}}));
  }
  if (is_new) return moved;
  ir::Shape shape(rows.begin() + 1, rows.end());
  shape[static_cast<size_t>(axis)] *= rows[0];
  return AddReshape(at.graph, moved, shape);
}

// Operators on sequences, a member function each.
class SequenceImport {
 public:
  SequenceImport(const RawNode& node, const std::vector<ValueId>& inputs, Sequences& all, ImportGraph& at,
                 int64_t& steps_left)
      : node_(node), inputs_(inputs), all_(all), at_(at), steps_left_(steps_left) {}

  absl::StatusOr<ValueId> Run() {
    if (node_.op == "SequenceConstruct") return Construct();
    if (node_.op == "SequenceEmpty") return all_.Add({});
    if (node_.op == "Optional") return inputs_.empty() ? all_.Add({.is_none = true}) : inputs_[0];
    if (node_.op == "OptionalHasElement") {
      return AddScalar(at_, ir::DType::kBool,
                       IsGivenInput(inputs_, 0) && !(Sequences::Is(inputs_[0]) && all_.At(inputs_[0]).is_none) ? 1 : 0);
    }
    if (node_.op == "SplitToSequence") return Split();
    if (!IsGivenInput(inputs_, 0)) return absl::InvalidArgumentError("input 0 is missing");
    if (Sequences::Is(inputs_[0]) && all_.At(inputs_[0]).is_none) {
      if (node_.op == "Identity") return inputs_[0];
      return absl::InvalidArgumentError("its optional input has no element");
    }
    if (node_.op == "OptionalGetElement" || node_.op == "Identity") return inputs_[0];
    if (!Sequences::Is(inputs_[0])) return absl::InvalidArgumentError("input 0 must be a sequence");
    if (node_.op == "SequenceInsert") return Insert();
    if (node_.op == "SequenceErase") return Erase();
    if (node_.op == "SequenceAt") return Element();
    if (node_.op == "SequenceLength") return Length();
    return Concat();
  }

 private:
  absl::StatusOr<ValueId> Construct() {
    for (const ValueId input : inputs_) {
      if (input < 0) return absl::InvalidArgumentError("the elements of a sequence must be tensors");
    }
    return all_.Add({.elements = inputs_});
  }

  absl::StatusOr<Sequence> Listed() const {
    const Sequence& sequence = all_.At(inputs_[0]);
    if (sequence.stacked == kAbsent) return sequence;
    return absl::UnimplementedError(
        "a sequence that a loop makes, whose length only a run knows, can be read and joined, but not changed");
  }

  // The position in [0, count) that input i gives; `fallback` if it is absent, nullopt if it is not known.
  absl::StatusOr<std::optional<size_t>> Position(size_t i, int64_t count, int64_t fallback) {
    int64_t position = fallback;
    if (IsGivenInput(inputs_, i)) {
      if (Sequences::Is(inputs_[i])) return absl::InvalidArgumentError("the position must be a number");
      HONE_ASSIGN_OR_RETURN(const auto numbers, KnownInts(at_, inputs_[i], steps_left_));
      if (!numbers) return std::nullopt;
      if (numbers->size() != 1) return absl::InvalidArgumentError("the position must be one number");
      position = numbers->front();
      if (position < 0) position += static_cast<int64_t>(all_.At(inputs_[0]).elements.size());
    }
    if (position < 0 || position >= count) {
      return absl::InvalidArgumentError(fmt::format("position {} is outside the sequence", position));
    }
    return static_cast<size_t>(position);
  }

  static absl::Status Unknown() {
    return absl::UnimplementedError(
        "the position in the sequence must be known when the model is compiled; if it comes from an input, fix that "
        "with "
        "--bind NAME=VALUES");
  }

  absl::StatusOr<ValueId> Insert() {
    HONE_ASSIGN_OR_RETURN(Sequence sequence, Listed());
    if (!IsGivenInput(inputs_, 1) || Sequences::Is(inputs_[1])) {
      return absl::InvalidArgumentError("input 1 must be a tensor");
    }
    const auto count = static_cast<int64_t>(sequence.elements.size());
    HONE_ASSIGN_OR_RETURN(const std::optional<size_t> position, Position(2, count + 1, count));
    if (!position) return Unknown();
    sequence.elements.insert(sequence.elements.begin() + static_cast<std::ptrdiff_t>(*position), inputs_[1]);
    return all_.Add(std::move(sequence));
  }

  absl::StatusOr<ValueId> Erase() {
    HONE_ASSIGN_OR_RETURN(Sequence sequence, Listed());
    const auto count = static_cast<int64_t>(sequence.elements.size());
    HONE_ASSIGN_OR_RETURN(const std::optional<size_t> position, Position(1, count, count - 1));
    if (!position) return Unknown();
    sequence.elements.erase(sequence.elements.begin() + static_cast<std::ptrdiff_t>(*position));
    return all_.Add(std::move(sequence));
  }

  // A position that only a run knows selects among elements of one type, which are stacked for that.
  absl::StatusOr<ValueId> Element() {
    const Sequence& sequence = all_.At(inputs_[0]);
    if (!IsGivenInput(inputs_, 1)) return absl::InvalidArgumentError("the position is missing");
    ValueId stacked = sequence.stacked;
    if (stacked == kAbsent) {
      const std::vector<ValueId> elements = sequence.elements;
      HONE_ASSIGN_OR_RETURN(const std::optional<size_t> position,
                            Position(1, static_cast<int64_t>(elements.size()), -1));
      if (position) return elements[*position];
      std::vector<ValueId> rows;
      for (const ValueId element : elements) {
        if (at_.graph.values[element].type != at_.graph.values[elements[0]].type) return Unknown();
        HONE_ASSIGN_OR_RETURN(rows.emplace_back(), InsertAxis(at_, element, 0));
      }
      if (rows.empty()) return absl::InvalidArgumentError("the sequence is empty");
      HONE_ASSIGN_OR_RETURN(stacked, AddConcat(at_, std::move(rows), 0));
    }
    if (Sequences::Is(inputs_[1]) || at_.graph.values[inputs_[1]].type.elements() != ir::Size(1)) {
      return absl::InvalidArgumentError("the position must be one number");
    }
    HONE_ASSIGN_OR_RETURN(const ValueId position, AddReshape(at_.graph, inputs_[1], {}));
    return AddOp(at_.graph, "Gather", {stacked, position}, {{"axis", int64_t{0}}});
  }

  absl::StatusOr<ValueId> Length() {
    const Sequence& sequence = all_.At(inputs_[0]);
    if (sequence.stacked == kAbsent) {
      return AddScalar(at_, ir::DType::kInt64, static_cast<int64_t>(sequence.elements.size()));
    }
    const ValueId length = AddSizes(at_.graph, "sequence.length", {at_.graph.values[sequence.stacked].type.shape[0]});
    at_.graph.values[length].type.shape = {};  // a list of one has the same elements
    return length;
  }

  absl::StatusOr<int64_t> AxisIn(size_t rank) const {
    const int64_t axis = AttributeOf<int64_t>(node_, "axis", 0);
    const auto count = static_cast<int64_t>(rank);
    if (axis < -count || axis >= count) return absl::InvalidArgumentError(fmt::format("attribute axis is {}", axis));
    return AxisFromFront(axis, rank);
  }

  absl::StatusOr<ValueId> Concat() {
    const Sequence& sequence = all_.At(inputs_[0]);
    const bool is_new = AttributeOf<int64_t>(node_, "new_axis", 0) != 0;
    if (!node_.attributes.contains("axis")) return absl::InvalidArgumentError("attribute axis is missing");
    if (sequence.stacked != kAbsent) {
      const size_t rank = at_.graph.values[sequence.stacked].type.shape.size() - (is_new ? 0 : 1);
      HONE_ASSIGN_OR_RETURN(const int64_t axis, AxisIn(rank));
      return ConcatStacked(at_, sequence.stacked, axis, is_new);
    }
    std::vector<ValueId> parts = sequence.elements;
    if (parts.empty()) return absl::InvalidArgumentError("the sequence is empty");
    HONE_ASSIGN_OR_RETURN(const int64_t axis, AxisIn(at_.graph.values[parts[0]].type.shape.size() + (is_new ? 1 : 0)));
    for (ValueId& part : parts) {
      if (!is_new) continue;
      HONE_ASSIGN_OR_RETURN(part, InsertAxis(at_, part, axis));
    }
    return AddConcat(at_, std::move(parts), axis);
  }

  // Parts of one length; the last may be shorter.
  static absl::StatusOr<std::vector<int64_t>> EqualParts(int64_t extent, int64_t length) {
    const int64_t count = extent / length + (extent % length != 0 ? 1 : 0);
    if (count > kSplitPartsMax) {
      return absl::UnimplementedError(
          fmt::format("the sequence would have {} elements; at most {} are supported", count, kSplitPartsMax));
    }
    std::vector<int64_t> lengths(static_cast<size_t>(count), length);
    if (extent % length != 0) lengths.back() = extent % length;
    return lengths;
  }

  // The lengths of the parts along a dimension of this extent.
  absl::StatusOr<std::vector<int64_t>> PartLengths(int64_t extent) {
    if (!IsGivenInput(inputs_, 1)) return EqualParts(extent, 1);
    if (Sequences::Is(inputs_[1])) return absl::InvalidArgumentError("input 1 must be a tensor");
    HONE_ASSIGN_OR_RETURN(const auto split, KnownInts(at_, inputs_[1], steps_left_));
    if (!split) return absl::UnimplementedError("the lengths of the parts must be known when the model is compiled");
    if (!at_.graph.values[inputs_[1]].type.shape.empty()) {
      int64_t sum = 0;
      for (const int64_t length : *split) {
        if (length < 0 || __builtin_add_overflow(sum, length, &sum)) sum = -1;
        if (sum < 0) break;
      }
      if (sum != extent) return absl::InvalidArgumentError("the lengths of the parts do not add up to the dimension");
      return *split;
    }
    if (split->empty()) return absl::InvalidArgumentError("the length of a part is missing");
    const int64_t length = split->front();
    if (length <= 0) return absl::InvalidArgumentError("the length of a part must be positive");
    return EqualParts(extent, length);
  }

  absl::StatusOr<ValueId> Split() {
    if (!IsGivenInput(inputs_, 0) || Sequences::Is(inputs_[0])) {
      return absl::InvalidArgumentError("input 0 must be a tensor");
    }
    const ir::Shape shape = at_.graph.values[inputs_[0]].type.shape;
    HONE_ASSIGN_OR_RETURN(const int64_t axis, AxisIn(shape.size()));
    if (!shape[static_cast<size_t>(axis)].IsFixed()) {
      return absl::UnimplementedError(
          fmt::format("dimension {} is open, and the number of parts must be known when the model is compiled", axis));
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, PartLengths(shape[static_cast<size_t>(axis)].value()));
    const bool squeezes = !IsGivenInput(inputs_, 1) && AttributeOf<int64_t>(node_, "keepdims", 1) == 0;
    ir::Shape squeezed = shape;
    squeezed.erase(squeezed.begin() + axis);
    Sequence parts;
    int64_t begin = 0;
    for (const int64_t length : lengths) {
      HONE_ASSIGN_OR_RETURN(ValueId part, AddSlice(at_.graph, inputs_[0], axis, begin, begin + length));
      if (squeezes) {
        HONE_ASSIGN_OR_RETURN(part, AddReshape(at_.graph, part, squeezed));
      }
      parts.elements.push_back(part);
      begin += length;
    }
    return all_.Add(std::move(parts));
  }

  const RawNode& node_;
  const std::vector<ValueId>& inputs_;
  Sequences& all_;
  ImportGraph& at_;
  int64_t& steps_left_;
};

// Runs the body once per element of the first sequence.
absl::StatusOr<std::vector<ValueId>> MapSequences(const RawNode& node, const std::vector<ValueId>& inputs,
                                                  Sequences& all, const InlineBody& inline_body) {
  const auto* body = AttributeOf<std::shared_ptr<const RawGraph>>(node, "body", nullptr).get();
  if (body == nullptr) return absl::InvalidArgumentError("body is missing");
  if (inputs.empty() || !Sequences::Is(inputs[0])) return absl::InvalidArgumentError("input 0 must be a sequence");
  const size_t count = all.At(inputs[0]).elements.size();
  std::vector<Sequence> made(node.outputs.size());
  if (body->outputs.size() < made.size()) return absl::InvalidArgumentError("its body has too few outputs");
  for (const ValueId input : inputs) {
    if (!Sequences::Is(input)) continue;
    if (all.At(input).stacked != kAbsent) {
      return absl::UnimplementedError("the length of a sequence that a loop makes is not known");
    }
    if (all.At(input).elements.size() != count) return absl::InvalidArgumentError("its sequences differ in length");
  }
  for (size_t i = 0; i < count; ++i) {
    std::vector<ValueId> values;
    for (const ValueId input : inputs) values.push_back(Sequences::Is(input) ? all.At(input).elements[i] : input);
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, inline_body(*body, values));
    for (size_t k = 0; k < made.size(); ++k) {
      if (outputs[k] < 0) return absl::InvalidArgumentError("the elements of a sequence must be tensors");
      made[k].elements.push_back(outputs[k]);
    }
  }
  std::vector<ValueId> outputs;
  for (Sequence& sequence : made) outputs.push_back(all.Add(std::move(sequence)));
  return outputs;
}

// Removes the node that appends a tensor to the state, and returns the tensor's name; "" if there is no such node, or
// if the state or the result is read elsewhere.
std::string TakeAppended(std::vector<RawNode>& nodes, const std::string& state, const std::string& result) {
  const auto maker = std::ranges::find_if(
      nodes, [&](const RawNode& node) { return std::ranges::find(node.outputs, result) != node.outputs.end(); });
  if (maker == nodes.end() || maker->op != "SequenceInsert" || !maker->domain.empty()) return "";
  const std::vector<std::string> inputs = maker->inputs;
  if (inputs.size() < 2 || inputs[0] != state || (inputs.size() > 2 && !inputs[2].empty())) return "";
  nodes.erase(maker);
  std::set<std::string> reads;
  for (const RawNode& node : nodes) CollectReads(node, reads);
  return reads.contains(state) || reads.contains(result) ? "" : inputs[1];
}

}  // namespace

ValueId Sequences::Add(Sequence sequence) {
  sequences_.push_back(std::move(sequence));
  return kFirst - static_cast<ValueId>(sequences_.size() - 1);
}

ValueId Sequences::Map(ValueId id, const std::function<ValueId(ValueId)>& map) {
  Sequence mapped = At(id);
  for (ValueId& element : mapped.elements) element = map(element);
  if (mapped.stacked != kAbsent) mapped.stacked = map(mapped.stacked);
  return Add(std::move(mapped));
}

bool Sequences::Handles(const RawNode& node, const std::vector<ValueId>& inputs) {
  if (!node.domain.empty()) return false;
  if (node.op == "Identity") return !inputs.empty() && Is(inputs[0]);
  return std::ranges::find(kSequenceOperators, node.op) != std::end(kSequenceOperators);
}

absl::StatusOr<std::vector<ValueId>> Sequences::Import(const RawNode& node, const std::vector<ValueId>& inputs,
                                                       ImportGraph& at, int64_t& steps_left,
                                                       const InlineBody& inline_body) {
  for (const ValueId input : inputs) {
    const auto small = at.small.find(input);
    if (small != at.small.end()) return SmallTypeError("an input", *small->second);
  }
  if (node.op == "SequenceMap") return MapSequences(node, inputs, *this, inline_body);
  HONE_ASSIGN_OR_RETURN(const ValueId output, SequenceImport(node, inputs, *this, at, steps_left).Run());
  return std::vector<ValueId>{output};
}

absl::StatusOr<std::optional<std::vector<ValueId>>> Sequences::Unroll(const RawNode& loop, const RawGraph& body,
                                                                      const std::vector<ValueId>& inputs,
                                                                      ImportGraph& at, int64_t& steps_left,
                                                                      const InlineBody& inline_body) {
  if (!IsGivenInput(inputs, 0)) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(const auto steps, KnownInts(at, inputs[0], steps_left));
  if (!steps || steps->size() != 1 || steps->front() > kSequenceStepsMax) return std::nullopt;
  std::vector<ValueId> states(inputs.begin() + 2, inputs.end());
  ValueId condition = inputs[1] == kAbsent ? AddScalar(at, ir::DType::kBool, 1) : inputs[1];
  std::vector<std::vector<ValueId>> rows(body.outputs.size() - 1 - states.size());
  for (int64_t step = 0; step < steps->front(); ++step) {
    HONE_RETURN_IF_ERROR(at.FoldValue(condition, steps_left).status());
    if (at.graph.values[condition].data == nullptr) return std::nullopt;
    if (!IsTrue(at.graph.values[condition])) break;
    std::vector<ValueId> values = {AddScalar(at, ir::DType::kInt64, step), condition};
    values.insert(values.end(), states.begin(), states.end());
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, inline_body(body, values));
    if (std::any_of(outputs.begin() + 1 + static_cast<std::ptrdiff_t>(states.size()), outputs.end(), Is) ||
        Is(outputs[0])) {
      return absl::InvalidArgumentError("a condition or a row of its body is a sequence");
    }
    condition = outputs[0];
    std::copy_n(outputs.begin() + 1, states.size(), states.begin());
    for (size_t i = 0; i < rows.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(rows[i].emplace_back(), InsertAxis(at, outputs[1 + states.size() + i], 0));
    }
  }
  std::vector<ValueId> outputs = std::move(states);
  for (std::vector<ValueId>& row : rows) {
    if (row.empty()) return std::nullopt;
    HONE_ASSIGN_OR_RETURN(outputs.emplace_back(), AddConcat(at, std::move(row), 0));
  }
  outputs.resize(loop.outputs.size(), kAbsent);
  return outputs;
}

absl::StatusOr<StackedLoop> StackStates(const RawNode& loop, const RawGraph& body, const std::vector<ValueId>& inputs,
                                        const Sequences& sequences) {
  const size_t states = inputs.size() - 2, rows = body.outputs.size() - 1 - states;
  RawGraph changed = body;
  changed.inputs.resize(2);
  changed.outputs.resize(1);
  StackedLoop result{.loop = loop, .outputs = {}};
  result.loop.inputs.resize(2);
  std::vector<std::string> appended;
  for (size_t k = 0; k < states; ++k) {
    if (!Sequences::Is(inputs[2 + k])) {
      changed.inputs.push_back(body.inputs[2 + k]);
      changed.outputs.push_back(body.outputs[1 + k]);
      result.loop.inputs.push_back(loop.inputs[2 + k]);
      continue;
    }
    const Sequence& first = sequences.At(inputs[2 + k]);
    const bool is_empty = first.elements.empty() && first.stacked == kAbsent && !first.is_none;
    const std::string element =
        is_empty ? TakeAppended(changed.nodes, body.inputs[2 + k].name, body.outputs[1 + k]) : std::string();
    if (element.empty()) {
      return absl::UnimplementedError(
          fmt::format("state {} is a sequence, and the number of steps is not known; it must begin empty, and each "
                      "step must append "
                      "one tensor to it and read it for nothing else",
                      k));
    }
    appended.push_back(element);
  }
  changed.outputs.insert(changed.outputs.end(), body.outputs.begin() + static_cast<std::ptrdiff_t>(1 + states),
                         body.outputs.end());
  changed.outputs.insert(changed.outputs.end(), appended.begin(), appended.end());
  size_t next = 0, next_stack = states - appended.size() + rows;
  result.loop.outputs.assign(changed.outputs.size() - 1, "");
  for (size_t k = 0; k < std::min(states + rows, loop.outputs.size()); ++k) {
    const bool stacks = k < states && Sequences::Is(inputs[2 + k]);
    result.outputs.push_back({stacks ? next_stack++ : next++, stacks});
    result.loop.outputs[result.outputs[k].index] = loop.outputs[k];
  }
  result.loop.attributes["body"].value = std::make_shared<const RawGraph>(std::move(changed));
  return result;
}

}  // namespace hone::graph
