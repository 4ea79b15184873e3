// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/simplify.h"

#include <algorithm>
#include <numeric>

#include "compiler/ir/match.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/safe_bounds.h"
#include "compiler/ir/typing.h"

namespace hone::ir {
namespace {

// Counts the nested queries about one index and limits them. Nested minimums, and sums of them, multiply the
// queries, and the text can be hostile. A real kernel makes some thousands. Beyond the limit expressions stay
// unsimplified.
class QueryBudget {
 public:
  QueryBudget() {
    if (open_++ == 0) queries_ = 0;
    ++queries_;
  }
  QueryBudget(const QueryBudget&) = delete;
  QueryBudget& operator=(const QueryBudget&) = delete;
  ~QueryBudget() { --open_; }
  bool IsExhausted() const { return queries_ > kQueriesMax; }

 private:
  static constexpr int64_t kQueriesMax = int64_t{1} << 16;
  inline static thread_local int64_t open_ = 0, queries_ = 0;
};

int64_t FloorModInt(int64_t a, int64_t b) { return a - FloorDivide(a, b) * b; }

bool IsUnbounded(int64_t v) { return v <= -Interval::kUnbounded || v >= Interval::kUnbounded; }
int64_t Clamp(__int128 v) {
  if (v >= Interval::kUnbounded) return Interval::kUnbounded;
  if (v <= -Interval::kUnbounded) return -Interval::kUnbounded;
  return static_cast<int64_t>(v);
}
Interval Scale(Interval i, int64_t factor) {
  const auto times = [&](int64_t v) {
    return IsUnbounded(v) ? ((v > 0) == (factor > 0) ? Interval::kUnbounded : -Interval::kUnbounded)
                          : Clamp(static_cast<__int128>(v) * factor);
  };
  const int64_t a = times(i.low), b = times(i.high);
  return {std::min(a, b), std::max(a, b)};
}
Interval Plus(Interval a, Interval b) {
  return {
      IsUnbounded(a.low) || IsUnbounded(b.low) ? -Interval::kUnbounded : Clamp(static_cast<__int128>(a.low) + b.low),
      IsUnbounded(a.high) || IsUnbounded(b.high) ? Interval::kUnbounded
                                                 : Clamp(static_cast<__int128>(a.high) + b.high)};
}

bool IsIndex(const Expr& e) { return e.type() == kIndexType; }
const int64_t* AsInt(const Expr& e) {
  const IntImm* imm = e.As<IntImm>();
  return imm != nullptr ? &imm->value : nullptr;
}

// a + b * c, wrapping in 64 bits.
int64_t MultiplyAddWrapping(int64_t a, int64_t b, int64_t c) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b) * static_cast<uint64_t>(c));
}

// The range of a Let variable that can have any value. A variable without an entry in Ranges is taken not to wrap; this
// one may.
constexpr Interval kAnyValue{INT64_MIN, INT64_MAX};

// Whether the expression contains data that can have any value: a load, a conversion, or anything but index arithmetic.
bool MayHoldAnyValue(const Expr& e, const Ranges& ranges) {
  bool any = false;
  ForEachExpr(e, [&](const Expr& child) {
    if (const Var* v = child.As<Var>()) {
      const auto it = ranges.find(v->name);
      any = any || (it != ranges.end() && it->second.low == kAnyValue.low && it->second.high == kAnyValue.high);
    } else {
      const Binary* binary = child.As<Binary>();
      const bool computes = binary != nullptr ? binary->op != BinaryOp::kShl : child.As<Select>() != nullptr;
      any = any || (IsIndex(child) && AsInt(child) == nullptr && !computes);
    }
  });
  return any;
}

// Whether arithmetic on arbitrary data may wrap. Quotients, remainders and comparisons then differ from those of
// unbounded integers; sums and products modulo 2^64 do not.
bool MayWrap(const Expr& e, const Ranges& ranges) {
  if (e.As<Binary>() == nullptr && e.As<Select>() == nullptr) return false;
  return MayHoldAnyValue(e, ranges) && !HasSafeBounds(e, ranges);
}

