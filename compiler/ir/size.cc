// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/size.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/printer.h"

namespace hone::ir {

struct SizeBounds {
  int64_t low, high;
};

// A factor of a product: a symbol, or an operation that is no sum.
struct SizeAtom {
  enum class Kind : uint8_t { kSymbol, kFloorDiv, kFloorMod, kMin, kMax };
  Kind kind = Kind::kSymbol;
  OpenSize symbol;  // of kSymbol
  Size a, b;        // operands of the other kinds
  Expr expr;
  std::string text;  // that of expr; atoms are compared and sorted by it
  SizeBounds bounds = {0, 0};
};

namespace {

using AtomPtr = std::shared_ptr<const SizeAtom>;
using Atom = SizeAtom;

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max(), kSmallest = std::numeric_limits<int64_t>::min();

// Arithmetic that stays at the end of the range where it would overflow.
int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? kSmallest : kLargest;
}
int64_t SaturatingMultiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) != (b < 0) ? kSmallest : kLargest;
}
int64_t FloorQuotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return SaturatingMultiply(a, -1);
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

// a / b; nullopt if b does not divide a, or if the quotient is no number of 64 bits.
std::optional<int64_t> WholeQuotient(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == kSmallest) || a % b != 0) return std::nullopt;
  return a / b;
}

SizeBounds BoundsOfProduct(SizeBounds a, SizeBounds b) {
  const auto [low, high] = std::minmax({SaturatingMultiply(a.low, b.low), SaturatingMultiply(a.low, b.high),
                                        SaturatingMultiply(a.high, b.low), SaturatingMultiply(a.high, b.high)});
  return {low, high};
}

bool Before(const AtomPtr& a, const AtomPtr& b) { return a->text < b->text; }

std::string TextOf(const Expr& e) {
  Printer printer;
  printer.Write(e);
  return printer.Take();
}

}  // namespace

// sum of coefficient * factors, plus constant. Terms are sorted by their factors, which are sorted as well; no
// coefficient is 0.
struct SizeSum {
  struct Term {
    std::vector<std::shared_ptr<const SizeAtom>> factors;
    int64_t coefficient = 0;
  };
  std::vector<Term> terms;
  int64_t constant = 0;
  SizeBounds bounds = {0, 0};

  // The sum of a size: its own, or that of a number.
  static SizeSum Of(const Size& size) {
    if (size.sum_ != nullptr) return *size.sum_;
    SizeSum sum;
    sum.constant = size.value_;
    return sum;
  }
  static SizeSum Of(std::shared_ptr<const SizeAtom> atom) {
    SizeSum sum;
    sum.terms.push_back({{std::move(atom)}, 1});
    return sum;
  }
  static Size ToSize(const SizeSum& sum) { return Size(sum); }
};

namespace {

using Term = SizeSum::Term;

// Negative, 0 or positive, as for strings.
int CompareFactors(const std::vector<AtomPtr>& a, const std::vector<AtomPtr>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (const int order = a[i]->text.compare(b[i]->text); order != 0) return order;
  }
  return static_cast<int>(a.size()) - static_cast<int>(b.size());
}

void AddTerm(SizeSum& sum, std::vector<AtomPtr> factors, int64_t coefficient) {
  if (coefficient == 0) return;
  if (factors.empty()) {
    sum.constant = SaturatingAdd(sum.constant, coefficient);
    return;
  }
  auto place = std::ranges::lower_bound(
      sum.terms, factors, [](const auto& a, const auto& b) { return CompareFactors(a, b) < 0; }, &Term::factors);
  if (place == sum.terms.end() || CompareFactors(place->factors, factors) != 0) {
    sum.terms.insert(place, Term{std::move(factors), coefficient});
    return;
  }
  place->coefficient = SaturatingAdd(place->coefficient, coefficient);
  if (place->coefficient == 0) sum.terms.erase(place);
}

SizeSum AddScaled(SizeSum a, const SizeSum& b, int64_t factor) {
  for (const Term& term : b.terms) AddTerm(a, term.factors, SaturatingMultiply(term.coefficient, factor));
  a.constant = SaturatingAdd(a.constant, SaturatingMultiply(b.constant, factor));
  return a;
}

SizeBounds BoundsOfTerm(const Term& term) {
  SizeBounds bounds{term.coefficient, term.coefficient};
  for (const AtomPtr& factor : term.factors) bounds = BoundsOfProduct(bounds, factor->bounds);
  return bounds;
}

