// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr int64_t kOffset = 128;

bool IsByte(ir::DType dtype) { return dtype == ir::DType::kInt8 || dtype == ir::DType::kUInt8; }

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
  ir::Stage copy = RecodedStage(fmt::format("{}o{}", step.buffer, step.stage), source,
                                is_signed ? ir::DType::kUInt8 : ir::DType::kInt8);
  const auto recoded = [&](const ir::Type& cast, const ir::Expr& copied) {
    if (!ir::IsInt(cast.dtype) || ir::SizeOf(cast.dtype) == 1) return ir::Expr();
    return ir::MakeCast(cast, copied) - ir::MakeInt(cast, is_signed ? kOffset : -kOffset);
  };
  return ReadCastsFromCopy(state, *nest, source, std::move(copy), recoded, "a cast to a wider integer");
}

}  // namespace hone::schedule