Interval AtomBounds(const Expr& atom, const Ranges& ranges) {
  if (const Var* v = atom.As<Var>()) {
    const auto it = ranges.find(v->name);
    return it == ranges.end() ? Interval{} : it->second;
  }
  if (const int64_t* value = AsInt(atom)) return {*value, *value};
  if (const Select* s = atom.As<Select>()) {
    const Interval a = BoundsOf(s->on_true, ranges), b = BoundsOf(s->on_false, ranges);
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
  }
  const Binary* binary = atom.As<Binary>();
  if (binary == nullptr) return {};
  const Interval a = BoundsOf(binary->a, ranges), b = BoundsOf(binary->b, ranges);
  switch (binary->op) {
    case BinaryOp::kMin:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case BinaryOp::kMax:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case BinaryOp::kMul:
      if (a.low < 0 || b.low < 0) return {};
      return {Clamp(static_cast<__int128>(a.low) * b.low), Clamp(static_cast<__int128>(a.high) * b.high)};
    case BinaryOp::kFloorDiv:
      if (b.low <= 0 || (!b.IsPoint() && a.low < 0)) return {};
      return {IsUnbounded(a.low) ? a.low : FloorDivide(a.low, b.high),
              IsUnbounded(a.high) ? a.high : FloorDivide(a.high, b.low)};
    case BinaryOp::kFloorMod:
      if (b.low <= 0) return {};
      if (a.low >= 0 && a.high < b.low) return a;
      return {0, IsUnbounded(b.high) ? b.high : b.high - 1};
    default:
      return {};
  }
}

Linear SimplifyFloorDiv(const Linear& a, int64_t c, const Ranges& ranges) {
  Linear quotient, rest;
  for (const auto& [atom, k] : a.terms) (k % c == 0 ? quotient : rest).Add(atom, k % c == 0 ? k / c : k);
  quotient.constant = FloorDivide(a.constant, c);
  rest.constant = FloorModInt(a.constant, c);
  const Interval bounds = BoundsOf(rest, ranges);
  if (!IsUnbounded(bounds.low) && !IsUnbounded(bounds.high) &&
      FloorDivide(bounds.low, c) == FloorDivide(bounds.high, c)) {
    quotient.constant += FloorDivide(bounds.low, c);
    return quotient;
  }
  int64_t gcd = c;
  for (const auto& [atom, k] : rest.terms) gcd = std::gcd(gcd, k);
  if (gcd > 1) {
    for (auto& [atom, k] : rest.terms) k /= gcd;
    rest.constant = FloorDivide(rest.constant, gcd);
    c /= gcd;
  }
  // floordiv(floordiv(x, a), c) == floordiv(x, a * c)
  if (rest.terms.size() == 1 && rest.terms[0].second == 1 && rest.constant == 0) {
    const Binary* inner = rest.terms[0].first.As<Binary>();
    const int64_t* d = inner != nullptr && inner->op == BinaryOp::kFloorDiv ? AsInt(inner->b) : nullptr;
    int64_t both = 0;
    if (d != nullptr && *d > 0 && !__builtin_mul_overflow(*d, c, &both)) {
      quotient.Add(FloorDiv(inner->a, Expr(both)), 1);
      return quotient;
    }
  }
  quotient.Add(FloorDiv(FromLinear(rest), Expr(c)), 1);
  return quotient;
}

// The factors of a product, numbers apart.
struct Factors {
  int64_t number = 1;
  std::vector<Expr> others;
};

void CollectFactors(const Expr& e, Factors* factors) {
  const Binary* product = e.As<Binary>();
  if (const int64_t* number = AsInt(e)) {
    factors->number = MultiplyAddWrapping(0, factors->number, *number);
  } else if (product != nullptr && product->op == BinaryOp::kMul) {
    CollectFactors(product->a, factors);
    CollectFactors(product->b, factors);
  } else {
    factors->others.push_back(e);
  }
}

Factors FactorsOf(const Expr& e) {
  Factors factors;
  CollectFactors(e, &factors);
  return factors;
}

bool SameFactors(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::is_permutation(a, b, [](const Expr& x, const Expr& y) { return Equal(x, y); });
}

// floordiv(x, n) for the remainder floormod(x, n), if it is one term; else undefined.
Expr QuotientOf(const Binary& remainder, const Ranges& ranges) {
  const int64_t* n = AsInt(remainder.b);
  if (n == nullptr) return FloorDiv(remainder.a, remainder.b);
  if (*n <= 0) return {};
  const Linear quotient = SimplifyFloorDiv(ToLinear(remainder.a, ranges), *n, ranges);
  const bool single = quotient.constant == 0 && quotient.terms.size() == 1 && quotient.terms[0].second == 1;
  return single ? quotient.terms[0].first : Expr();
}

