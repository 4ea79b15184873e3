// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/safe_bounds.h"

#include <algorithm>

#include "compiler/ir/match.h"
#include "compiler/ir/numeric.h"

namespace hone::ir {
namespace {

using Wide = __int128;

constexpr int64_t kUnbounded = Interval::kUnbounded;

Interval Narrowed(Wide low, Wide high) {
  if (low <= -kUnbounded || high >= kUnbounded) return {};
  return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

Interval Product(Interval a, Interval b) {
  const Wide corners[] = {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low, Wide{a.high} * b.high};
  const auto [low, high] = std::minmax_element(std::begin(corners), std::end(corners));
  return Narrowed(*low, *high);
}

Interval Hull(Interval a, Interval b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

Interval OfBinary(BinaryOp op, Interval a, Interval b) {
  const bool bounded = IsBounded(a) && IsBounded(b);
  const bool divides = b.IsPoint() && b.low > 0;
  switch (op) {
    case BinaryOp::kAdd:
      return bounded ? Narrowed(Wide{a.low} + b.low, Wide{a.high} + b.high) : Interval{};
    case BinaryOp::kSub:
      return bounded ? Narrowed(Wide{a.low} - b.high, Wide{a.high} - b.low) : Interval{};
    case BinaryOp::kMul:
      return bounded ? Product(a, b) : Interval{};
    case BinaryOp::kMin:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case BinaryOp::kMax:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case BinaryOp::kDiv:
      return divides && bounded ? Interval{a.low / b.low, a.high / b.low} : Interval{};
    case BinaryOp::kFloorDiv:
      return divides && bounded ? Interval{FloorDivide(a.low, b.low), FloorDivide(a.high, b.low)} : Interval{};
    case BinaryOp::kMod:
      return divides ? Interval{a.low >= 0 ? 0 : 1 - b.low, b.low - 1} : Interval{};
    case BinaryOp::kFloorMod:
      if (!divides) return {};
      return a.low >= 0 && a.high < b.low ? a : Interval{0, b.low - 1};
    default:
      return {};
  }
}

Interval OfCast(DType from) {
  if (from == DType::kBool) return {0, 1};
  if (!IsInt(from) || SizeOf(from) == 8) return {};
  return {LowestInt(from), HighestInt(from)};
}

// Interval arithmetic on one node.
Interval NodeBounds(const Expr& e, const Ranges& ranges) {
  if (e.type().dtype != DType::kInt64) return {};
  return Match(
      e,
      [](const IntImm& i) {
        return i.value > -kUnbounded && i.value < kUnbounded ? Interval{i.value, i.value} : Interval{};
      },
      [&](const Var& v) {
        const auto it = ranges.find(v.name);
        return it == ranges.end() ? Interval{} : it->second;
      },
      [](const Cast& c) { return OfCast(c.value.type().dtype); },
      [&](const Select& s) { return Hull(NodeBounds(s.on_true, ranges), NodeBounds(s.on_false, ranges)); },
      [&](const Broadcast& b) { return NodeBounds(b.value, ranges); },
      [&](const Ramp& r) {
        const Interval base = NodeBounds(r.base, ranges), stride = NodeBounds(r.stride, ranges);
        const Interval offset = OfBinary(BinaryOp::kMul, stride, {0, r.width - 1});
        return OfBinary(BinaryOp::kAdd, base, offset);
      },
      [&](const Binary& b) { return OfBinary(b.op, NodeBounds(b.a, ranges), NodeBounds(b.b, ranges)); },
      [](const auto&) { return Interval{}; });
}

}  // namespace

bool IsBounded(Interval i) { return i.low > -kUnbounded && i.high < kUnbounded; }
bool FitsInt(Interval i) { return i.low >= INT32_MIN && i.high <= INT32_MAX; }

bool HasSafeBounds(const Expr& e, const Ranges& ranges) { return IsBounded(NodeBounds(e, ranges)); }

Interval SafeBoundsOf(const Expr& e, const Ranges& ranges) {
  const Interval result = NodeBounds(e, ranges);
  const Binary* binary = e.As<Binary>();
  if (binary == nullptr || e.type() != kIndexType || !IsBounded(result)) return result;
  // No subexpression can wrap here, so the linear form is valid. It gives tighter bounds where terms cancel.
  bool bounded = true;
  ForEachExpr(e, [&](const Expr& x) { bounded &= x.type() != kIndexType || IsBounded(NodeBounds(x, ranges)); });
  if (!bounded) return result;
  const Interval linear = BoundsOf(e, ranges);
  return {std::max(result.low, linear.low), std::min(result.high, linear.high)};
}

}  // namespace hone::ir