Expr ExprOfTerm(const Term& term, int64_t coefficient) {
  Expr product;
  for (const AtomPtr& factor : term.factors) product = product.defined() ? product * factor->expr : factor->expr;
  return coefficient == 1 ? product : product * Expr(coefficient);
}

AtomPtr MakeAtom(Atom::Kind kind, const Size& a, const Size& b, Expr expr, SizeBounds bounds) {
  std::string text = TextOf(expr);
  return std::make_shared<const Atom>(Atom{kind, {}, a, b, std::move(expr), std::move(text), bounds});
}

Size FromAtom(AtomPtr atom) { return SizeSum::ToSize(SizeSum::Of(std::move(atom))); }

// The number k with a == k * b; nullopt if there is none.
std::optional<int64_t> MultipleOf(const SizeSum& a, const SizeSum& b) {
  if (a.terms.empty() || b.terms.empty() || a.terms.size() != b.terms.size()) return std::nullopt;
  const std::optional<int64_t> multiple = WholeQuotient(a.terms.front().coefficient, b.terms.front().coefficient);
  if (!multiple.has_value() || *multiple == kSmallest) return std::nullopt;  // the negation of kSmallest overflows
  const SizeSum rest = AddScaled(a, b, -*multiple);
  return rest.terms.empty() && rest.constant == 0 ? multiple : std::nullopt;
}

// The quotient if every term of `a` is a multiple of the single term of `b`, or if `a` is a multiple of `b` as a whole;
// nullopt otherwise.
std::optional<Size> DivideTerms(const SizeSum& a, const SizeSum& b) {
  if (const std::optional<int64_t> multiple = MultipleOf(a, b)) return Size(*multiple);
  Term divisor{{}, b.constant};
  if (!b.terms.empty()) {
    if (b.terms.size() > 1 || b.constant != 0) return std::nullopt;
    divisor = b.terms.front();
  }
  if (divisor.coefficient == 0) return std::nullopt;
  SizeSum quotient;
  const auto divide = [&](std::vector<AtomPtr> factors, int64_t coefficient) {
    const std::optional<int64_t> whole = WholeQuotient(coefficient, divisor.coefficient);
    if (!whole.has_value()) return false;
    for (const AtomPtr& factor : divisor.factors) {
      const auto same = std::ranges::find(factors, factor->text, [](const AtomPtr& f) { return f->text; });
      if (same == factors.end()) return false;
      factors.erase(same);
    }
    AddTerm(quotient, std::move(factors), *whole);
    return true;
  };
  for (const Term& term : a.terms) {
    if (!divide(term.factors, term.coefficient)) return std::nullopt;
  }
  if (a.constant != 0 && !divide({}, a.constant)) return std::nullopt;
  return SizeSum::ToSize(quotient);
}

// floor(sum / divisor) for a positive number: the multiples of the divisor leave the division, and floor(floor(x / d) +
// c) / e) becomes floor((x + c * d) / (d * e)).
Size DivideByNumber(const SizeSum& sum, int64_t divisor) {
  SizeSum whole, rest;
  for (const Term& term : sum.terms) {
    const int64_t multiples = FloorQuotient(term.coefficient, divisor);
    AddTerm(whole, term.factors, multiples);
    AddTerm(rest, term.factors, term.coefficient - multiples * divisor);
  }
  whole.constant = FloorQuotient(sum.constant, divisor);
  rest.constant = sum.constant - whole.constant * divisor;
  const Size outside = SizeSum::ToSize(whole), inside = SizeSum::ToSize(rest);
  if (inside.IsFixed()) return outside + Size(FloorQuotient(inside.value(), divisor));
  const int64_t low = FloorQuotient(inside.min(), divisor), high = FloorQuotient(inside.max(), divisor);
  if (low == high) return outside + Size(low);
  if (rest.terms.size() == 1 && rest.terms[0].factors.size() == 1 && rest.terms[0].coefficient == 1) {
    const Atom& atom = *rest.terms[0].factors[0];
    if (atom.kind == Atom::Kind::kFloorDiv && atom.b.IsFixed()) {
      const int64_t nested = atom.b.value();
      return outside + FloorDiv(atom.a + Size(SaturatingMultiply(rest.constant, nested)),
                                Size(SaturatingMultiply(nested, divisor)));
    }
  }
  return outside +
         FromAtom(MakeAtom(Atom::Kind::kFloorDiv, inside, divisor, FloorDiv(Expr(inside), Expr(divisor)), {low, high}));
}

