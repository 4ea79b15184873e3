// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/traits.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/ir/match.h"

namespace hone::graph {
namespace {

constexpr double kWindowReadsMax = 32;  // a window of 5 x 5 reads an element 25 times

bool IsVar(const ir::Expr& e, const ir::Axis& axis) {
  const auto* var = e.As<ir::Var>();
  return var != nullptr && var->name == axis.name;
}

ir::Shape Extents(const std::vector<ir::Axis>& axes) {
  ir::Shape extents;
  for (const ir::Axis& axis : axes) extents.push_back(axis.extent);
  return extents;
}

// Classifies a load by how its indices relate to the surrounding loops `axes`.
Access Classify(const ir::Load& load, const std::vector<ir::Axis>& axes) {
  if (load.mask.defined()) return Access::kOther;
  const ir::Shape& shape = load.buffer->shape;
  bool same = shape == Extents(axes);
  size_t next = 0;  // the first axis that later indices may still use
  for (size_t d = 0; d < load.indices.size(); ++d) {
    const ir::Expr& index = load.indices[d];
    if (ir::IsZero(index) && shape[d] == 1) continue;
    size_t axis = next;
    while (axis < axes.size() && !IsVar(index, axes[axis])) ++axis;
    if (axis == axes.size() || axes[axis].extent != shape[d]) return Access::kOther;
    same = same && axis == d;
    next = axis + 1;
  }
  return same ? Access::kSame : Access::kBroadcast;
}

Access Worse(Access a, Access b) { return std::max(a, b); }

// The access of every buffer that the stage loads. A buffer loaded in several ways gets the most general one.
std::map<const ir::BufferNode*, Access> StageAccess(const ir::Stage& stage, const std::vector<ir::Axis>& axes) {
  std::map<const ir::BufferNode*, Access> access;
  ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
    const auto* load = e.As<ir::Load>();
    if (load == nullptr) return;
    Access& known = access.try_emplace(load->buffer.get(), Access::kNone).first->second;
    known = Worse(known, Classify(*load, axes));
  });
  return access;
}

// The node's only present output, or nullptr.
const ir::BufferNode* OnlyOutput(const EmittedNode& emitted) {
  const ir::BufferNode* only = nullptr;
  for (const ir::Buffer& output : emitted.outputs) {
    if (output != nullptr && only != nullptr) return nullptr;
    if (output != nullptr) only = output.get();
  }
  return only;
}

// Sets traits.elementwise and traits.access.
void FindElementwise(const EmittedNode& emitted, NodeTraits& traits) {
  const ir::BufferNode* output = OnlyOutput(emitted);
  if (output == nullptr || traits.reduces) return;
  std::map<const ir::BufferNode*, Access> total;
  // From the last stage backwards, so that the access to a stage's result is known before the stage's own loads are
  // classified.
  total[output] = Access::kSame;
  for (auto stage = emitted.stages.rbegin(); stage != emitted.stages.rend(); ++stage) {
    if (stage->buffer->shape != output->shape) return;
    const auto outer = total.find(stage->buffer.get());
    if (outer == total.end()) continue;
    const Access outer_access = outer->second;
    for (const auto& [buffer, access] : StageAccess(*stage, stage->axes)) {
      Access& known = total.try_emplace(buffer, Access::kNone).first->second;
      known = Worse(known, Worse(outer_access, access));
    }
  }
  traits.elementwise = !emitted.stages.empty();
  for (const ir::Buffer& input : emitted.inputs) {
    const auto it = total.find(input.get());
    traits.access.push_back(it == total.end() ? Access::kNone : it->second);
    if (traits.access.back() == Access::kOther) traits.elementwise = false;
  }
}

