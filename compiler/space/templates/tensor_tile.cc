// SPDX-License-Identifier: Apache-2.0
// The template of products of 8-bit integers on targets with instructions for them: register tiles of tensor
// instructions.
//
// The instruction decides the types of both operands, so an operand of another type is recoded. Offsets (zero points,
// and 128 for a recoded operand) are subtracted from the sum. The operand whose rows lie along vectors is packed in
// tiles with several steps of the reduction side by side, as the instruction reads them. The other operand must have
// these steps side by side too, or gets a copy that has. All of it is exact.
#include "compiler/space/templates/tensor_tile.h"

#include <algorithm>
#include <optional>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/operands.h"

namespace hone::space {
namespace {

constexpr int64_t kSerialSumsMax = 64;       // with at most so many sums, one thread is faster than several
constexpr int64_t kInstructionStepsMin = 3;  // with fewer steps of the reduction, an instruction would mostly add zeros

// The 8-bit load that the factor casts to i32, less an offset that is the same all along the reduction; null if the
// factor has another form.
const ir::Load* NumberOf(const ir::Expr& e, const std::vector<ir::Axis>& reduced) {
  const auto varies = [&](const ir::Expr& x) {
    return std::any_of(reduced.begin(), reduced.end(), [&](const ir::Axis& a) { return ir::UsesVar(x, a.name); });
  };
  if (const ir::Cast* cast = e.As<ir::Cast>()) {
    const bool exact = cast->type.dtype == ir::DType::kInt32;
    const ir::Load* load = cast->value.As<ir::Load>();
    const bool byte = load != nullptr && ir::SizeOf(load->buffer->dtype) == 1 && ir::IsInt(load->buffer->dtype);
    return exact && byte ? load : nullptr;
  }
  const ir::Binary* binary = e.As<ir::Binary>();
  if (binary == nullptr || binary->op != ir::BinaryOp::kSub || varies(binary->b)) return nullptr;
  return NumberOf(binary->a, reduced);
}

const ir::Axis* VectorAxis(const ir::Stage& s) {
  const auto axis = std::find_if(s.axes.rbegin(), s.axes.rend(), [](const ir::Axis& a) { return a.extent.max() > 1; });
  return axis == s.axes.rend() ? nullptr : &*axis;
}

// The dimension of which the axis alone is the index; -1 if there is none.
int DimOf(const ir::Load& load, const std::string& axis) {
  for (size_t d = 0; d < load.indices.size(); ++d) {
    const ir::Var* v = load.indices[d].As<ir::Var>();
    if (v != nullptr && v->name == axis) return static_cast<int>(d);
  }
  return -1;
}

// A sum of products of 8-bit integers. a is the same for all elements of a vector, b is read as vectors. k is the axis
// of the reduction of which an instruction takes several steps.
struct ByteProduct {
  ir::Load a, b;
  std::string k;
};

std::optional<ByteProduct> AsByteProduct(const ir::Stage& s) {
  const ir::Binary* product = s.value.As<ir::Binary>();
  const ir::Axis* vector = VectorAxis(s);
  if (s.reduction != ir::Reduction::kSum || s.buffer->dtype != ir::DType::kInt32 || product == nullptr ||
      product->op != ir::BinaryOp::kMul || vector == nullptr) {
    return std::nullopt;
  }
  const ir::Load *a = NumberOf(product->a, s.reduce_axes), *b = NumberOf(product->b, s.reduce_axes);
  if (a == nullptr || b == nullptr || a->buffer == b->buffer) return std::nullopt;
  const ir::Ranges ranges = AxisRanges(s);
  if (StrideOf(*a, vector->name, ranges) != 0) std::swap(a, b);
  if (StrideOf(*a, vector->name, ranges) != 0 || StrideOf(*b, vector->name, ranges) == 0) return std::nullopt;
  if (PackedOrder(*b, vector->name, 1, ReductionOrder(s, vector->name)).empty()) return std::nullopt;
  const ir::Axis* k = nullptr;
  const auto along_memory = [&](const ir::Axis& axis) { return StrideOf(*a, axis.name, ranges) == 1; };
  for (const ir::Axis& axis : s.reduce_axes) {
    if (DimOf(*a, axis.name) < 0 || DimOf(*b, axis.name) < 0 || axis.extent.max() < kInstructionStepsMin) continue;
    if (k == nullptr || (along_memory(axis) && !along_memory(*k)) ||
        (along_memory(axis) == along_memory(*k) && axis.extent.max() > k->extent.max())) {
      k = &axis;
    }
  }
  return k == nullptr ? std::nullopt : std::optional(ByteProduct{*a, *b, k->name});
}

// The instructions whose rows are no longer than the stage's. Those whose operands are cheapest to recode come first.
std::vector<ir::TensorInstruction> InstructionsFor(const ir::Stage& s, const ByteProduct& product,
                                                   const target::Target& target, bool fixed_a, bool fixed_b) {
  std::vector<std::pair<int, ir::TensorInstruction>> found;
  for (const ir::TensorInstruction instruction : target.tensor_instructions) {
    const ir::TensorInstructionEntry& entry = ir::EntryOf(instruction);
    const bool bytes = ir::SizeOf(entry.a) == 1 && ir::SizeOf(entry.b) == 1 && entry.sum == ir::DType::kInt32;
    if (!bytes || entry.m != 1 || entry.n > VectorAxis(s)->extent.max()) continue;
    const int cost = (product.a.buffer->dtype != entry.a ? (fixed_a ? 1 : 4) : 0) +
                     (product.b.buffer->dtype != entry.b ? (fixed_b ? 1 : 2) : 0);
    found.emplace_back(cost, instruction);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<ir::TensorInstruction> instructions;
  for (const auto& [cost, instruction] : found) instructions.push_back(instruction);
  return instructions;
}

class TensorTile {
 public:
  TensorTile(Sketch& sketch, std::string stage) : sketch_(sketch), stage_(std::move(stage)) {}

  // The instruction to use, after all operands are as it wants them; nullopt if there is none for the stage.
  absl::StatusOr<std::optional<TensorUse>> Prepare() {
    const ir::Stage s = sketch_.Get(stage_).stage;
    const auto product = AsByteProduct(s);
    if (!product.has_value()) return std::nullopt;
    const std::vector<ir::TensorInstruction> instructions =
        InstructionsFor(s, *product, sketch_.target, schedule::IsFixed(sketch_.state, product->a.buffer.get()),
                        schedule::IsFixed(sketch_.state, product->b.buffer.get()));
    if (instructions.empty()) return std::nullopt;
    std::vector<int64_t> ids;
    for (const ir::TensorInstruction i : instructions) ids.push_back(ir::EntryOf(i).number);
    const int64_t preferred = ids[0];
    std::sort(ids.begin(), ids.end());
    const ir::TensorInstruction instruction =
        ir::InstructionOfNumber(sketch_.chooser.OneOf(stage_ + ".instruction", ids, preferred));
    const ir::TensorInstructionEntry& entry = ir::EntryOf(instruction);
    HONE_RETURN_IF_ERROR(RecodeOperand(product->a.buffer, entry.a));
    HONE_RETURN_IF_ERROR(RecodeOperand(product->b.buffer, entry.b));
    HONE_RETURN_IF_ERROR(PackSteps(product->k, entry.k));
    TensorUse use{instruction, product->k, stage_};
    const ir::Stage prepared = sketch_.Get(stage_).stage;
    const ir::Binary* value = prepared.value.As<ir::Binary>();
    if (value->a.As<ir::Cast>() == nullptr || value->b.As<ir::Cast>() == nullptr) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Distribute{stage_}));
      use.k += "m";
      use.stage += "m";
      // The offset of one factor times the sum of the other factor is subtracted, so the sums are needed.
      for (const char* factor : {"a", "b"}) HONE_RETURN_IF_ERROR(SumFactor(stage_ + factor));
    }
    return use;
  }