// a * n * floordiv(x, n) * y + a * floormod(x, n) * y  ==>  a * x * y, where n or y is an expression, and term i has
// the remainder.
bool RecombineProducts(Linear& linear, size_t i, const Ranges& ranges) {
  const Factors part = FactorsOf(linear.terms[i].first);
  const int64_t factor = MultiplyAddWrapping(0, linear.terms[i].second, part.number);
  for (size_t at = 0; at < part.others.size(); ++at) {
    const Binary* mod = part.others[at].As<Binary>();
    if (mod == nullptr || mod->op != BinaryOp::kFloorMod || MayWrap(mod->a, ranges) || MayWrap(mod->b, ranges))
      continue;
    const Expr quotient = QuotientOf(*mod, ranges);
    if (!quotient.defined()) continue;
    Factors whole = FactorsOf(mod->b);
    Expr joined = mod->a;
    for (size_t other = 0; other < part.others.size(); ++other) {
      if (other == at) continue;
      whole.others.push_back(part.others[other]);
      joined = joined * part.others[other];
    }
    whole.others.push_back(quotient);
    whole.number = MultiplyAddWrapping(0, whole.number, factor);
    for (size_t j = 0; j < linear.terms.size(); ++j) {
      const Factors term = FactorsOf(linear.terms[j].first);
      if (j == i || MultiplyAddWrapping(0, linear.terms[j].second, term.number) != whole.number) continue;
      if (!SameFactors(term.others, whole.others)) continue;
      linear.terms.erase(linear.terms.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
      linear.terms.erase(linear.terms.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
      linear.Add(ToLinear(joined, ranges), factor);
      return true;
    }
  }
  return false;
}

// a * c * floordiv(x, c) + a * floormod(x, c)  ==>  a * x. floordiv(x, c) may itself have been rewritten: if x is y //
// b, it appears as y // (b * c), as in the indices of three fused loops.
void RecombineDivMod(Linear& linear, const Ranges& ranges) {
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    const Binary* mod = linear.terms[i].first.As<Binary>();
    const bool product =
        mod != nullptr && (mod->op == BinaryOp::kMul || (mod->op == BinaryOp::kFloorMod && AsInt(mod->b) == nullptr));
    if (product && RecombineProducts(linear, i, ranges)) return RecombineDivMod(linear, ranges);
    if (mod == nullptr || mod->op != BinaryOp::kFloorMod || MayWrap(mod->a, ranges)) continue;
    const int64_t* c = AsInt(mod->b);
    if (c == nullptr || *c <= 0) continue;
    const int64_t factor = linear.terms[i].second;
    int64_t whole = 0;
    if (__builtin_mul_overflow(factor, *c, &whole)) continue;
    const Linear x = ToLinear(mod->a, ranges), quotient = SimplifyFloorDiv(x, *c, ranges);
    if (quotient.terms.size() != 1 || quotient.terms[0].second != 1) continue;
    for (size_t j = 0; j < linear.terms.size(); ++j) {
      if (linear.terms[j].second != whole || !Equal(linear.terms[j].first, quotient.terms[0].first)) continue;
      linear.constant = MultiplyAddWrapping(linear.constant, MultiplyAddWrapping(0, whole, -1), quotient.constant);
      linear.terms.erase(linear.terms.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
      linear.terms.erase(linear.terms.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
      linear.Add(x, factor);
      return RecombineDivMod(linear, ranges);
    }
  }
}

Linear SimplifyFloorMod(const Linear& a, int64_t c, const Ranges& ranges) {
  Linear rest;
  for (const auto& [atom, k] : a.terms) {
    if (k % c != 0) rest.Add(atom, k);
  }
  rest.constant = FloorModInt(a.constant, c);
  const Interval bounds = BoundsOf(rest, ranges);
  if (!IsUnbounded(bounds.low) && !IsUnbounded(bounds.high) &&
      FloorDivide(bounds.low, c) == FloorDivide(bounds.high, c)) {
    rest.constant -= FloorDivide(bounds.low, c) * c;
    return rest;
  }
  Linear result;
  result.Add(FloorMod(FromLinear(rest), Expr(c)), 1);
  return result;
}

// Bounds of a - b. If the constants are too far apart for int64, only the sign of the result is meaningful.
Interval BoundsOfDifference(const Linear& a, const Linear& b, const Linear& difference, const Ranges& ranges) {
  int64_t apart = 0;
  if (!__builtin_sub_overflow(a.constant, b.constant, &apart)) return BoundsOf(difference, ranges);
  if (!a.IsConstant() || !b.IsConstant()) return {};
  return a.constant < b.constant ? Interval{-1, -1} : Interval{1, 1};
}

// A number rounded up to a multiple of a step: (number + step - 1) // step * step.
struct RoundedUp {
  Linear number;
  int64_t step;
};

RoundedUp AsRoundedUp(const Linear& e, const Ranges& ranges) {
  if (e.constant != 0 || e.terms.size() != 1) return {e, 1};
  const Binary* quotient = e.terms[0].first.As<Binary>();
  const bool divides = quotient != nullptr && quotient->op == BinaryOp::kFloorDiv;
  const int64_t* step = divides ? AsInt(quotient->b) : nullptr;
  if (step == nullptr || *step < 1 || *step != e.terms[0].second || MayWrap(quotient->a, ranges)) return {e, 1};
  Linear number = ToLinear(quotient->a, ranges);
  number.constant -= *step - 1;
  return {number, *step};
}

// Whether both are one number rounded up, b to multiples of the step of a, so that a <= b.
bool IsRoundedUpFurther(const RoundedUp& a, const RoundedUp& b) {
  if (a.step == b.step || b.step % a.step != 0) return false;
  Linear difference = a.number;
  difference.Add(b.number, -1);
  return difference.IsConstant() && difference.constant == 0;
}

Expr SimplifyMinMax(BinaryOp op, const Expr& a, const Expr& b, const Ranges& ranges) {
  const Linear x = ToLinear(a, ranges), y = ToLinear(b, ranges);
  const RoundedUp rounded_x = AsRoundedUp(x, ranges), rounded_y = AsRoundedUp(y, ranges);
  if (IsRoundedUpFurther(rounded_x, rounded_y)) return op == BinaryOp::kMin ? a : b;
  if (IsRoundedUpFurther(rounded_y, rounded_x)) return op == BinaryOp::kMin ? b : a;
  Linear difference = x;
  difference.Add(y, -1);
  const Interval d = BoundsOfDifference(x, y, difference, ranges);
  if (d.high <= 0) return op == BinaryOp::kMin ? a : b;
  if (d.low >= 0) return op == BinaryOp::kMin ? b : a;
  return MakeBinary(op, a, b);
}

Linear BinaryToLinear(const Binary& node, const Expr& e, const Ranges& ranges) {
  Linear a = ToLinear(node.a, ranges), b = ToLinear(node.b, ranges);
  const bool sums = node.op == BinaryOp::kAdd || node.op == BinaryOp::kSub || node.op == BinaryOp::kMul;
  const bool whole = sums || (!MayWrap(node.a, ranges) && !MayWrap(node.b, ranges));
  Linear result;
  switch (node.op) {
    case BinaryOp::kAdd:
      a.Add(b, 1);
      RecombineDivMod(a, ranges);
      return a;
    case BinaryOp::kSub:
      a.Add(b, -1);
      RecombineDivMod(a, ranges);
      return a;
    case BinaryOp::kMul:
      if (a.IsConstant()) {
        result.Add(b, a.constant);
        return result;
      }
      if (b.IsConstant()) {
        result.Add(a, b.constant);
        return result;
      }
      result.Add(FromLinear(a) * FromLinear(b), 1);
      return result;
    case BinaryOp::kFloorDiv:
      if (whole && b.IsConstant() && b.constant > 0) return SimplifyFloorDiv(a, b.constant, ranges);
      break;
    case BinaryOp::kFloorMod:
      if (whole && b.IsConstant() && b.constant > 0) return SimplifyFloorMod(a, b.constant, ranges);
      break;
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      if (!whole) break;
      const Expr m = SimplifyMinMax(node.op, FromLinear(a), FromLinear(b), ranges);
      const Binary* still = m.As<Binary>();
      if (still == nullptr || still->op != node.op) return ToLinear(m, ranges);
      result.Add(m, 1);
      return result;
    }
    default:
      break;
  }
  const bool same_a = Equal(FromLinear(a), node.a), same_b = Equal(FromLinear(b), node.b);
  result.Add(same_a && same_b ? e : MakeBinary(node.op, FromLinear(a), FromLinear(b)), 1);
  return result;
}

std::optional<bool> DecideCompare(BinaryOp op, Interval d) {  // d: bounds of a - b
  switch (op) {
    case BinaryOp::kLt:
      if (d.high < 0) return true;
      if (d.low >= 0) return false;
      break;
    case BinaryOp::kLe:
      if (d.high <= 0) return true;
      if (d.low > 0) return false;
      break;
    case BinaryOp::kGt:
      if (d.low > 0) return true;
      if (d.high <= 0) return false;
      break;
    case BinaryOp::kGe:
      if (d.low >= 0) return true;
      if (d.high < 0) return false;
      break;
    case BinaryOp::kEq:
      if (d.IsPoint() && d.low == 0) return true;
      if (d.low > 0 || d.high < 0) return false;
      break;
    case BinaryOp::kNe:
      if (d.IsPoint() && d.low == 0) return false;
      if (d.low > 0 || d.high < 0) return true;
      break;
    default:
      break;
  }
  return std::nullopt;
}

Expr SimplifyCompare(const Binary& node, const Ranges& ranges) {
  Linear a = ToLinear(node.a, ranges);
  const Linear b = ToLinear(node.b, ranges);
  Linear difference = a;
  difference.Add(b, -1);
  RecombineDivMod(difference, ranges);
  if (MayWrap(node.a, ranges) || MayWrap(node.b, ranges)) return MakeBinary(node.op, FromLinear(a), FromLinear(b));
  if (const auto known = DecideCompare(node.op, BoundsOfDifference(a, b, difference, ranges))) return MakeBool(*known);
  return MakeBinary(node.op, FromLinear(a), FromLinear(b));
}

Expr SimplifyLogic(const Expr& e, const Binary& node, const Ranges& ranges) {
  const Expr a = Simplify(node.a, ranges), b = Simplify(node.b, ranges);
  const int64_t* ca = AsInt(a);
  const int64_t* cb = AsInt(b);
  if (node.op == BinaryOp::kAnd) {
    if (ca != nullptr) return *ca != 0 ? b : a;
    if (cb != nullptr) return *cb != 0 ? a : b;
  }
  if (node.op == BinaryOp::kOr) {
    if (ca != nullptr) return *ca != 0 ? a : b;
    if (cb != nullptr) return *cb != 0 ? b : a;
  }
  return a.SameHandle(node.a) && b.SameHandle(node.b) ? e : MakeBinary(node.op, a, b);
}

bool IsEmpty(const Stmt& s) {
  const Block* block = s.As<Block>();
  return !s.defined() || (block != nullptr && block->stmts.empty());
}

Stmt SimplifyFor(const Stmt& s, const For& loop, const Ranges& ranges) {
  const Expr extent = Simplify(loop.extent, ranges);
  const Interval bounds = BoundsOf(extent, ranges);
  if (bounds.high <= 0) return MakeBlock({});
  if (const int64_t* n = AsInt(extent); n != nullptr && *n == 1) {
    return Simplify(Substitute(loop.body, {{loop.var, Expr(0)}}), ranges);
  }
  Ranges inner = ranges;
  inner[loop.var] = {0, bounds.high - 1};
  const Stmt body = Simplify(loop.body, inner);
  if (IsEmpty(body)) return body;
  if (extent.SameHandle(loop.extent) && body.SameHandle(loop.body)) return s;
  return MakeFor(loop.var, extent, loop.kind, body);
}

Stmt SimplifyLet(const Stmt& s, const Let& let, const Ranges& ranges) {
  Expr value = Simplify(let.value, ranges);
  Ranges inner = ranges;
  inner[let.var] = RangeOf(let, ranges);
  Stmt body = Simplify(let.body, inner);
  if (value.SameHandle(let.value) && body.SameHandle(let.body)) return s;
  return MakeLet(let.var, std::move(value), std::move(body));
}

Stmt SimplifyBlock(const Stmt& s, const Block& block, const Ranges& ranges) {
  std::vector<Stmt> stmts;
  bool changed = false;
  for (const Stmt& child : block.stmts) {
    Stmt next = Simplify(child, ranges);
    changed |= !next.SameHandle(child);
    const Block* inner = next.As<Block>();
    if (inner != nullptr && (inner->stmts.empty() || inner->name.empty())) {
      changed = true;
      stmts.insert(stmts.end(), inner->stmts.begin(), inner->stmts.end());
    } else {
      stmts.push_back(std::move(next));
    }
  }
  return changed ? MakeBlock(std::move(stmts), block.name) : s;
}

}  // namespace

void Linear::Add(const Expr& atom, int64_t coefficient) {
  if (coefficient == 0) return;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!terms[i].first.SameHandle(atom) && !Equal(terms[i].first, atom)) continue;
    terms[i].second = MultiplyAddWrapping(terms[i].second, coefficient, 1);
    if (terms[i].second == 0) terms.erase(terms.begin() + i);
    return;
  }
  terms.emplace_back(atom, coefficient);
}

