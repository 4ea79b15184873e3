// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/status.h"
#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr ir::DType kWide = ir::DType::kFloat32;

bool IsNarrow(ir::DType dtype) { return dtype == ir::DType::kFloat16 || dtype == ir::DType::kBFloat16; }

// The load of the buffer that e casts to f32; null if e is anything else.
const ir::Load* LoadCastToF32(const ir::Expr& e, const ir::BufferNode* buffer) {
  const ir::Cast* cast = e.As<ir::Cast>();
  const ir::Load* load = cast == nullptr ? nullptr : cast->value.As<ir::Load>();
  return load != nullptr && cast->type.dtype == kWide && load->buffer.get() == buffer ? load : nullptr;
}

}  // namespace

// f32(b[..]) ==> bw[..], where b is f16 or bf16.
absl::Status Apply(const Widen& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  HONE_ASSIGN_OR_RETURN(const ir::Buffer source, FindCopySource(state, *nest, step.buffer));
  if (!IsNarrow(source->dtype)) {
    return absl::FailedPreconditionError(fmt::format("{} is not f16 or bf16", step.buffer));
  }
  ir::Stage wide = CopyStage(fmt::format("{}w{}", step.buffer, step.stage), source);
  wide.buffer = ir::MakeBuffer(wide.buffer->name, kWide, source->shape);
  wide.value = ir::MakeCast({kWide, 1}, wide.value);
  Nest copy = MakeNest(std::move(wide));
  copy.prepared = IsFixed(state, source.get());
  const ir::ExprFn widened = [&](const ir::Expr& e) {
    if (const ir::Load* load = LoadCastToF32(e, source.get())) return ir::MakeLoad(copy.stage.buffer, load->indices);
    return ir::MapChildren(e, widened);
  };
  nest->stage.value = widened(nest->stage.value);
  if (Reads(nest->stage, source.get())) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} uses {} for more than a cast to f32", step.stage, step.buffer));
  }
  state.nests.insert(state.nests.begin() + (nest - state.nests.data()), std::move(copy));
  return absl::OkStatus();
}

}  // namespace hone::schedule
