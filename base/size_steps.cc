// SPDX-License-Identifier: Apache-2.0
#include "base/size_steps.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hone {
namespace {

// The words of the text form.
constexpr std::pair<SizeOp, std::string_view> kNames[] = {
    {SizeOp::kNumber, "number"},
    {SizeOp::kAdd, "add"},
    {SizeOp::kSubtract, "subtract"},
    {SizeOp::kMultiply, "multiply"},
    {SizeOp::kFloorDivide, "divide"},
    {SizeOp::kFloorRemainder, "remainder"},
    {SizeOp::kMin, "min"},
    {SizeOp::kMax, "max"},
};

int64_t Wrapped(uint64_t value) { return static_cast<int64_t>(value); }

// 0 if b is 0. The smallest number divided by -1 wraps.
int64_t FloorQuotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return Wrapped(-static_cast<uint64_t>(a));
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t FloorRemainder(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}

}  // namespace

std::string_view Name(SizeOp op) {
  return std::ranges::find(kNames, op, &std::pair<SizeOp, std::string_view>::first)->second;
}

std::optional<SizeOp> ParseSizeOp(std::string_view word) {
  const auto found = std::ranges::find(kNames, word, &std::pair<SizeOp, std::string_view>::second);
  return found == std::end(kNames) ? std::nullopt : std::optional(found->first);
}

bool IsValid(const SizeStep& step, size_t known) {
  if (step.op < SizeOp::kNumber || step.op > SizeOp::kMax) return false;
  return step.op == SizeOp::kNumber || (step.a < known && step.b < known);
}

int64_t Compute(const SizeStep& step, std::span<const int64_t> values) {
  if (step.op == SizeOp::kNumber) return step.number;
  const int64_t a = values[step.a], b = values[step.b];
  switch (step.op) {
    case SizeOp::kNumber:
      break;
    case SizeOp::kAdd:
      return Wrapped(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    case SizeOp::kSubtract:
      return Wrapped(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    case SizeOp::kMultiply:
      return Wrapped(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    case SizeOp::kFloorDivide:
      return FloorQuotient(a, b);
    case SizeOp::kFloorRemainder:
      return FloorRemainder(a, b);
    case SizeOp::kMin:
      return std::min(a, b);
    case SizeOp::kMax:
      return std::max(a, b);
  }
  return 0;
}

void ComputeAll(std::span<const SizeStep> steps, std::span<int64_t> values) {
  const size_t given = values.size() - steps.size();
  for (size_t i = 0; i < steps.size(); ++i) values[given + i] = Compute(steps[i], values.first(given + i));
}

}  // namespace hone