void Linear::Add(const Linear& other, int64_t factor) {
  for (const auto& [atom, k] : other.terms) Add(atom, MultiplyAddWrapping(0, k, factor));
  constant = MultiplyAddWrapping(constant, other.constant, factor);
}

Linear ToLinear(const Expr& index, const Ranges& ranges) {
  const QueryBudget budget;
  Linear result;
  if (const int64_t* value = AsInt(index)) {
    result.constant = *value;
  } else if (const Var* v = index.As<Var>()) {
    const auto it = ranges.find(v->name);
    if (it != ranges.end() && it->second.IsPoint()) {
      result.constant = it->second.low;
    } else {
      result.Add(index, 1);
    }
  } else if (budget.IsExhausted()) {
    result.Add(index, 1);
  } else if (const Binary* binary = index.As<Binary>(); binary != nullptr && IsIndex(binary->a)) {
    return BinaryToLinear(*binary, index, ranges);
  } else if (const Select* select = index.As<Select>()) {
    const Expr condition = Simplify(select->condition, ranges);
    if (const int64_t* c = AsInt(condition)) return ToLinear(*c != 0 ? select->on_true : select->on_false, ranges);
    result.Add(MakeSelect(condition, Simplify(select->on_true, ranges), Simplify(select->on_false, ranges)), 1);
  } else {
    result.Add(MapChildren(index, [&](const Expr& child) { return Simplify(child, ranges); }), 1);
  }
  return result;
}