// A minimum or maximum of two sizes.
struct Extreme {
  bool is_min;
  Size a, b;
};

// The sum as one minimum or maximum; nullopt if it is none. A constant beside it goes into the operands.
std::optional<Extreme> ExtremeOf(const SizeSum& sum) {
  if (sum.terms.size() != 1 || sum.terms[0].coefficient != 1 || sum.terms[0].factors.size() != 1) return std::nullopt;
  const Atom& atom = *sum.terms[0].factors[0];
  if (atom.kind != Atom::Kind::kMin && atom.kind != Atom::Kind::kMax) return std::nullopt;
  return Extreme{atom.kind == Atom::Kind::kMin, atom.a + Size(sum.constant), atom.b + Size(sum.constant)};
}

// The bounds that follow from those of the terms.
SizeBounds BoundsOfTerms(const SizeSum& sum) {
  SizeBounds result = {sum.constant, sum.constant};
  for (const Term& term : sum.terms) {
    const SizeBounds bounds = BoundsOfTerm(term);
    result = {SaturatingAdd(result.low, bounds.low), SaturatingAdd(result.high, bounds.high)};
  }
  return result;
}

// The bounds of a sum in which x // d * d occurs. It is x minus a remainder, so that x may cancel: (n + 31) // 32 * 32
// - n is 0 to 31.
SizeBounds BoundsOfSum(const SizeSum& sum) {
  SizeBounds result = BoundsOfTerms(sum);
  for (size_t i = 0; sum.terms.size() > 1 && i < sum.terms.size(); ++i) {
    const Term& term = sum.terms[i];
    const Atom& atom = *term.factors.front();
    if (term.factors.size() > 1 || atom.kind != Atom::Kind::kFloorDiv || !atom.b.IsFixed()) continue;
    const int64_t divisor = atom.b.value();
    if (divisor <= 0 || term.coefficient % divisor != 0) continue;
    const int64_t multiple = term.coefficient / divisor;
    SizeSum without = sum;
    without.terms.erase(without.terms.begin() + static_cast<std::ptrdiff_t>(i));
    const SizeBounds other = BoundsOfTerms(AddScaled(std::move(without), SizeSum::Of(atom.a), multiple));
    const int64_t remainder = SaturatingMultiply(multiple, divisor - 1);
    if (other.low == kSmallest || other.high == kLargest) continue;
    result.low = std::max(result.low, SaturatingAdd(other.low, -std::max<int64_t>(remainder, 0)));
    result.high = std::min(result.high, SaturatingAdd(other.high, -std::min<int64_t>(remainder, 0)));
  }
  return result;
}

// The values that lie within a and within b.
SizeBounds Intersection(SizeBounds a, SizeBounds b) { return {std::max(a.low, b.low), std::min(a.high, b.high)}; }

// The bounds of a sum of products in which no factor occurs twice in one product: such a sum is least and greatest at
// corners of the box of its factors. (n - 1) * (m - 1) is n * m - n - m + 1, whose terms alone do not tell that it is
// at least 0. No bounds if a factor occurs twice in
// a product, or if the sum has more than kFactorsMax different factors.
SizeBounds BoundsAtCorners(const SizeSum& sum) {
  constexpr size_t kFactorsMax = 6;
  std::map<std::string, SizeBounds> factors;
  for (const Term& term : sum.terms) {
    std::set<std::string> own;
    for (const AtomPtr& factor : term.factors) {
      if (!own.insert(factor->text).second) return {kSmallest, kLargest};
      factors.emplace(factor->text, factor->bounds);
    }
  }
  if (factors.size() > kFactorsMax) return {kSmallest, kLargest};
  SizeBounds result = {kLargest, kSmallest};
  for (unsigned corner = 0; corner < 1u << factors.size(); ++corner) {
    const auto value = [&](const AtomPtr& factor) {
      const auto found = factors.find(factor->text);
      const bool high = (corner >> std::distance(factors.begin(), found) & 1) != 0;
      return high ? found->second.high : found->second.low;
    };
    int64_t total = sum.constant;
    for (const Term& term : sum.terms) {
      int64_t product = term.coefficient;
      for (const AtomPtr& factor : term.factors) product = SaturatingMultiply(product, value(factor));
      if (product == kSmallest || product == kLargest) return {kSmallest, kLargest};
      total = SaturatingAdd(total, product);
    }
    result = {std::min(result.low, total), std::max(result.high, total)};
  }
  return result;
}

