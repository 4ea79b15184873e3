// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "compiler/ir/typing.h"
#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr ir::DType kWide = ir::DType::kFloat32;

}  // namespace

// f32(b[..]) ==> bw[..], where b is f16 or bf16.
absl::Status Apply(const Widen& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  HONE_ASSIGN_OR_RETURN(const ir::Buffer source, FindCopySource(state, *nest, step.buffer));
  if (!ir::IsStorageOnly(source->dtype)) {
    return absl::FailedPreconditionError(fmt::format("{} is not f16 or bf16", step.buffer));
  }
  ir::Stage wide = CopyStage(fmt::format("{}w{}", step.buffer, step.stage), source);
  wide.buffer = ir::MakeBuffer(wide.buffer->name, kWide, source->shape);
  wide.value = ir::MakeCast({kWide, 1}, wide.value);
  const auto widened = [](const ir::Type& cast, const ir::Expr& copied) {
    return cast.dtype == kWide ? copied : ir::Expr();
  };
  return ReadCastsFromCopy(state, *nest, source, std::move(wide), widened, "a cast to f32");
}

}  // namespace hone::schedule