Ranges SizeRanges(std::span<const OpenSize> sizes) {
  Ranges ranges;
  for (const OpenSize& size : sizes) ranges[size.name] = {size.min, size.max};
  return ranges;
}

Ranges SizeRanges(const Func& func) {
  Ranges ranges;
  for (const Let* let = func.body.defined() ? func.body.As<Let>() : nullptr; let != nullptr;
       let = let->body.As<Let>()) {
    ranges[let->var] = RangeOf(*let, {});
  }
  return ranges;
}

std::vector<OpenSize> OpenSizesOf(const Func& func) {
  std::vector<OpenSize> sizes;
  for (const auto& [name, range] : SizeRanges(func)) {
    if (range.low >= 0 && range.high < Interval::kUnbounded) sizes.push_back({name, range.low, range.high});
  }
  return sizes;
}

Linear ToLinear(const BufferNode& buffer, const std::vector<Expr>& indices, const Ranges& ranges) {
  Linear place;
  Size row = 1;
  for (size_t d = indices.size(); d-- > 0;) {
    if (row.IsFixed()) {
      place.Add(ToLinear(indices[d], ranges), row.value());
    } else {
      place.Add(ToLinear(indices[d] * Expr(row), ranges), 1);
    }
    if (d > 0) row *= buffer.shape[d];
  }
  return place;
}

