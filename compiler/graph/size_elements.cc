// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/size_elements.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/emit.h"
#include "compiler/ir/elements.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/whole_form.h"

namespace hone::graph {
namespace {

constexpr int64_t kElementsMax = 1 << 12;  // evaluations of a node's stages

using ExprList = std::vector<ir::Expr>;

bool IsLiteral(const ir::Expr& e) { return e.As<ir::IntImm>() != nullptr || e.As<ir::FloatImm>() != nullptr; }

// The bytes of a constant with these elements, which are numbers.
TensorData ConstantOf(ir::DType dtype, const ExprList& elements) {
  const auto size = static_cast<size_t>(ir::SizeOf(dtype));
  auto bytes = std::make_shared<std::vector<std::byte>>(elements.size() * size);
  for (size_t i = 0; i < elements.size(); ++i) ir::WriteElement(elements[i], bytes->data() + i * size);
  return bytes;
}

// The value of an expression without variables and loads; undefined if it has any.
ir::Expr Evaluated(const ir::Expr& e) {
  bool pure = e.type().width == 1;
  ir::ForEachExpr(e,
                  [&](const ir::Expr& x) { pure = pure && x.As<ir::Var>() == nullptr && x.As<ir::Load>() == nullptr; });
  const ir::DType dtype = e.type().dtype;
  if (!pure || dtype == ir::DType::kFloat16 || dtype == ir::DType::kBFloat16) return {};
  const ir::Buffer result = ir::MakeBuffer("value", dtype, {});
  const ir::Workload workload{
      .op = "fold", .sizes = {}, .params = {}, .stages = {{.buffer = result, .value = e}}, .outputs = {result}};
  const absl::StatusOr<std::vector<ir::Bytes>> bytes = ir::Interpret(workload, {});
  return bytes.ok() ? ir::ReadElement(dtype, bytes->front().data()) : ir::Expr();
}

class ElementEvaluator {
 public:
  ElementEvaluator(const Graph& graph, const EmittedNode& emitted)
      : emitted_(emitted), ranges_(ir::SizeRanges(graph.sizes)) {}

  // Makes the elements of a value known.
  void Add(const ir::Buffer& buffer, const Value& value) {
    if (value.elements != nullptr) {
      known_[buffer.get()] = *value.elements;
      return;
    }
    ExprList elements;
    const auto size = static_cast<size_t>(ir::SizeOf(value.type.dtype));
    for (size_t at = 0; at < value.data->size(); at += size) {
      elements.push_back(ir::ReadElement(value.type.dtype, value.data->data() + at));
    }
    known_[buffer.get()] = std::move(elements);
  }

  // False if a stage cannot be evaluated.
  bool Run() {
    for (const ir::Stage& stage : emitted_.stages) {
      if (!RunStage(stage)) return false;
    }
    return true;
  }

  const ExprList* Find(const ir::Buffer& buffer) const {
    const auto found = known_.find(buffer.get());
    return found == known_.end() ? nullptr : &found->second;
  }

 private:
  // The number of index tuples; nullopt if it is open or too large.
  static std::optional<int64_t> Count(const std::vector<ir::Axis>& axes) {
    int64_t count = 1;
    for (const ir::Axis& axis : axes) {
      if (!axis.extent.IsFixed() || axis.extent.value() > kElementsMax) return std::nullopt;
      count *= axis.extent.value();
      if (count > kElementsMax) return std::nullopt;
    }
    return count;
  }

  // Binds the axes to the indices of the tuple with this number.
  static void Bind(const std::vector<ir::Axis>& axes, int64_t number, ir::VarMap& map) {
    for (size_t d = axes.size(); d-- > 0;) {
      const int64_t extent = axes[d].extent.value();
      map[axes[d].name] = ir::Expr(number % extent);
      number /= extent;
    }
  }

  bool RunStage(const ir::Stage& stage) {
    const std::optional<int64_t> count = Count(stage.axes), reduced = Count(stage.reduce_axes);
    if (!count.has_value() || !reduced.has_value() || stage.reduction == ir::Reduction::kOrder) return false;
    evaluations_ += *count * *reduced;
    if (evaluations_ > kElementsMax) return false;
    ExprList elements;
    for (int64_t i = 0; i < *count; ++i) {
      ir::Expr element;
      if (stage.reduction != ir::Reduction::kNone) {
        element = ir::Identity(stage.reduction, {stage.buffer->dtype, 1});
      }
      for (int64_t r = 0; r < *reduced; ++r) {
        ir::VarMap map;
        Bind(stage.axes, i, map);
        Bind(stage.reduce_axes, r, map);
        const ir::Expr value = Evaluate(ir::Substitute(stage.value, map));
        if (!value.defined()) return false;
        element = element.defined() ? Simplified(ir::Combine(stage.reduction, element, value)) : value;
      }
      elements.push_back(element);
    }
    known_[stage.buffer.get()] = std::move(elements);
    return true;
  }

  ir::Expr Simplified(const ir::Expr& e) const {
    ir::Expr simple = ir::Simplify(e, ranges_);
    // Sizes know only floor division, which is the same where nothing is negative.
    const auto* binary = simple.As<ir::Binary>();
    const bool divides = binary != nullptr && binary->op == ir::BinaryOp::kDiv;
    const bool remains = binary != nullptr && binary->op == ir::BinaryOp::kMod;
    if ((divides || remains) && simple.type() == ir::kIndexType && ir::BoundsOf(binary->a, ranges_).low >= 0 &&
        ir::BoundsOf(binary->b, ranges_).low > 0) {
      const auto op = divides ? ir::BinaryOp::kFloorDiv : ir::BinaryOp::kFloorMod;
      simple = ir::Simplify(ir::MakeBinary(op, binary->a, binary->b), ranges_);
    }
    if (IsLiteral(simple)) return simple;
    const ir::Expr folded = Evaluated(simple);
    return folded.defined() ? folded : simple;
  }