// Returns true if the loops `axes` visit every element of the loaded buffer exactly once.
bool VisitsEachOnce(const ir::Load& load, std::vector<ir::Axis> axes) {
  if (load.mask.defined()) return false;
  for (size_t d = 0; d < load.indices.size(); ++d) {
    const ir::Size& extent = load.buffer->shape[d];
    if (ir::IsZero(load.indices[d]) && extent == 1) continue;
    const auto axis =
        std::find_if(axes.begin(), axes.end(), [&](const ir::Axis& a) { return IsVar(load.indices[d], a); });
    if (axis == axes.end() || axis->extent != extent) return false;
    axes.erase(axis);
  }
  return std::all_of(axes.begin(), axes.end(), [](const ir::Axis& axis) { return axis.extent == 1; });
}

bool ReadsOnce(const EmittedNode& emitted) {
  const ir::Stage* reader = nullptr;
  const ir::BufferNode* read = nullptr;
  bool once = true;
  for (const ir::Stage& stage : emitted.stages) {
    std::vector<ir::Axis> axes = stage.axes;
    axes.insert(axes.end(), stage.reduce_axes.begin(), stage.reduce_axes.end());
    ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
      const auto* load = e.As<ir::Load>();
      if (load == nullptr) return;
      if (std::find(emitted.inputs.begin(), emitted.inputs.end(), load->buffer) == emitted.inputs.end()) return;
      if (reader == nullptr) reader = &stage, read = load->buffer.get();
      once = once && reader == &stage && read == load->buffer.get() && VisitsEachOnce(*load, axes);
    });
  }
  return once && reader != nullptr && reader->reduction != ir::Reduction::kNone;
}

// Returns true if the stage computes one element per row, and the load takes an element of that row at a place that is
// the same in all rows.
bool TakesOneElement(const ir::Load& load, const ir::Stage& stage, const NodeTraits& traits) {
  if (load.mask.defined() || load.buffer->shape != traits.row_shape) return false;
  if (stage.reduction != ir::Reduction::kNone) return false;
  if (!IsRowReduced(stage.buffer->shape, traits.row_shape, traits.row_outer)) return false;
  for (size_t d = 0; d < load.indices.size(); ++d) {
    const ir::Expr& index = load.indices[d];
    const bool fixed = std::none_of(stage.axes.begin(), stage.axes.end(),
                                    [&](const ir::Axis& axis) { return ir::UsesVar(index, axis.name); });
    if (d < traits.row_outer ? !IsVar(index, stage.axes[d]) : !fixed) return false;
  }
  return true;
}

// Returns true if every load in the stage fits rows of this shape: complete rows at the loop indices, or one element of
// each row, reduced values at their row's indices, and other buffers as vectors along the row.
bool LoadsFitRows(const ir::Stage& stage, const NodeTraits& traits) {
  std::vector<ir::Axis> axes = stage.axes;
  if (stage.reduction != ir::Reduction::kNone) {
    axes.resize(traits.row_outer);  // trailing ones may follow; they replace the reduced loops
    axes.insert(axes.end(), stage.reduce_axes.begin(), stage.reduce_axes.end());
  }
  const bool whole_rows = axes.size() == traits.row_shape.size();
  bool fits = true;
  ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
    const auto* load = e.As<ir::Load>();
    if (load == nullptr || TakesOneElement(*load, stage, traits)) return;
    const Access access = Classify(*load, axes);
    const bool is_row = load->buffer->shape == traits.row_shape && whole_rows;
    fits = fits && (is_row ? access == Access::kSame : access != Access::kOther);
  });
  return fits;
}