// The bounds of a sum all of whose terms have a factor in common, as a product: n * n - n is n * (n - 1), which is at
// least 0 for n of at least 1. Unbounded if they have none.
SizeBounds BoundsOfFactored(const SizeSum& sum) {
  if (sum.constant != 0) return {kSmallest, kLargest};
  for (const AtomPtr& common : sum.terms.front().factors) {
    SizeSum rest;
    size_t found = 0;
    for (Term term : sum.terms) {
      const auto factor = std::ranges::find_if(term.factors, [&](const AtomPtr& f) { return f->text == common->text; });
      if (factor == term.factors.end()) break;
      ++found;
      term.factors.erase(factor);
      if (term.factors.empty()) {
        rest.constant = SaturatingAdd(rest.constant, term.coefficient);
      } else {
        rest.terms.push_back(std::move(term));
      }
    }
    if (found < sum.terms.size() || rest.terms.empty()) continue;
    return BoundsOfProduct(common->bounds, Intersection(BoundsOfSum(rest), BoundsAtCorners(rest)));
  }
  return {kSmallest, kLargest};
}

// The narrowest bounds that these rules find.
SizeBounds NarrowBoundsOf(const SizeSum& sum) {
  const SizeBounds bounds = BoundsOfSum(sum);
  const bool has_product = std::ranges::any_of(sum.terms, [](const Term& term) { return term.factors.size() > 1; });
  if (sum.terms.size() < 2 && (sum.terms.empty() || sum.constant == 0)) return bounds;
  return has_product ? Intersection(bounds, Intersection(BoundsAtCorners(sum), BoundsOfFactored(sum))) : bounds;
}

}  // namespace

Size::Size(const SizeSum& sum) {
  if (sum.terms.empty()) {
    value_ = sum.constant;
    return;
  }
  SizeSum owned = sum;
  owned.bounds = NarrowBoundsOf(sum);
  sum_ = std::make_shared<const SizeSum>(std::move(owned));
}

Size Size::Open(const OpenSize& symbol) {
  HONE_CHECK(symbol.min >= 0 && symbol.min <= symbol.max);
  if (symbol.min == symbol.max) return symbol.min;
  const Expr var = MakeVar(symbol.name);
  return FromAtom(std::make_shared<const Atom>(
      Atom{Atom::Kind::kSymbol, symbol, {}, {}, var, TextOf(var), {symbol.min, symbol.max}}));
}

int64_t Size::value() const {
  HONE_CHECK(IsFixed());
  return value_;
}
int64_t Size::min() const { return sum_ == nullptr ? value_ : sum_->bounds.low; }
int64_t Size::max() const { return sum_ == nullptr ? value_ : sum_->bounds.high; }

Size::operator Expr() const {
  if (sum_ == nullptr) return Expr(value_);
  Expr total;
  for (const Term& term : sum_->terms) {
    if (!total.defined()) {
      total = ExprOfTerm(term, term.coefficient);
    } else if (term.coefficient < 0) {
      total = total - ExprOfTerm(term, -term.coefficient);
    } else {
      total = total + ExprOfTerm(term, term.coefficient);
    }
  }
  if (sum_->constant > 0) return total + Expr(sum_->constant);
  if (sum_->constant < 0) return total - Expr(-sum_->constant);
  return total;
}

void Size::ForEachSymbol(const std::function<void(const OpenSize&)>& f) const {
  if (sum_ == nullptr) return;
  for (const Term& term : sum_->terms) {
    for (const AtomPtr& factor : term.factors) {
      if (factor->kind == Atom::Kind::kSymbol) f(factor->symbol);
      factor->a.ForEachSymbol(f);
      factor->b.ForEachSymbol(f);
    }
  }
}

namespace {

Size SubstituteAtom(const Atom& atom, const std::map<std::string, Size, std::less<>>& values) {
  if (atom.kind == Atom::Kind::kSymbol) {
    const auto found = values.find(atom.symbol.name);
    return found == values.end() ? Size::Open(atom.symbol) : found->second;
  }
  const Size a = atom.a.Substitute(values), b = atom.b.Substitute(values);
  switch (atom.kind) {
    case Atom::Kind::kFloorDiv:
      return FloorDiv(a, b);
    case Atom::Kind::kFloorMod:
      return FloorMod(a, b);
    case Atom::Kind::kMin:
      return Min(a, b);
    default:
      return Max(a, b);
  }
}

}  // namespace

