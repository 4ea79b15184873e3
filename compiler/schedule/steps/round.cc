// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "base/status.h"
#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr int kFractionBits = 23;  // fraction bits of f32
constexpr int64_t kSignAndExponent = 0xff800000;
constexpr ir::Type kBits{ir::DType::kUInt32, 1}, kFloat{ir::DType::kFloat32, 1};

ir::Expr WithBits(const ir::Expr& x, int64_t kept) {
  const ir::Expr bits = ir::MakeCall(kBits, ir::Intrinsic::kReinterpret, {x});
  return ir::MakeCall(kFloat, ir::Intrinsic::kReinterpret,
                      {ir::MakeBinary(ir::BinaryOp::kAnd, bits, ir::MakeInt(kBits, kept))});
}

// Adds half of the last kept bit and clears the bits behind it. The half is built from sign and exponent alone, scaled
// by a power of two. Infinities and NaNs stay as they are.
ir::Expr Rounded(const ir::Expr& x, int64_t bits) {
  const ir::Expr half = ir::MakeFloat(kFloat, std::ldexp(1.0, static_cast<int>(-bits - 1)));
  const ir::Expr more = ir::MakeCall(kFloat, ir::Intrinsic::kFma, {WithBits(x, kSignAndExponent), half, x});
  const int64_t behind = (int64_t{1} << (kFractionBits - bits)) - 1;
  return WithBits(more, 0xffffffff & ~behind);
}

}  // namespace

// s reads b  ==>  s reads bns, b rounded
absl::Status Apply(const Round& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  HONE_ASSIGN_OR_RETURN(const ir::Buffer source, FindCopySource(state, *nest, step.buffer));
  if (source->dtype != ir::DType::kFloat32) {
    return absl::FailedPreconditionError(fmt::format("{} is not f32", step.buffer));
  }
  if (step.bits < 1 || step.bits >= kFractionBits) {
    return absl::FailedPreconditionError(fmt::format(
        "{} fraction bits; the number must be from 1 to {}, fewer than f32 has", step.bits, kFractionBits - 1));
  }
  ir::Stage rounded = CopyStage(fmt::format("{}n{}", step.buffer, step.stage), source);
  rounded.value = Rounded(rounded.value, step.bits);
  Nest copy = MakeNest(std::move(rounded));
  copy.prepared = IsFixed(state, source.get());
  nest->stage.value = ReplaceLoads(nest->stage.value, source.get(), [&](const std::vector<ir::Expr>& indices) {
    return ir::MakeLoad(copy.stage.buffer, indices);
  });
  state.nests.insert(state.nests.begin() + (nest - state.nests.data()), std::move(copy));
  return absl::OkStatus();
}

}  // namespace hone::schedule