void FindRow(const EmittedNode& emitted, NodeTraits& traits) {
  if (OnlyOutput(emitted) == nullptr || !traits.reduces) return;
  auto first = std::find_if(emitted.stages.begin(), emitted.stages.end(),
                            [](const ir::Stage& stage) { return stage.reduction != ir::Reduction::kNone; });
  // Takes the row shape from the input over whose trailing dimensions the first reduction runs.
  const ir::Shape reduced = Extents(first->reduce_axes);
  for (const ir::Buffer& input : emitted.inputs) {
    if (input == nullptr || input->shape.size() < reduced.size()) continue;
    const size_t outer = input->shape.size() - reduced.size();
    if (!std::equal(reduced.begin(), reduced.end(), input->shape.begin() + static_cast<std::ptrdiff_t>(outer)))
      continue;
    if (!IsRowReduced(first->buffer->shape, input->shape, outer)) continue;
    traits.row_outer = outer;
    traits.row_shape = input->shape;
    break;
  }
  if (traits.row_shape.empty()) return;
  for (const ir::Stage& stage : emitted.stages) {
    if (stage.reduction == ir::Reduction::kOrder) return;
    const bool reduces = stage.reduction != ir::Reduction::kNone;
    const bool reduced_shape = IsRowReduced(stage.buffer->shape, traits.row_shape, traits.row_outer);
    if (reduces && (!reduced_shape || Extents(stage.reduce_axes) != reduced)) return;
    if (!reduces && !reduced_shape && stage.buffer->shape != traits.row_shape) return;
    if (!LoadsFitRows(stage, traits)) return;
  }
  traits.row = true;
}

// Returns true if the load reads row [i..] while the stage sums for element [i.., n].
bool IsOwnRow(const ir::Load& load, const ir::Stage& stage) {
  if (load.mask.defined() || load.indices.size() != stage.axes.size()) return false;
  std::vector<ir::Axis> axes(stage.axes.begin(), stage.axes.end() - 1);
  axes.push_back(stage.reduce_axes[0]);
  return load.buffer->shape == Extents(axes) && Classify(load, axes) == Access::kSame;
}

// Returns true if the stage multiplies two loaded values.
bool IsProductOfLoads(const ir::Expr& e) {
  const auto* product = e.As<ir::Binary>();
  return product != nullptr && product->op == ir::BinaryOp::kMul && product->a.As<ir::Load>() != nullptr &&
         product->b.As<ir::Load>() != nullptr;
}

void FindSumOfRows(const EmittedNode& emitted, NodeTraits& traits) {
  if (emitted.stages.size() != 1) return;
  const ir::Stage& stage = emitted.stages[0];
  if (stage.reduction != ir::Reduction::kSum || stage.reduce_axes.size() != 1 || stage.axes.size() < 2) return;
  if (!IsProductOfLoads(stage.value)) return;
  const auto* product = stage.value.As<ir::Binary>();
  const auto *a = product->a.As<ir::Load>(), *b = product->b.As<ir::Load>();
  if (a->buffer == b->buffer) return;
  for (size_t i = 0; i < emitted.inputs.size(); ++i) {
    if (emitted.inputs[i] == a->buffer && IsOwnRow(*a, stage)) traits.row_operand = i;
  }
}

// If two inputs are used once, the larger one is chosen.
void FindStreamed(const EmittedNode& emitted, NodeTraits& traits) {
  if (emitted.stages.size() != 1) return;
  const ir::Stage& stage = emitted.stages[0];
  if (stage.reduction != ir::Reduction::kSum || !IsProductOfLoads(stage.value)) return;
  const auto* product = stage.value.As<ir::Binary>();
  std::vector<ir::Axis> axes = stage.axes;
  axes.insert(axes.end(), stage.reduce_axes.begin(), stage.reduce_axes.end());
  int64_t most = 0;
  for (const auto* load : {product->a.As<ir::Load>(), product->b.As<ir::Load>()}) {
    const auto input = std::ranges::find(emitted.inputs, load->buffer);
    const int64_t elements = ir::NumElements(*load->buffer);
    if (input == emitted.inputs.end() || elements <= most || !VisitsEachOnce(*load, axes)) continue;
    traits.streamed_operand = static_cast<size_t>(input - emitted.inputs.begin());
    most = elements;
  }
}

