// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr ir::Type kInt{ir::DType::kInt32, 1}, kFloat{ir::DType::kFloat32, 1};

// The total order of floats of IEEE 754 (5.10), as integers. Bits are compared as signed integers after those of
// negative floats are flipped. Negative NaNs are then the lowest. Subtracting their count wraps them around to the top,
// so that the maximum is a NaN if there is one.
constexpr int64_t kMagnitude = 0x7fffffff, kNegativeNaNs = 0x007fffff;

ir::Expr FlipIfNegative(const ir::Expr& bits) {
  const ir::Expr sign = ir::MakeBinary(ir::BinaryOp::kShr, bits, ir::MakeInt(kInt, 31));
  const ir::Expr negative = ir::MakeBinary(ir::BinaryOp::kAnd, sign, ir::MakeInt(kInt, kMagnitude));
  return ir::MakeBinary(ir::BinaryOp::kXor, bits, negative);
}

ir::Expr TotalOrderKey(const ir::Expr& value) {
  return FlipIfNegative(ir::MakeCall(kInt, ir::Intrinsic::kReinterpret, {value})) - ir::MakeInt(kInt, kNegativeNaNs);
}

ir::Expr FloatOfKey(const ir::Expr& place) {
  return ir::MakeCall(kFloat, ir::Intrinsic::kReinterpret, {FlipIfNegative(place + ir::MakeInt(kInt, kNegativeNaNs))});
}

}  // namespace

// t = max of floats  ==>  tc = max of their positions in the total order (integers); t = the float at position tc
absl::Status Apply(const TotalOrder& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  if (nest->stage.reduction != ir::Reduction::kMax || nest->stage.buffer->dtype != ir::DType::kFloat32)
    return absl::FailedPreconditionError(fmt::format("stage {} is not a maximum of f32", step.stage));
  if (absl::Status status = Apply(CacheWrite{step.stage}, state); !status.ok()) return status;
  ir::Stage& places = state.FindNest(step.stage + "c")->stage;
  const ir::Buffer floats = places.buffer;
  places.buffer = ir::MakeBuffer(floats->name, ir::DType::kInt32, floats->shape);
  places.value = TotalOrderKey(places.value);
  ir::Stage& result = state.FindNest(step.stage)->stage;
  result.value = ReplaceLoads(result.value, floats.get(), [&](const std::vector<ir::Expr>& indices) {
    return FloatOfKey(ir::MakeLoad(places.buffer, indices));
  });
  return absl::OkStatus();
}

}  // namespace hone::schedule
