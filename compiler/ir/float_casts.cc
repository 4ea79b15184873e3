// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/float_casts.h"

#include <cmath>

#include "compiler/ir/match.h"
#include "compiler/ir/numeric.h"

namespace hone::ir {
namespace {

bool IsWider(DType wide, DType narrow) { return IsFloat(wide) && IsFloat(narrow) && SizeOf(wide) > SizeOf(narrow); }

bool IsExtremum(const Binary& binary) { return binary.op == BinaryOp::kMax || binary.op == BinaryOp::kMin; }

// Whether all values of e, which is of a wider type, are numbers of the narrow type.
bool HoldsOnly(const Expr& e, DType narrow) {
  if (const FloatImm* number = e.As<FloatImm>()) {
    return std::isnan(number->value) || RoundTo(narrow, number->value) == number->value;
  }
  if (const Cast* cast = e.As<Cast>()) return cast->value.type().dtype == narrow;
  if (const Select* select = e.As<Select>()) {
    return HoldsOnly(select->on_true, narrow) && HoldsOnly(select->on_false, narrow);
  }
  if (const Broadcast* broadcast = e.As<Broadcast>()) return HoldsOnly(broadcast->value, narrow);
  const Binary* binary = e.As<Binary>();
  return binary != nullptr && IsExtremum(*binary) && HoldsOnly(binary->a, narrow) && HoldsOnly(binary->b, narrow);
}

// The x of W(N(x)), where x is of type W and N is `narrow`; undefined if e is anything else.
Expr WithoutRounding(const Expr& e, DType narrow) {
  const Cast* wide = e.As<Cast>();
  const Cast* rounded = wide == nullptr ? nullptr : wide->value.As<Cast>();
  const bool fits = rounded != nullptr && rounded->type.dtype == narrow && rounded->value.type() == e.type();
  return fits && IsWider(e.type().dtype, narrow) ? rounded->value : Expr();
}

Expr WithoutInnerRounding(const Cast& cast, const Binary& extremum) {
  const DType narrow = cast.type.dtype;
  const Expr a = WithoutRounding(extremum.a, narrow), b = WithoutRounding(extremum.b, narrow);
  if (a.defined() && HoldsOnly(extremum.b, narrow)) return MakeCast(cast.type, MakeBinary(extremum.op, a, extremum.b));
  if (b.defined() && HoldsOnly(extremum.a, narrow)) return MakeCast(cast.type, MakeBinary(extremum.op, extremum.a, b));
  return {};
}

Expr WithoutOuterCast(const Expr& e) {
  const Cast* cast = e.As<Cast>();
  if (cast == nullptr) return e;
  if (const Cast* inner = cast->value.As<Cast>()) {
    const bool exact = IsWider(inner->type.dtype, cast->type.dtype);
    if (exact && inner->value.type() == cast->type) return inner->value;
    const Expr x = WithoutRounding(e, inner->type.dtype);
    return x.defined() && HoldsOnly(x, inner->type.dtype) ? x : e;
  }
  const Binary* binary = cast->value.As<Binary>();
  if (binary == nullptr || !IsExtremum(*binary)) return e;
  const Expr dropped = WithoutInnerRounding(*cast, *binary);
  return dropped.defined() ? dropped : e;
}

}  // namespace

Expr DropRoundTrips(const Expr& e) { return WithoutOuterCast(MapChildren(e, DropRoundTrips)); }

}  // namespace hone::ir