  // Undefined if a load or a condition is not decided.
  ir::Expr Evaluate(const ir::Expr& e) const {
    if (const auto* select = e.As<ir::Select>()) {
      const ir::Expr condition = Evaluate(select->condition);
      if (!condition.defined()) return {};
      const auto* known = condition.As<ir::IntImm>();
      if (known == nullptr) return {};
      return Evaluate(known->value != 0 ? select->on_true : select->on_false);
    }
    if (const auto* load = e.As<ir::Load>()) return EvaluateLoad(*load);
    bool defined = true;
    const ir::Expr mapped = ir::MapChildren(e, [&](const ir::Expr& child) {
      ir::Expr value = Evaluate(child);
      defined = defined && value.defined();
      return value.defined() ? value : child;
    });
    return defined ? Simplified(mapped) : ir::Expr();
  }

  ir::Expr EvaluateLoad(const ir::Load& load) const {
    const auto elements = known_.find(load.buffer.get());
    if (elements == known_.end() || load.mask.defined() || !ir::IsFixed(load.buffer->shape)) return {};
    int64_t place = 0;
    for (size_t d = 0; d < load.indices.size(); ++d) {
      const ir::Expr index = Evaluate(load.indices[d]);
      const auto* number = index.defined() ? index.As<ir::IntImm>() : nullptr;
      const int64_t extent = load.buffer->shape[d].value();
      if (number == nullptr || number->value < 0 || number->value >= extent) return {};
      place = place * extent + number->value;
    }
    return elements->second[static_cast<size_t>(place)];
  }

  const EmittedNode& emitted_;
  ir::Ranges ranges_;
  std::map<const ir::BufferNode*, ExprList> known_;
  int64_t evaluations_ = 0;
};

}  // namespace

absl::StatusOr<bool> FoldElements(Graph& graph, const Node& node) {
  if (graph.sizes.empty() || IsControlFlow(node)) return false;
  HONE_ASSIGN_OR_RETURN(const std::vector<ElementExprs> results, EvaluateElements(graph, node));
  if (results.empty()) return false;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kAbsent) continue;
    Value& value = graph.values[node.outputs[i]];
    const bool constant = std::ranges::all_of(*results[i], IsLiteral);
    value.elements = constant ? nullptr : results[i];
    if (constant) value.data = ConstantOf(value.type.dtype, *results[i]);
  }
  return true;
}

std::optional<ValueEnds> ValuesAtEnds(const ir::Expr& element, std::span<const ir::OpenSize> symbols) {
  constexpr size_t kSizesMax = 8;
  std::vector<ir::OpenSize> used;
  for (const ir::OpenSize& symbol : symbols) {
    if (ir::UsesVar(element, symbol.name)) used.push_back(symbol);
  }
  if (used.size() > kSizesMax || !ir::IsInt(element.type().dtype)) return std::nullopt;
  std::optional<ValueEnds> ends;
  for (size_t corner = 0; corner < size_t{1} << used.size(); ++corner) {
    ir::VarMap values;
    for (size_t i = 0; i < used.size(); ++i) {
      values[used[i].name] = ir::Expr((corner >> i & 1) != 0 ? used[i].max : used[i].min);
    }
    const ir::Expr value = Evaluated(ir::Substitute(element, values));
    const auto* number = value.defined() ? value.As<ir::IntImm>() : nullptr;
    if (number == nullptr) return std::nullopt;
    if (!ends.has_value()) ends = ValueEnds{number->value, number->value};
    ends->smallest = std::min(ends->smallest, number->value);
    ends->largest = std::max(ends->largest, number->value);
  }
  return ends;
}

std::optional<ir::Shape> SizesOf(std::span<const ir::Expr> elements, std::span<const ir::OpenSize> symbols) {
  ir::Shape sizes;
  for (const ir::Expr& element : elements) {
    std::optional<ir::Size> size = ir::ToSize(element, symbols);
    if (!size.has_value()) {
      const std::optional<ir::Expr> whole = ir::WithoutFloats(element, ir::SizeRanges(symbols));
      if (whole.has_value()) size = ir::ToSize(*whole, symbols);
    }
    if (!size.has_value()) return std::nullopt;
    sizes.push_back(*std::move(size));
  }
  return sizes;
}

absl::StatusOr<std::vector<ElementExprs>> EvaluateElements(const Graph& graph, const Node& node) {
  HONE_ASSIGN_OR_RETURN(const EmittedNode emitted, EmitNode(graph, node));
  ElementEvaluator evaluator(graph, emitted);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kAbsent) continue;
    const Value& value = graph.values[node.inputs[i]];
    if (value.elements == nullptr && (value.data == nullptr || value.type.elements().value() > kElementsMax)) continue;
    evaluator.Add(emitted.inputs[i], value);
  }
  if (!evaluator.Run()) return std::vector<ElementExprs>{};
  std::vector<ElementExprs> results;
  for (const ir::Buffer& output : emitted.outputs) {
    const ExprList* elements = output == nullptr ? nullptr : evaluator.Find(output);
    if (output != nullptr && elements == nullptr) return std::vector<ElementExprs>{};
    results.push_back(elements == nullptr ? nullptr : std::make_shared<const ExprList>(*elements));
  }
  return results;
}

}  // namespace hone::graph