Expr FromLinear(const Linear& linear) {
  Expr sum;
  for (const auto& [atom, k] : linear.terms) {
    if (!sum.defined()) {
      sum = k == 1 ? atom : atom * Expr(k);
    } else if (k < 0) {
      sum = sum - (k == -1 ? atom : atom * Expr(MultiplyAddWrapping(0, k, -1)));
    } else {
      sum = sum + (k == 1 ? atom : atom * Expr(k));
    }
  }
  if (!sum.defined()) return Expr(linear.constant);
  if (linear.constant > 0) return sum + Expr(linear.constant);
  if (linear.constant < 0) return sum - Expr(MultiplyAddWrapping(0, linear.constant, -1));
  return sum;
}

// The ranges where e >= least, e being a variable, a sum with one, or a quotient of that.
Ranges RangesAtLeast(const Expr& e, int64_t least, Ranges ranges) {
  if (const Var* variable = e.As<Var>()) {
    const auto range = ranges.find(variable->name);
    const bool known = range != ranges.end() && range->second.low != kAnyValue.low;
    if (known) range->second.low = std::max(range->second.low, least);
    return ranges;
  }
  const Binary* quotient = e.As<Binary>();
  const int64_t* divisor = quotient != nullptr && quotient->op == BinaryOp::kFloorDiv ? AsInt(quotient->b) : nullptr;
  if (divisor != nullptr && *divisor > 0) {
    const int64_t dividend = Clamp(static_cast<__int128>(least) * *divisor);
    return RangesAtLeast(Expr(quotient->a), dividend, std::move(ranges));
  }
  const Linear sum = ToLinear(e, {});
  if (sum.terms.size() != 1 || sum.terms[0].second <= 0 || Equal(sum.terms[0].first, e)) return ranges;
  const int64_t rest = Clamp(static_cast<__int128>(least) - sum.constant);
  return RangesAtLeast(sum.terms[0].first, -FloorDivide(-rest, sum.terms[0].second), std::move(ranges));
}

Ranges RangesWhere(const Expr& condition, Ranges ranges) {
  const Binary* test = condition.As<Binary>();
  if (test == nullptr) return ranges;
  if (test->op == BinaryOp::kAnd) return RangesWhere(test->b, RangesWhere(test->a, std::move(ranges)));
  const int64_t* least = test->op == BinaryOp::kGe ? AsInt(test->b) : nullptr;
  if (least == nullptr || MayWrap(test->a, ranges)) return ranges;
  return RangesAtLeast(test->a, *least, std::move(ranges));
}