bool Permutes(const EmittedNode& emitted) {
  if (emitted.stages.size() != 1 || OnlyOutput(emitted) == nullptr) return false;
  const ir::Stage& stage = emitted.stages[0];
  const auto* load = stage.value.As<ir::Load>();
  return stage.reduction == ir::Reduction::kNone && load != nullptr && VisitsEachOnce(*load, stage.axes);
}

void FindSumApart(const EmittedNode& emitted, NodeTraits& traits) {
  const ir::BufferNode* output = OnlyOutput(emitted);
  if (output == nullptr || emitted.inputs.empty() || emitted.inputs[0] == nullptr) return;
  std::set<const ir::BufferNode*> data = {emitted.inputs[0].get()};  // the data and every buffer computed from it
  bool apart = true;
  int sums = 0;
  for (const ir::Stage& stage : emitted.stages) {
    if (stage.axes.empty()) return;
    ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
      const auto* load = e.As<ir::Load>();
      if (load == nullptr || !data.contains(load->buffer.get())) return;
      apart = apart && !load->indices.empty() && load->buffer->shape.back() == stage.axes.back().extent &&
              IsVar(load->indices.back(), stage.axes.back());
    });
    if (stage.reduction != ir::Reduction::kNone) {
      if (stage.reduction != ir::Reduction::kSum || !IsProductOfLoads(stage.value)) return;
      ++sums;
    }
    data.insert(stage.buffer.get());
  }
  traits.sums_per_channel = apart && sums == 1 && output->shape.size() > 2;
}

// Element-wise copies of the data, padded ones for example, count as the data.
void FindWindow(const EmittedNode& emitted, NodeTraits& traits) {
  if (OnlyOutput(emitted) == nullptr || emitted.inputs.empty() || emitted.inputs[0] == nullptr) return;
  std::set<const ir::BufferNode*> data = {emitted.inputs[0].get()};
  const int64_t elements = ir::NumElements(*emitted.inputs[0]);
  for (const ir::Stage& stage : emitted.stages) {
    bool reads = false;
    ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
      const auto* load = e.As<ir::Load>();
      reads = reads || (load != nullptr && data.contains(load->buffer.get()));
    });
    if (!reads) continue;
    if (stage.reduction == ir::Reduction::kNone) {
      data.insert(stage.buffer.get());
      continue;
    }
    double loads = 1;
    for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
      for (const ir::Axis& axis : *axes) loads *= static_cast<double>(axis.extent.max());
    }
    traits.window = loads <= kWindowReadsMax * static_cast<double>(elements);
    return;
  }
}

}  // namespace

bool IsRowReduced(const ir::Shape& shape, const ir::Shape& row_shape, size_t outer) {
  if (shape.size() < outer || shape.size() > row_shape.size() || outer > row_shape.size()) return false;
  if (!std::equal(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(outer), row_shape.begin())) return false;
  return std::all_of(shape.begin() + static_cast<std::ptrdiff_t>(outer), shape.end(),
                     [](const ir::Size& extent) { return extent == 1; });
}

absl::StatusOr<NodeTraits> FindTraits(const Graph& graph, const Node& node) {
  if (IsControlFlow(node)) return NodeTraits{};
  HONE_ASSIGN_OR_RETURN(EmittedNode emitted, EmitNode(graph, node));
  NodeTraits traits;
  traits.reduces = std::any_of(emitted.stages.begin(), emitted.stages.end(),
                               [](const ir::Stage& stage) { return stage.reduction != ir::Reduction::kNone; });
  traits.moves_once = FactsOf(node).movement != Movement::kNone && OnlyOutput(emitted) != nullptr;
  traits.reads_once = ReadsOnce(emitted);
  FindElementwise(emitted, traits);
  FindRow(emitted, traits);
  FindSumOfRows(emitted, traits);
  FindStreamed(emitted, traits);
  traits.permutes = Permutes(emitted);
  FindSumApart(emitted, traits);
  FindWindow(emitted, traits);
  return traits;
}

}  // namespace hone::graph