Size Size::Substitute(const std::map<std::string, Size, std::less<>>& values) const {
  if (sum_ == nullptr) return *this;
  Size total = sum_->constant;
  for (const Term& term : sum_->terms) {
    Size product = term.coefficient;
    for (const AtomPtr& factor : term.factors) product *= SubstituteAtom(*factor, values);
    total += product;
  }
  return total;
}

bool operator==(const Size& a, const Size& b) {
  if (a.IsFixed() || b.IsFixed()) return a.IsFixed() && b.IsFixed() && a.value_ == b.value_;
  if (a.sum_ == b.sum_) return true;
  const auto same = [](const Term& x, const Term& y) {
    return x.coefficient == y.coefficient && CompareFactors(x.factors, y.factors) == 0;
  };
  return a.sum_->constant == b.sum_->constant && std::ranges::equal(a.sum_->terms, b.sum_->terms, same);
}

Size operator+(const Size& a, const Size& b) {
  if (a.IsFixed() && b.IsFixed()) return SaturatingAdd(a.value_, b.value_);
  return SizeSum::ToSize(AddScaled(SizeSum::Of(a), SizeSum::Of(b), 1));
}

Size operator-(const Size& a, const Size& b) {
  if (a.IsFixed() && b.IsFixed()) return SaturatingAdd(a.value_, SaturatingMultiply(b.value_, -1));
  return SizeSum::ToSize(AddScaled(SizeSum::Of(a), SizeSum::Of(b), -1));
}

Size operator*(const Size& a, const Size& b) {
  if (a.IsFixed() && b.IsFixed()) return SaturatingMultiply(a.value_, b.value_);
  const SizeSum x = SizeSum::Of(a), y = SizeSum::Of(b);
  SizeSum product = AddScaled({}, x, y.constant);
  for (const Term& right : y.terms) {
    for (const Term& left : x.terms) {
      std::vector<AtomPtr> factors = left.factors;
      factors.insert(factors.end(), right.factors.begin(), right.factors.end());
      std::ranges::sort(factors, Before);
      AddTerm(product, std::move(factors), SaturatingMultiply(left.coefficient, right.coefficient));
    }
    AddTerm(product, right.factors, SaturatingMultiply(right.coefficient, x.constant));
  }
  return SizeSum::ToSize(product);
}

Size FloorDiv(const Size& a, const Size& b) {
  if (a.IsFixed() && b.IsFixed()) return FloorQuotient(a.value_, b.value_);
  const SizeSum dividend = SizeSum::Of(a), divisor = SizeSum::Of(b);
  // A divisor that may be 0 has no exact quotient, because division by 0 gives 0.
  if (b.min() > 0) {
    if (std::optional<Size> quotient = DivideTerms(dividend, divisor)) return *quotient;
  }
  if (b.IsFixed() && b.value_ > 0) return DivideByNumber(dividend, b.value_);
  SizeBounds bounds{kSmallest, kLargest};
  if (a.min() >= 0 && b.min() >= 0) {
    bounds = {b.min() == 0 ? 0 : FloorQuotient(a.min(), std::max<int64_t>(b.max(), 1)),
              FloorQuotient(a.max(), std::max<int64_t>(b.min(), 1))};
  }
  return FromAtom(MakeAtom(Atom::Kind::kFloorDiv, a, b, FloorDiv(Expr(a), Expr(b)), bounds));
}

Size FloorMod(const Size& a, const Size& b) {
  if (a.IsFixed() && b.IsFixed()) {
    const bool leaves_none = b.value_ == 0 || b.value_ == -1;
    return leaves_none ? 0 : a.value_ - b.value_ * FloorQuotient(a.value_, b.value_);
  }
  if (b.min() > 0 && Divides(b, a)) return 0;
  const SizeBounds bounds =
      b.min() >= 0 ? SizeBounds{0, std::max<int64_t>(b.max() - 1, 0)} : SizeBounds{kSmallest, kLargest};
  return FromAtom(MakeAtom(Atom::Kind::kFloorMod, a, b, FloorMod(Expr(a), Expr(b)), bounds));
}