namespace {

// Whether e has a term of the other sum, or of the arms of a minimum or maximum in it.
bool SharesTerm(const Linear& e, const Linear& other, const Ranges& ranges) {
  return std::ranges::any_of(other.terms, [&](const auto& term) {
    if (std::ranges::any_of(e.terms, [&](const auto& own) { return Equal(own.first, term.first); })) return true;
    const Binary* m = term.first.template As<Binary>();
    if (m == nullptr || (m->op != BinaryOp::kMin && m->op != BinaryOp::kMax)) return false;
    return SharesTerm(e, ToLinear(m->a, ranges), ranges) || SharesTerm(e, ToLinear(m->b, ranges), ranges);
  });
}

// What is known of all parts of a linear form.
struct Known {
  bool simplified;  // under the ranges, so that simplifying again tells nothing new
  bool exact;       // no part may wrap
};

Interval BoundsOf(const Linear& linear, const Ranges& ranges, Known known);

// The linear form of an index that is simplified already.
Linear TermsOf(const Expr& index) {
  Linear result;
  const Binary* binary = index.As<Binary>();
  if (const int64_t* value = AsInt(index)) {
    result.constant = *value;
  } else if (binary != nullptr && (binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kSub)) {
    result = TermsOf(binary->a);
    result.Add(TermsOf(binary->b), binary->op == BinaryOp::kAdd ? 1 : -1);
  } else if (binary != nullptr && binary->op == BinaryOp::kMul && AsInt(binary->b) != nullptr) {
    result.Add(TermsOf(binary->a), *AsInt(binary->b));
  } else {
    result.Add(index, 1);
  }
  return result;
}

// A lower bound of e where the condition is true, from the parts of it that say that something is at least a number.
int64_t LowWhere(const Expr& condition, const Linear& e, const Ranges& ranges, bool exact) {
  const Binary* test = condition.As<Binary>();
  if (test == nullptr) return -Interval::kUnbounded;
  if (test->op == BinaryOp::kAnd) {
    return std::max(LowWhere(test->a, e, ranges, exact), LowWhere(test->b, e, ranges, exact));
  }
  const int64_t* least = test->op == BinaryOp::kGe ? AsInt(test->b) : nullptr;
  if (least == nullptr || (!exact && MayWrap(test->a, ranges))) return -Interval::kUnbounded;
  const Linear tested = ToLinear(test->a, ranges);
  if (!SharesTerm(e, tested, ranges)) return -Interval::kUnbounded;  // e says nothing about it
  Linear more = e;
  more.Add(tested, -1);
  return Plus(BoundsOf(more, ranges, {false, exact}), {*least, *least}).low;
}

// k * min(a, b) + rest equals min or max of (k * a + rest) and (k * b + rest). The bounds of these two sums see terms
// that cancel between an arm and the rest. Adding the bounds of single terms does not. nullopt: no term is one.
std::optional<Interval> BoundsOfExtreme(const Linear& linear, const Ranges& ranges, Known known) {
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    const Binary* m = linear.terms[i].first.As<Binary>();
    if (m == nullptr || (m->op != BinaryOp::kMin && m->op != BinaryOp::kMax)) continue;
    if (!known.exact && (MayWrap(m->a, ranges) || MayWrap(m->b, ranges))) continue;
    const int64_t k = linear.terms[i].second;
    Linear a = linear;
    a.terms.erase(a.terms.begin() + static_cast<std::ptrdiff_t>(i));
    Linear b = a;
    a.Add(known.simplified ? TermsOf(m->a) : ToLinear(m->a, ranges), k);
    b.Add(known.simplified ? TermsOf(m->b) : ToLinear(m->b, ranges), k);
    const Interval x = BoundsOf(a, ranges, known), y = BoundsOf(b, ranges, known);
    if ((m->op == BinaryOp::kMin) == (k > 0)) return Interval{std::min(x.low, y.low), std::min(x.high, y.high)};
    return Interval{std::max(x.low, y.low), std::max(x.high, y.high)};
  }
  return std::nullopt;
}

// k * select(c, a, b) + rest lies between the bounds of k * a + rest, where c is true, and those of k * b + rest.
std::optional<Interval> BoundsOfSelect(const Linear& linear, const Ranges& ranges, Known known) {
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    const Select* select = linear.terms[i].first.As<Select>();
    if (select == nullptr) continue;
    if (!known.exact && (MayWrap(select->on_true, ranges) || MayWrap(select->on_false, ranges))) continue;
    const int64_t k = linear.terms[i].second;
    Linear a = linear;
    a.terms.erase(a.terms.begin() + static_cast<std::ptrdiff_t>(i));
    Linear b = a;
    const Ranges where = RangesWhere(select->condition, ranges);
    a.Add(ToLinear(select->on_true, where), k);
    b.Add(known.simplified ? TermsOf(select->on_false) : ToLinear(select->on_false, ranges), k);
    const Interval x = BoundsOf(a, where, {false, known.exact}), y = BoundsOf(b, ranges, known);
    const int64_t low = std::max(x.low, LowWhere(select->condition, a, where, known.exact));
    return Interval{std::min(low, y.low), std::max(x.high, y.high)};
  }
  return std::nullopt;
}

Interval BoundsOf(const Linear& linear, const Ranges& ranges, Known known) {
  const QueryBudget budget;
  if (budget.IsExhausted()) return {};
  if (const auto bounds = BoundsOfExtreme(linear, ranges, known)) return *bounds;
  if (const auto bounds = BoundsOfSelect(linear, ranges, known)) return *bounds;
  Interval sum{linear.constant, linear.constant};
  for (const auto& [atom, k] : linear.terms) sum = Plus(sum, Scale(AtomBounds(atom, ranges), k));
  // a % b is at most b - 1, which may cancel with the rest.
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    const auto& [atom, k] = linear.terms[i];
    const Binary* m = atom.As<Binary>();
    if (k < 0 || m == nullptr || m->op != BinaryOp::kFloorMod || AsInt(m->b) != nullptr) continue;
    if (MayWrap(m->b, ranges) || BoundsOf(m->b, ranges).low <= 0) continue;
    Linear most = linear;
    most.terms.erase(most.terms.begin() + static_cast<std::ptrdiff_t>(i));
    most.Add(ToLinear(m->b - Expr(1), ranges), k);
    sum.high = std::min(sum.high, BoundsOf(most, ranges, known).high);
  }
  return sum;
}

}  // namespace

