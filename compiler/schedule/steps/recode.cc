// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/status.h"
#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr int64_t kOffset = 128;

bool IsByte(ir::DType dtype) { return dtype == ir::DType::kInt8 || dtype == ir::DType::kUInt8; }

// The load of the buffer that e casts to a wider integer; null if e is anything else.
const ir::Load* WidenedLoad(const ir::Expr& e, const ir::BufferNode* buffer) {
  const ir::Cast* cast = e.As<ir::Cast>();
  const ir::Load* load = cast == nullptr ? nullptr : cast->value.As<ir::Load>();
  const bool wide = cast != nullptr && ir::IsInt(cast->type.dtype) && ir::SizeOf(cast->type.dtype) > 1;
  return load != nullptr && wide && load->buffer.get() == buffer ? load : nullptr;
}

// copy[i...] = buffer[i...] with its highest bit flipped.
ir::Stage RecodedStage(const std::string& name, const ir::Buffer& buffer, ir::DType dtype) {
  ir::Stage stage = CopyStage(name, buffer);
  stage.buffer = ir::MakeBuffer(name, dtype, buffer->shape);
  const ir::Expr highest = ir::MakeInt({buffer->dtype, 1}, buffer->dtype == ir::DType::kInt8 ? -kOffset : kOffset);
  stage.value = ir::MakeCast({dtype, 1}, ir::MakeBinary(ir::BinaryOp::kXor, stage.value, highest));
  return stage;
}

}  // namespace

// T(b[..]) ==> T(bo[..]) - 128 where b is i8 and bo u8; T(bo[..]) + 128 the other way round.
absl::Status Apply(const Recode& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  HONE_ASSIGN_OR_RETURN(const ir::Buffer source, FindCopySource(state, *nest, step.buffer));
  if (!IsByte(source->dtype)) return absl::FailedPreconditionError(fmt::format("{} is not i8 or u8", step.buffer));
  const bool is_signed = source->dtype == ir::DType::kInt8;
  Nest copy = MakeNest(RecodedStage(fmt::format("{}o{}", step.buffer, step.stage), source,
                                    is_signed ? ir::DType::kUInt8 : ir::DType::kInt8));
  copy.prepared = IsFixed(state, source.get());
  const ir::ExprFn recoded = [&](const ir::Expr& e) {
    if (const ir::Load* load = WidenedLoad(e, source.get())) {
      const ir::Expr value = ir::MakeCast(e.type(), ir::MakeLoad(copy.stage.buffer, load->indices));
      return value - ir::MakeInt(e.type(), is_signed ? kOffset : -kOffset);
    }
    return ir::MapChildren(e, recoded);
  };
  nest->stage.value = recoded(nest->stage.value);
  if (Reads(nest->stage, source.get())) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} uses {} for more than a cast to a wider integer", step.stage, step.buffer));
  }
  state.nests.insert(state.nests.begin() + (nest - state.nests.data()), std::move(copy));
  return absl::OkStatus();
}

}  // namespace hone::schedule