Size Min(const Size& a, const Size& b) {
  if (AlwaysAtMost(a, b)) return a;
  if (AlwaysAtMost(b, a)) return b;
  const bool ordered = TextOf(Expr(a)) < TextOf(Expr(b));
  const Size &first = ordered ? a : b, &second = ordered ? b : a;
  return FromAtom(MakeAtom(Atom::Kind::kMin, first, second, Min(Expr(first), Expr(second)),
                           {std::min(a.min(), b.min()), std::min(a.max(), b.max())}));
}

Size Max(const Size& a, const Size& b) {
  if (AlwaysAtMost(b, a)) return a;
  if (AlwaysAtMost(a, b)) return b;
  const bool ordered = TextOf(Expr(a)) < TextOf(Expr(b));
  const Size &first = ordered ? a : b, &second = ordered ? b : a;
  return FromAtom(MakeAtom(Atom::Kind::kMax, first, second, Max(Expr(first), Expr(second)),
                           {std::max(a.min(), b.min()), std::max(a.max(), b.max())}));
}

bool AlwaysLess(const Size& a, const Size& b) {
  if (a.IsFixed() && b.IsFixed()) return a.value() < b.value();
  if ((b - a).min() > 0) return true;
  // A minimum is less if one of its operands is, also where the other is not: min(n, 150) is at most n.
  if (const std::optional<Extreme> left = ExtremeOf(SizeSum::Of(a))) {
    const bool first = AlwaysLess(left->a, b);
    return left->is_min ? first || AlwaysLess(left->b, b) : first && AlwaysLess(left->b, b);
  }
  if (const std::optional<Extreme> right = ExtremeOf(SizeSum::Of(b))) {
    const bool first = AlwaysLess(a, right->a);
    return right->is_min ? first && AlwaysLess(a, right->b) : first || AlwaysLess(a, right->b);
  }
  return false;
}

bool Divides(const Size& b, const Size& a) {
  if (a.IsFixed() && b.IsFixed()) return WholeQuotient(a.value(), b.value()).has_value();
  return DivideTerms(SizeSum::Of(a), SizeSum::Of(b)).has_value();
}

Size ExactQuotient(const Size& a, const Size& b) {
  const std::optional<Size> quotient = DivideTerms(SizeSum::Of(a), SizeSum::Of(b));
  HONE_CHECK(quotient.has_value());
  return *quotient;
}

Size Product(std::span<const Size> sizes) {
  Size product = 1;
  for (const Size& size : sizes) product *= size;
  return product;
}

bool operator==(const Shape& a, const Shape& b) {
  return std::ranges::equal(a, b, [](const Size& x, const Size& y) { return x == y; });
}

bool IsFixed(std::span<const Size> shape) {
  return std::ranges::all_of(shape, [](const Size& size) { return size.IsFixed(); });
}

std::vector<int64_t> Values(std::span<const Size> shape) {
  std::vector<int64_t> values;
  for (const Size& size : shape) values.push_back(size.value());
  return values;
}

std::vector<int64_t> MaxValues(std::span<const Size> shape) {
  std::vector<int64_t> values;
  for (const Size& size : shape) values.push_back(size.max());
  return values;
}

std::optional<Size> ToSize(const Expr& e, std::span<const OpenSize> symbols) {
  if (const auto* number = e.As<IntImm>(); number != nullptr && number->type == kIndexType) return number->value;
  if (const auto* var = e.As<Var>()) {
    const auto found = std::ranges::find(symbols, var->name, &OpenSize::name);
    return found == symbols.end() ? std::nullopt : std::optional(Size::Open(*found));
  }
  const auto* binary = e.As<Binary>();
  if (binary == nullptr || binary->a.type() != kIndexType) return std::nullopt;
  const std::optional<Size> a = ToSize(binary->a, symbols), b = ToSize(binary->b, symbols);
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  switch (binary->op) {
    case BinaryOp::kAdd:
      return *a + *b;
    case BinaryOp::kSub:
      return *a - *b;
    case BinaryOp::kMul:
      return *a * *b;
    case BinaryOp::kFloorDiv:
      return FloorDiv(*a, *b);
    case BinaryOp::kFloorMod:
      return FloorMod(*a, *b);
    case BinaryOp::kMin:
      return Min(*a, *b);
    case BinaryOp::kMax:
      return Max(*a, *b);
    default:
      return std::nullopt;
  }
}

std::string Print(const Size& size) { return size.IsFixed() ? std::to_string(size.value()) : TextOf(Expr(size)); }

}  // namespace hone::ir