Interval BoundsOf(const Linear& linear, const Ranges& ranges) {
  const bool exact =
      std::ranges::none_of(linear.terms, [&](const auto& term) { return MayHoldAnyValue(term.first, ranges); });
  return BoundsOf(linear, ranges, {true, exact});
}

Interval BoundsOf(const Expr& index, const Ranges& ranges) {
  if (const int64_t* value = AsInt(index)) return {*value, *value};
  return BoundsOf(ToLinear(index, ranges), ranges);
}

Interval RangeOf(const Let& let, const Ranges& ranges) {
  if (let.value.type() != kIndexType) return {};
  if (!MayHoldAnyValue(let.value, ranges)) return BoundsOf(let.value, ranges);
  const Interval bounds = SafeBoundsOf(let.value, ranges);
  return IsBounded(bounds) ? bounds : kAnyValue;
}

std::optional<int64_t> ConstantValue(const Expr& index, const Ranges& ranges) {
  const Interval bounds = BoundsOf(index, ranges);
  if (!bounds.IsPoint()) return std::nullopt;
  return bounds.low;
}

Expr Simplify(const Expr& e, const Ranges& ranges) {
  if (e.As<IntImm>() != nullptr || e.As<FloatImm>() != nullptr) return e;
  if (IsIndex(e)) {
    const Linear linear = ToLinear(e, ranges);
    if (linear.terms.size() == 1 && linear.constant == 0 && linear.terms[0].second == 1) return linear.terms[0].first;
    return FromLinear(linear);
  }
  if (const Binary* binary = e.As<Binary>()) {
    if (IsCompare(binary->op) && IsIndex(binary->a)) return SimplifyCompare(*binary, ranges);
    const bool logic = binary->op == BinaryOp::kAnd || binary->op == BinaryOp::kOr;
    if (logic && e.type().dtype == DType::kBool)
      return SimplifyLogic(e, *binary, ranges);  // for integers && and || are bitwise operators
  }
  if (const Select* select = e.As<Select>()) {
    const Expr condition = Simplify(select->condition, ranges);
    if (const int64_t* c = AsInt(condition)) return Simplify(*c != 0 ? select->on_true : select->on_false, ranges);
    const Expr a = Simplify(select->on_true, ranges), b = Simplify(select->on_false, ranges);
    if (condition.SameHandle(select->condition) && a.SameHandle(select->on_true) && b.SameHandle(select->on_false))
      return e;
    return MakeSelect(condition, a, b);
  }
  if (const Cast* cast = e.As<Cast>()) {
    const Expr value = Simplify(cast->value, ranges);
    const int64_t* c = AsInt(value);
    if (c != nullptr && IsIndex(value) && IsFloat(cast->type.dtype)) {
      return MakeFloat(cast->type, IntToFloat(kIndexType.dtype, *c, cast->type.dtype));
    }
    return value.SameHandle(cast->value) ? e : MakeCast(cast->type, value);
  }
  return MapChildren(e, [&](const Expr& child) { return Simplify(child, ranges); });
}

Stmt Simplify(const Stmt& s, const Ranges& ranges) {
  const ExprFn expr_fn = [&](const Expr& e) { return Simplify(e, ranges); };
  const StmtFn stmt_fn = [&](const Stmt& child) { return Simplify(child, ranges); };
  return Match(
      s, [&](const For& loop) { return SimplifyFor(s, loop, ranges); },
      [&](const Block& block) { return SimplifyBlock(s, block, ranges); },
      [&](const If& branch) {
        const Expr condition = Simplify(branch.condition, ranges);
        if (const int64_t* c = AsInt(condition)) {
          if (*c != 0) return Simplify(branch.then_case, ranges);
          return branch.else_case.defined() ? Simplify(branch.else_case, ranges) : MakeBlock({});
        }
        const Stmt mapped = MapChildren(s, stmt_fn, expr_fn);
        const If& kept = *mapped.As<If>();
        return IsEmpty(kept.then_case) && IsEmpty(kept.else_case) ? MakeBlock({}) : mapped;
      },
      [&](const Let& let) { return SimplifyLet(s, let, ranges); },
      [&](const auto&) { return MapChildren(s, stmt_fn, expr_fn); });
}

}  // namespace hone::ir