 private:
  absl::Status RecodeOperand(const ir::Buffer& buffer, ir::DType wanted) {
    if (buffer->dtype == wanted) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const std::string recoded, sketch_.Recode(buffer->name, stage_));
    return TakeProducers(recoded);
  }

  // Packs a so that `steps` steps along k lie side by side, padded with zeros to whole groups. Nothing is done if a has
  // that layout.
  absl::Status PackSteps(const std::string& k, int64_t steps) {
    const ir::Stage s = sketch_.Get(stage_).stage;
    const auto product = AsByteProduct(s);
    HONE_CHECK(product.has_value());
    const ir::Load& a = product->a;
    const int dim = DimOf(a, k);
    const bool together =
        StrideOf(a, k, AxisRanges(s)) == 1 && Divides(steps, a.buffer->shape[static_cast<size_t>(dim)]);
    if (together) return absl::OkStatus();
    std::vector<schedule::PackDim> dims;
    for (int d = 0; d < static_cast<int>(a.indices.size()); ++d) {
      dims.push_back(d == dim ? schedule::PackDim{d, steps, false} : schedule::PackDim{d});
    }
    dims.push_back({dim, steps, true});
    HONE_ASSIGN_OR_RETURN(const std::string packed, sketch_.Pack(a.buffer->name, stage_, std::move(dims)));
    return TakeProducers(packed);
  }

  // Inlines element-wise stages that only the copy reads, such as padding and recoding, into the copy.
  absl::Status TakeProducers(const std::string& copy) {
    if (sketch_.Get(copy).prepared) return absl::OkStatus();
    for (std::vector<std::string> own = OwnProducers(sketch_.state, sketch_.Get(copy).stage); !own.empty();
         own = OwnProducers(sketch_.state, sketch_.Get(copy).stage)) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Inline{own[0]}));
    }
    return absl::OkStatus();
  }

  // Schedules the sums of one factor. Vectors lie along the reduction if that is contiguous in memory, else along the
  // results.
  absl::Status SumFactor(const std::string& sums) {
    const schedule::Nest* nest = sketch_.state.FindNest(sums);
    if (nest == nullptr || nest->prepared || nest->stage.axes.empty()) return absl::OkStatus();
    const ir::Stage s = nest->stage;
    const int64_t width = sketch_.target.VectorWidth(4);
    const ir::Load load = LoadsOf(s)[0];
    const auto runs_along = [&](const ir::Axis& a) { return StrideOf(load, a.name, AxisRanges(s)) == 1; };
    const auto axis = std::find_if(s.reduce_axes.begin(), s.reduce_axes.end(),
                                   [&](const ir::Axis& a) { return a.extent.max() >= 2 * width && runs_along(a); });
    std::string partials;  // the stage of partial sums; empty: the sums are made in one go
    if (axis != s.reduce_axes.end()) {
      HONE_ASSIGN_OR_RETURN(const Partials made, sketch_.Rfactor({sums, axis->name, width, true}));
      partials = made.stage;
    } else if (runs_along(s.axes.back()) && s.axes.back().extent.max() >= width) {
      return SumColumns(s, width);
    }
    std::vector<std::string> results;
    for (const ir::Axis& a : s.axes) results.push_back(a.name);
    HONE_ASSIGN_OR_RETURN(const std::string loop, sketch_.FuseAll(results));
    if (!partials.empty()) HONE_RETURN_IF_ERROR(VectorizePart(partials, loop));
    return Parallelize(s, loop);
  }

  // Reduces one vector of results at a time.
  absl::Status SumColumns(const ir::Stage& s, int64_t lanes) {
    const std::string& column = s.axes.back().name;
    HONE_ASSIGN_OR_RETURN(const SplitLoops vectors, sketch_.Split(column, lanes, schedule::Tail::kMask));
    schedule::Reorder order{{vectors.outer}};
    for (const ir::Axis& a : s.reduce_axes) order.loops.push_back(a.name);
    order.loops.push_back(vectors.inner);
    HONE_RETURN_IF_ERROR(sketch_.Do(order));
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Annotate{vectors.inner, ir::LoopKind::kVectorized}));
    return Parallelize(s, vectors.outer);
  }

  absl::Status Parallelize(const ir::Stage& s, const std::string& loop) {
    const bool worthwhile = sketch_.target.threads > 1 && ir::NumElements(*s.buffer) > kSerialSumsMax;
    const std::string name = s.buffer->name + ".parallel";
    if (sketch_.chooser.OneOf(name, {0, 1}, worthwhile ? 1 : 0) == 0) return absl::OkStatus();
    return sketch_.Do(schedule::Annotate{loop, ir::LoopKind::kParallel});
  }

  absl::Status VectorizePart(const std::string& part, const std::string& loop) {
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{part, loop}));
    const ir::Stage s = sketch_.Get(part).stage;
    schedule::Reorder order;
    for (const ir::Axis& a : s.reduce_axes) order.loops.push_back(a.name);
    order.loops.push_back(s.axes.back().name);
    HONE_RETURN_IF_ERROR(sketch_.Do(order));
    return sketch_.Do(schedule::Annotate{s.axes.back().name, ir::LoopKind::kVectorized});
  }

  Sketch& sketch_;
  const std::string stage_;
};

}  // namespace

bool HasTensorProduct(const ir::Workload& workload, const target::Target& target) {
  const auto fixed = [&](const ir::Buffer& buffer) {
    return std::any_of(workload.params.begin(), workload.params.end(),
                       [&](const ir::Param& p) { return p.buffer == buffer && p.kind == ir::ParamKind::kConstant; });
  };
  return std::any_of(workload.stages.begin(), workload.stages.end(), [&](const ir::Stage& s) {
    const auto product = AsByteProduct(s);
    return product.has_value() &&
           !InstructionsFor(s, *product, target, fixed(product->a.buffer), fixed(product->b.buffer)).empty();
  });
}

absl::StatusOr<std::optional<TensorUse>> PrepareTensorProduct(Sketch& sketch, const std::string& stage) {
  return TensorTile(sketch, stage).Prepare();
}

}  // namespace hone::space
