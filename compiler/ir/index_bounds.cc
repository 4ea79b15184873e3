// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/index_bounds.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/match.h"
#include "compiler/ir/safe_bounds.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/text.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

constexpr size_t kBoundsMax = 8;

using Bounds = std::vector<Size>;
// Sizes that an index is never below, and never above. Several are kept, because min(i * 2, n - 1) is below n by its
// second operand alone. Empty: none could be found.
struct IndexRange {
  Bounds low, high;
};

// `combine` of each pair.
Bounds EachOf(const Bounds& a, const Bounds& b, const std::function<Size(const Size&, const Size&)>& combine) {
  Bounds result;
  for (const Size& x : a) {
    for (const Size& y : b) {
      if (result.size() < kBoundsMax) result.push_back(combine(x, y));
    }
  }
  return result;
}

Bounds AllOf(Bounds a, const Bounds& b) {
  a.insert(a.end(), b.begin(), b.end());
  a.resize(std::min(a.size(), kBoundsMax));
  return a;
}

// The bounds without those that may be near the ends of 64 bits or beyond: there the arithmetic of a kernel wraps, but
// that of sizes stays at the end.
Bounds WithoutHuge(Bounds bounds) {
  std::erase_if(bounds, [](const Size& bound) {
    return bound.min() <= -Interval::kUnbounded || bound.max() >= Interval::kUnbounded;
  });
  return bounds;
}

Size SmallerOf(const Size& a, const Size& b) { return Min(a, b); }
Size LargerOf(const Size& a, const Size& b) { return Max(a, b); }

bool IsAnyAtLeast(const Bounds& bounds, const Size& least) {
  return std::ranges::any_of(bounds, [&](const Size& bound) { return AlwaysAtMost(least, bound); });
}

class IndexBounds {
 public:
  IndexBounds(const Workload& workload, const Stage& stage) {
    for (const OpenSize& size : workload.sizes) vars_[size.name] = {{Size::Open(size)}, {Size::Open(size)}};
    for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
      for (const Axis& axis : *axes) vars_[axis.name] = {{Size(0)}, {axis.extent - Size(1)}};
    }
  }

  // A sum, difference or product needs bounds on both sides: without one of them it may wrap past the other.
  IndexRange Of(const Expr& e) const {
    IndexRange range = OfKind(e);
    range = {WithoutHuge(std::move(range.low)), WithoutHuge(std::move(range.high))};
    const auto* binary = e.As<Binary>();
    const bool may_wrap = binary != nullptr && (binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kSub ||
                                                binary->op == BinaryOp::kMul);
    return may_wrap && (range.low.empty() || range.high.empty()) ? IndexRange{} : range;
  }

 private:
  IndexRange OfKind(const Expr& e) const {
    if (const auto* number = e.As<IntImm>()) return {{Size(number->value)}, {Size(number->value)}};
    if (const auto* var = e.As<Var>()) {
      const auto known = vars_.find(var->name);
      return known == vars_.end() ? IndexRange{} : known->second;
    }
    if (const auto* select = e.As<Select>()) {
      const IndexRange a = Of(select->on_true), b = Of(select->on_false);
      return {EachOf(a.low, b.low, SmallerOf), EachOf(a.high, b.high, LargerOf)};
    }
    if (const auto* binary = e.As<Binary>()) return OfBinary(*binary);
    const Interval bounds = SafeBoundsOf(e, {});
    if (e.type() != kIndexType || !IsBounded(bounds)) return {};
    return {{Size(bounds.low)}, {Size(bounds.high)}};
  }

  IndexRange OfBinary(const Binary& e) const {
    const IndexRange a = Of(e.a), b = Of(e.b);
    const auto add = [](const Size& x, const Size& y) { return x + y; };
    const auto subtract = [](const Size& x, const Size& y) { return x - y; };
    switch (e.op) {
      case BinaryOp::kAdd:
        return {EachOf(a.low, b.low, add), EachOf(a.high, b.high, add)};
      case BinaryOp::kSub:
        return {EachOf(a.low, b.high, subtract), EachOf(a.high, b.low, subtract)};
      case BinaryOp::kMul:
        return OfProduct(a, b);
      case BinaryOp::kMin:
        return {EachOf(a.low, b.low, SmallerOf), AllOf(a.high, b.high)};
      case BinaryOp::kMax:
        return {AllOf(a.low, b.low), EachOf(a.high, b.high, LargerOf)};
      case BinaryOp::kFloorDiv:
        return OfQuotient(a, b);
      case BinaryOp::kFloorMod:
        if (!IsAnyAtLeast(b.low, Size(1))) return {};
        return {{Size(0)}, EachOf(b.high, {Size(1)}, subtract)};
      default:
        return {};
    }
  }

  // One factor must be one size, which is never below 0.
  static IndexRange OfProduct(const IndexRange& a, const IndexRange& b) {
    const auto multiply = [](const Size& x, const Size& y) { return x * y; };
    for (const auto& [x, factor] : {std::pair(a, b), std::pair(b, a)}) {
      const bool is_one = factor.low.size() == 1 && factor.high.size() == 1 && factor.low[0] == factor.high[0];
      if (!is_one || !IsAnyAtLeast(factor.low, Size(0))) continue;
      return {EachOf(x.low, factor.low, multiply), EachOf(x.high, factor.low, multiply)};
    }
    return {};
  }

  // The divisor must be a positive number. If the dividend is never below 0, the quotient is never above it.
  static IndexRange OfQuotient(const IndexRange& a, const IndexRange& b) {
    const bool is_number = b.low.size() == 1 && b.high.size() == 1 && b.low[0].IsFixed() && b.low[0] == b.high[0];
    if (!is_number || b.low[0].value() <= 0) return {};
    const auto divide = [](const Size& x, const Size& y) { return FloorDiv(x, y); };
    IndexRange result = {EachOf(a.low, b.low, divide), EachOf(a.high, b.low, divide)};
    if (IsAnyAtLeast(a.low, Size(0))) result.high = AllOf(std::move(result.high), a.high);
    return result;
  }

  std::map<std::string, IndexRange> vars_;
};

}  // namespace

absl::Status CheckIndices(const Workload& workload) {
  for (const Stage& stage : workload.stages) {
    const IndexBounds bounds(workload, stage);
    absl::Status status = absl::OkStatus();
    ForEachExpr(stage.value, [&](const Expr& e) {
      const auto* load = e.As<Load>();
      if (load == nullptr || !status.ok()) return;
      for (size_t d = 0; d < load->indices.size(); ++d) {
        const IndexRange index = bounds.Of(load->indices[d]);
        const Size& extent = load->buffer->shape[d];
        const bool ends = std::ranges::any_of(index.high, [&](const Size& high) { return AlwaysLess(high, extent); });
        if (ends && IsAnyAtLeast(index.low, Size(0))) continue;
        status =
            absl::InvalidArgumentError(fmt::format("stage '{}' may read outside '{}': index {} is {}, and the "
                                                   "dimension has {} elements; limit the index, as in "
                                                   "max(min({}, {} - 1), 0)",
                                                   stage.buffer->name, load->buffer->name, d, Print(load->indices[d]),
                                                   Print(extent), Print(load->indices[d]), Print(extent)));
        return;
      }
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace hone::ir
