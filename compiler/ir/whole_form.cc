// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/whole_form.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/ir/safe_bounds.h"

namespace hone::ir {
namespace {

// Integers up to this are exact in the type, and so are the comparisons of their quotients with integers (half of it).
int64_t ExactMax(DType dtype) { return dtype == DType::kFloat64 ? int64_t{1} << 52 : int64_t{1} << 23; }

class WholeForm {
 public:
  explicit WholeForm(const Ranges& ranges) : ranges_(ranges) {}

  // The value of e, of any type, if it is an integer.
  std::optional<Expr> Of(const Expr& e) const {
    if (e.type().width != 1 || e.type().dtype == DType::kBool) return std::nullopt;
    std::optional<Expr> whole = OfNode(e);
    return whole.has_value() && FitsExactly(*whole, e.type().dtype) ? std::move(whole) : std::nullopt;
  }

 private:
  bool FitsExactly(const Expr& whole, DType dtype) const {
    const Interval bounds = SafeBoundsOf(whole, ranges_);
    if (!IsBounded(bounds)) return false;
    if (IsInt(dtype)) return dtype == DType::kInt64 || (dtype == DType::kInt32 && FitsInt(bounds));
    const int64_t limit = SizeOf(dtype) < 4 ? 0 : ExactMax(dtype);
    return -limit < bounds.low && bounds.high < limit;
  }

  std::optional<Expr> OfNode(const Expr& e) const {
    if (const auto* number = e.As<IntImm>()) return Expr(number->value);
    if (const auto* number = e.As<FloatImm>()) {
      const bool is_whole = std::abs(number->value) < 1e9 && number->value == std::trunc(number->value);
      return is_whole ? std::optional(Expr(static_cast<int64_t>(number->value))) : std::nullopt;
    }
    if (e.As<Var>() != nullptr) return e.type() == kIndexType ? std::optional(e) : std::nullopt;
    if (const auto* cast = e.As<Cast>()) return Of(cast->value);
    if (const auto* unary = e.As<Unary>()) return OfUnary(*unary);
    if (const auto* binary = e.As<Binary>()) {
      if (IsNeutral(binary->op, binary->a)) return Of(binary->b);
      if (IsNeutral(binary->op, binary->b)) return Of(binary->a);
      return OfBinary(*binary, IsFloat(e.type().dtype));
    }
    return std::nullopt;
  }

  // Whether the operand is where a reduction begins: max(-inf, x) is x.
  static bool IsNeutral(BinaryOp op, const Expr& operand) {
    const auto* number = operand.As<FloatImm>();
    if (number == nullptr || !std::isinf(number->value)) return false;
    return (op == BinaryOp::kMax && number->value < 0) || (op == BinaryOp::kMin && number->value > 0);
  }

  std::optional<Expr> OfUnary(const Unary& e) const {
    const bool floors = e.op == UnaryOp::kFloor, ceils = e.op == UnaryOp::kCeil;
    if (!floors && !ceils && e.op != UnaryOp::kTrunc && e.op != UnaryOp::kRound) return std::nullopt;
    if (std::optional<Expr> whole = Of(e.a)) return whole;
    if (!floors && !ceils) return std::nullopt;
    const std::optional<std::pair<Expr, int64_t>> quotient = QuotientOf(e.a);
    if (!quotient.has_value()) return std::nullopt;
    const auto& [dividend, divisor] = *quotient;
    return FloorDiv(ceils ? dividend + Expr(divisor - 1) : dividend, Expr(divisor));
  }

  // A float that is an integer over a positive number. Its floor and ceiling are those of the exact quotient, because
  // both numbers together are below ExactMax.
  std::optional<std::pair<Expr, int64_t>> QuotientOf(const Expr& e) const {
    const auto* binary = e.As<Binary>();
    if (binary == nullptr) return std::nullopt;
    std::optional<Expr> dividend = Of(binary->a);
    if (!dividend.has_value()) return std::nullopt;
    int64_t divisor = 0;
    if (binary->op == BinaryOp::kDiv) {
      const std::optional<Expr> number = Of(binary->b);
      const auto* immediate = number.has_value() ? number->As<IntImm>() : nullptr;
      divisor = immediate == nullptr ? 0 : immediate->value;
    } else if (const auto* factor = binary->b.As<FloatImm>(); binary->op == BinaryOp::kMul && factor != nullptr) {
      int exponent = 0;  // a product with 2^-k is exact
      if (std::frexp(factor->value, &exponent) == 0.5 && exponent <= 1 && exponent > -30)
        divisor = int64_t{1} << (1 - exponent);
    }
    const Interval bounds = SafeBoundsOf(*dividend, ranges_);
    const int64_t limit = ExactMax(e.type().dtype);
    if (divisor <= 0 || bounds.low < 0 || bounds.high > limit - divisor) return std::nullopt;
    return std::pair(*std::move(dividend), divisor);
  }

  std::optional<Expr> OfBinary(const Binary& e, bool is_float) const {
    const bool is_exact = e.op == BinaryOp::kAdd || e.op == BinaryOp::kSub || e.op == BinaryOp::kMul ||
                          e.op == BinaryOp::kMin || e.op == BinaryOp::kMax;
    const bool divides = !is_float && (e.op == BinaryOp::kFloorDiv || e.op == BinaryOp::kFloorMod);
    if (!is_exact && !divides) return std::nullopt;
    std::optional<Expr> a = Of(e.a), b = Of(e.b);
    if (!a.has_value() || !b.has_value()) return std::nullopt;
    return MakeBinary(e.op, *std::move(a), *std::move(b));
  }

  const Ranges& ranges_;
};

}  // namespace

std::optional<Expr> WithoutFloats(const Expr& e, const Ranges& ranges) {
  return IsInt(e.type().dtype) ? WholeForm(ranges).Of(e) : std::nullopt;
}

}  // namespace hone::ir
