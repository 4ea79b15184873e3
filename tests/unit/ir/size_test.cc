// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "compiler/ir/expr.h"

namespace hone::ir {
namespace {

using Numbers = std::map<std::string, Size, std::less<>>;

const OpenSize kN = {"n", 1, 512}, kM = {"m", 2, 8}, kZ = {"z", 0, 3};
const Size n = Size::Open(kN), m = Size::Open(kM), z = Size::Open(kZ);

TEST(Size, ProductsOfSumsHaveNarrowBounds) {
  const Size below = (n - Size(1)) * (m - Size(2));  // its terms alone allow -1,025
  EXPECT_EQ(below.min(), 0);
  EXPECT_EQ(below.max(), 511 * 6);
  const Size square = (n - Size(1)) * n * Size(3);
  EXPECT_EQ(square.min(), 0);
  EXPECT_GE(square.max(), 511 * 512 * 3);
  EXPECT_EQ((n * m - n).min(), 1);
  EXPECT_EQ((m * z - z * Size(2) + Size(1)).min(), 1);
  // Every value lies within the bounds.
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const auto sum = [&](const Size& a, const Size& b) {
      const auto number = [&] { return Size(static_cast<int64_t>(random.Next() % 7) - 3); };
      return a * number() + b * number() + number();
    };
    const Size product = sum(m, z) * sum(z, m);
    for (int64_t mv = kM.min; mv <= kM.max; ++mv) {
      for (int64_t zv = kZ.min; zv <= kZ.max; ++zv) {
        const int64_t value = product.Substitute({{"m", mv}, {"z", zv}}).value();
        EXPECT_LE(product.min(), value) << product.min() << " " << i;
        EXPECT_GE(product.max(), value) << product.max() << " " << i;
      }
    }
  }
}

TEST(Size, NumbersAreSizes) {
  const Size seven = 7;
  EXPECT_TRUE(seven.IsFixed());
  EXPECT_EQ(seven.value(), 7);
  EXPECT_EQ(seven.min(), 7);
  EXPECT_EQ(seven.max(), 7);
  EXPECT_EQ(Size(), Size(0));
  EXPECT_EQ(Size(7) / 2, Size(3));
  EXPECT_EQ(Size(-7) / 2, Size(-4));
  EXPECT_EQ(Size(-7) % 2, Size(1));
  EXPECT_EQ(Size(7) / 0, Size(0));
  EXPECT_EQ(Size(7) % 0, Size(0));
  EXPECT_EQ(CeilDiv(7, 2), Size(4));
  EXPECT_EQ(Min(Size(3), 5), Size(3));
  EXPECT_EQ(Max(Size(3), 5), Size(5));
}

TEST(Size, ASymbolWithOneValueIsANumber) {
  EXPECT_TRUE(Size::Open({"k", 4, 4}).IsFixed());
  EXPECT_EQ(Size::Open({"k", 4, 4}), Size(4));
  EXPECT_FALSE(n.IsFixed());
}

TEST(Size, SumsAndProductsHaveOneForm) {
  EXPECT_EQ(n + m, m + n);
  EXPECT_EQ(n * m, m * n);
  EXPECT_EQ((n + m) + 3, n + (3 + m));
  EXPECT_EQ((n * m) * 6, 2 * (m * (3 * n)));
  EXPECT_EQ((n + 2) * (m - 1), n * m - n + 2 * m - 2);
  EXPECT_EQ((n + m) * (n - m), n * n - m * m);
  EXPECT_EQ(n + n, 2 * n);
  EXPECT_NE(n, m);
  EXPECT_NE(n, n + 1);
  EXPECT_NE(n, 2 * n);
  EXPECT_NE(n * n, n);
  EXPECT_NE(n, Size(1));
  EXPECT_NE(Size(0), n);
}

TEST(Size, WhatCancelsIsANumber) {
  EXPECT_TRUE((n - n).IsFixed());
  EXPECT_EQ(n - n, Size(0));
  EXPECT_EQ((n + 3) - n, Size(3));
  EXPECT_EQ(0 * n, Size(0));
  EXPECT_EQ((n + 1) * (n - 1) - n * n, Size(-1));
}

TEST(Size, AMinimumIsAtMostEachOfItsOperands) {
  const Size n = Size::Open({"n", 1, 1000}), m = Size::Open({"m", 1, 1000});
  EXPECT_TRUE(AlwaysAtMost(Min(n, Size(150)), n));
  EXPECT_TRUE(AlwaysAtMost(Min(n, m) + Size(3), m + Size(3)));
  EXPECT_TRUE(AlwaysAtMost(n, Max(n, m)));
  EXPECT_FALSE(AlwaysAtMost(n, Min(n, m)));
  EXPECT_FALSE(AlwaysAtMost(Max(n, m), m));
  EXPECT_TRUE(AlwaysLess(Min(n, m), Max(n, m) + Size(1)));
}

TEST(Size, AMultipleOfASumIsDividedByIt) {
  const Size n = Size::Open({"n", 1, 1000}), m = Size::Open({"m", 1, 1000});
  const Size sum = n * m * Size(63) + n * Size(3) + Size(5);
  EXPECT_TRUE(Divides(sum, sum * Size(4)));
  EXPECT_EQ(ExactQuotient(sum * Size(4), sum), Size(4));
  EXPECT_FALSE(Divides(sum, sum * Size(4) + Size(1)));
}

TEST(Size, ARemainderIsBounded) {
  const Size n = Size::Open({"n", 1, 1000});
  const Size missing = FloorDiv(n + Size(31), Size(32)) * Size(32) - n;
  EXPECT_EQ(missing.min(), 0);
  EXPECT_EQ(missing.max(), 31);
  const Size rest = n - FloorDiv(n, Size(7)) * Size(7);
  EXPECT_EQ(rest.min(), 0);
  EXPECT_EQ(rest.max(), 6);
  EXPECT_TRUE(AlwaysAtMost(n, FloorDiv(n + Size(31), Size(32)) * Size(32)));
}

TEST(Size, TheNameIsTheIdentity) {
  EXPECT_EQ(Size::Open(kN), n);
  EXPECT_EQ(Size::Open(kN) - n, Size(0));
}

TEST(Size, DivisionTakesOutMultiples) {
  EXPECT_EQ(4 * n / 4, n);
  EXPECT_EQ(6 * n / 4, n + (2 * n) / 4);
  EXPECT_EQ((4 * n + 3) / 4, n);
  EXPECT_EQ((4 * n + 7) / 4, n + 1);
  EXPECT_EQ((4 * n - 1) / 4, n - 1);
  EXPECT_EQ((n * m) / n, m);
  EXPECT_EQ((n * m * 6) / (2 * m), 3 * n);
  EXPECT_EQ((n * m + n) / n, m + 1);
  EXPECT_EQ(m / 9, Size(0)) << "no value of m reaches 9";
  EXPECT_EQ((m + 8) / 9, Size(1) + (m - 1) / 9);
  EXPECT_NE((2 * n) / 4, n) << "a half";
}

TEST(Size, ASymbolThatMayBeZeroDoesNotCancel) {
  EXPECT_FALSE((n * z / z) == n) << "it is 0 if z is";
  EXPECT_EQ((n * z / z).Substitute({{"z", 0}, {"n", 5}}), Size(0));
  EXPECT_EQ((n * z / z).Substitute({{"z", 2}, {"n", 5}}), Size(5));
}

TEST(Size, NestedFloorsBecomeOne) {
  EXPECT_EQ(n / 2 / 2, n / 4);
  EXPECT_EQ(n / 2 / 3 / 5, n / 30);
  EXPECT_EQ((n / 2 + 1) / 2, (n + 2) / 4);
  EXPECT_EQ(CeilDiv(CeilDiv(n, 2), 2), CeilDiv(n, 4)) << "two convolutions of stride 2";
  EXPECT_EQ(((n - 1) / 2 + 1 - 1) / 2 + 1, (n - 1) / 4 + 1);
  EXPECT_EQ((n / 2) * 4 / 2, (n / 2) * 2);
  EXPECT_NE((n / 2) * 2, n);
}

TEST(Size, CeilDivRoundsUp) {
  for (const int64_t value : {1, 3, 4, 5, 8, 511, 512}) {
    EXPECT_EQ(CeilDiv(n, 4).Substitute({{"n", value}}), Size((value + 3) / 4));
  }
}

TEST(Size, RemaindersOfMultiplesAreZero) {
  EXPECT_EQ(4 * n % 4, Size(0));
  EXPECT_EQ(n * m % m, Size(0));
  EXPECT_FALSE((n % 4).IsFixed());
  EXPECT_EQ((n % 4).min(), 0);
  EXPECT_EQ((n % 4).max(), 3);
}

TEST(Size, DividesHoldsForAllValues) {
  EXPECT_TRUE(Divides(4, 8));
  EXPECT_FALSE(Divides(4, 9));
  EXPECT_FALSE(Divides(0, 8));
  EXPECT_TRUE(Divides(4, 4 * n));
  EXPECT_TRUE(Divides(4, 4 * n + 8 * m + 12));
  EXPECT_FALSE(Divides(4, 4 * n + 2));
  EXPECT_FALSE(Divides(4, n));
  EXPECT_FALSE(Divides(4, 2 * n));
  EXPECT_TRUE(Divides(n, n * m));
  EXPECT_TRUE(Divides(2 * n, 6 * n * m));
  EXPECT_FALSE(Divides(2 * n, 3 * n));
  EXPECT_FALSE(Divides(n * m, n));
  EXPECT_FALSE(Divides(n, Size(8)));
  EXPECT_TRUE(Divides(n, Size(0)));
}

TEST(Size, ExactQuotientUndoesAProduct) {
  EXPECT_EQ(ExactQuotient(12, 4), Size(3));
  EXPECT_EQ(ExactQuotient(12 * n, 4), 3 * n);
  EXPECT_EQ(ExactQuotient(n * m * 768, m), n * 768);
  EXPECT_EQ(ExactQuotient((n + 1) * 8, 8), n + 1);
  EXPECT_EQ(ExactQuotient((n / 2) * 6, n / 2), Size(6));
}

TEST(SizeDeathTest, WhatIsNotKnownAborts) {
  EXPECT_DEATH(n.value(), "");
  EXPECT_DEATH(ExactQuotient(n, 4), "");
  EXPECT_DEATH(Values(Shape{1, n}), "");
  EXPECT_DEATH(Size::Open({"k", -1, 4}), "");
  EXPECT_DEATH(Size::Open({"k", 5, 4}), "");
}

TEST(Size, BoundsHoldTheValues) {
  EXPECT_EQ(n.min(), 1);
  EXPECT_EQ(n.max(), 512);
  EXPECT_EQ((n + m).min(), 3);
  EXPECT_EQ((n + m).max(), 520);
  EXPECT_EQ((n - m).min(), -7);
  EXPECT_EQ((n - m).max(), 510);
  EXPECT_EQ((n * m * 2).min(), 4);
  EXPECT_EQ((n * m * 2).max(), 8192);
  EXPECT_EQ((3 - n).min(), -509);
  EXPECT_EQ((n / 4).min(), 0);
  EXPECT_EQ((n / 4).max(), 128);
  EXPECT_EQ((n / m).max(), 256);
  EXPECT_EQ(Min(n, m).max(), 8);
  EXPECT_EQ(Max(n, m).min(), 2);
}

TEST(Size, BoundsOfAQuotientByWhatMayBeZero) {
  const Size quotient = (n + 16) / z;
  EXPECT_LE(quotient.min(), 0) << "a quotient by 0 is 0";
  EXPECT_GE(quotient.max(), 528);
}

TEST(Size, BoundsStayAtTheEndsOfTheRange) {
  const Size huge = Size::Open({"huge", 0, std::numeric_limits<int64_t>::max()});
  EXPECT_EQ((huge * huge).max(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ((huge + huge).max(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ((huge * huge).min(), 0);
}

TEST(Size, OrderIsAboutAllValues) {
  EXPECT_TRUE(AlwaysLess(3, 4));
  EXPECT_FALSE(AlwaysLess(4, 4));
  EXPECT_TRUE(AlwaysAtMost(4, 4));
  EXPECT_TRUE(AlwaysLess(m, 9));
  EXPECT_FALSE(AlwaysLess(m, 8));
  EXPECT_TRUE(AlwaysAtMost(m, 8));
  EXPECT_TRUE(AlwaysLess(n, n + 1)) << "what cancels does not count";
  EXPECT_TRUE(AlwaysAtMost(n, n));
  EXPECT_FALSE(AlwaysLess(n, n));
  EXPECT_FALSE(AlwaysLess(n, m));
  EXPECT_FALSE(AlwaysLess(m, n));
  EXPECT_TRUE(AlwaysAtMost(n + m, n + 8));
}

TEST(Size, MinAndMaxChooseWhereTheyCan) {
  EXPECT_EQ(Min(m, 9), m);
  EXPECT_EQ(Min(9, m), m);
  EXPECT_EQ(Max(m, 2), m);
  EXPECT_EQ(Max(m, 8), Size(8));
  EXPECT_EQ(Min(n, n + 3), n);
  EXPECT_EQ(Max(n, n + 3), n + 3);
  EXPECT_EQ(Min(n, n), n);
  EXPECT_EQ(Min(n, m), Min(m, n));
  EXPECT_EQ(Max(n, m), Max(m, n));
  EXPECT_NE(Min(n, m), Max(n, m));
  EXPECT_EQ(Min(n, m).Substitute({{"n", 5}, {"m", 6}}), Size(5));
  EXPECT_EQ(Max(n, m).Substitute({{"n", 5}, {"m", 6}}), Size(6));
}

TEST(Size, PrintsAsItsExpression) {
  EXPECT_EQ(Print(Size(12)), "12");
  EXPECT_EQ(Print(Size(-3)), "-3");
  EXPECT_EQ(Print(n), "n");
  EXPECT_EQ(Print(n * 768 + 1), "n * 768 + 1");
  EXPECT_EQ(Print(1 + 768 * n), "n * 768 + 1") << "the form, not the way to it";
  EXPECT_EQ(Print(n - 1), "n - 1");
  EXPECT_EQ(Print(m * n), "m * n");
  EXPECT_EQ(Print(n - m), "m * -1 + n") << "terms are sorted";
  EXPECT_EQ(fmt::format("{}", n + 2), "n + 2");
  EXPECT_EQ(fmt::format("{}", Size(2)), "2");
}

TEST(Size, ToSizeReadsWhatExprWrites) {
  const std::vector<OpenSize> symbols = {kN, kM, kZ};
  for (const Size& size : {Size(5), n, n * m - 3, (n + 1) / 2, n % 4, Min(n, m), Max(n / 2, m), n * z / z, 3 - n}) {
    const std::optional<Size> read = ToSize(Expr(size), symbols);
    ASSERT_TRUE(read.has_value()) << Print(size);
    EXPECT_EQ(*read, size) << Print(size) << " and " << Print(*read);
  }
}

TEST(Size, ToSizeRefusesOtherExpressions) {
  const std::vector<OpenSize> symbols = {kN};
  EXPECT_FALSE(ToSize(MakeVar("k"), symbols).has_value()) << "an axis is no size";
  EXPECT_FALSE(ToSize(MakeVar("n") + MakeVar("k"), symbols).has_value());
  EXPECT_FALSE(ToSize(MakeFloat({DType::kFloat32, 1}, 2), symbols).has_value());
  EXPECT_FALSE(ToSize(MakeInt({DType::kInt32, 1}, 2), symbols).has_value());
  EXPECT_FALSE(ToSize(MakeVar("n") < Expr(3), symbols).has_value());
  const Buffer a = MakeBuffer("a", DType::kInt64, {4});
  EXPECT_FALSE(ToSize(MakeLoad(a, {MakeVar("n")}), symbols).has_value());
}

TEST(Size, SubstituteReplacesSymbols) {
  EXPECT_EQ((n * m + 1).Substitute({{"n", 4}, {"m", 3}}), Size(13));
  EXPECT_EQ((n * m + 1).Substitute({{"n", 4}}), 4 * m + 1) << "what the map lacks stays";
  EXPECT_EQ((n / 2 + n).Substitute({{"n", 2 * m}}), 3 * m);
  EXPECT_EQ(Max(n, m).Substitute({{"n", m}}), m);
  EXPECT_EQ(Size(7).Substitute({{"n", 4}}), Size(7));
  EXPECT_EQ(n.Substitute({}), n);
}

TEST(Size, ForEachSymbolFindsNestedOnes) {
  std::set<std::string> names;
  (n * 2 + Max(m, z + 1) / 3).ForEachSymbol([&](const OpenSize& symbol) { names.insert(symbol.name); });
  EXPECT_EQ(names, (std::set<std::string>{"m", "n", "z"}));
  Size(4).ForEachSymbol([](const OpenSize&) { FAIL(); });
}

TEST(Shapes, AreComparedSizeBySize) {
  const Shape open = {n, 768}, fixed = std::vector<int64_t>{4, 768};
  EXPECT_TRUE(open == (Shape{Size::Open(kN), 768}));
  EXPECT_FALSE(open == fixed);
  EXPECT_FALSE(open == (Shape{n}));
  EXPECT_FALSE(IsFixed(open));
  EXPECT_TRUE(IsFixed(fixed));
  EXPECT_TRUE(IsFixed(Shape()));
  EXPECT_EQ(Values(fixed), (std::vector<int64_t>{4, 768}));
  EXPECT_EQ(MaxValues(open), (std::vector<int64_t>{512, 768}));
  EXPECT_EQ(Product(open), n * 768);
  EXPECT_EQ(Product(Shape()), Size(1));
}

// --- Random expressions

// Floor division and remainder by their definitions; 0 if b is 0.
int64_t FloorDivide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  int64_t quotient = a / b;
  if (quotient * b != a && (a < 0) != (b < 0)) --quotient;
  return quotient;
}
int64_t FloorRemainder(int64_t a, int64_t b) { return b == 0 ? 0 : a - b * FloorDivide(a, b); }

// Makes a size, and in the same steps its number for some values of the symbols.
class RandomSize {
 public:
  explicit RandomSize(uint64_t seed) : random_(seed) {
    for (const OpenSize& symbol : {OpenSize{"a", 1, 9}, OpenSize{"b", 0, 7}, OpenSize{"c", 2, 40}}) {
      symbols_.push_back(symbol);
      numbers_[symbol.name] = symbol.min + random_.Below(symbol.max - symbol.min + 1);
    }
  }

  struct Both {
    Size size;
    int64_t number;
  };
  Both Make(int depth) {
    if (depth == 0 || random_.Below(8) == 0) return Leaf();
    const Both x = Make(depth - 1), y = Make(depth - 1);
    switch (random_.Below(8)) {
      case 0:
        return {x.size - y.size, x.number - y.number};
      case 1:
        return {x.size * y.size, x.number * y.number};
      case 2:
        return {x.size / y.size, FloorDivide(x.number, y.number)};
      case 3:
        return {x.size % y.size, FloorRemainder(x.number, y.number)};
      case 4:
        return {Min(x.size, y.size), std::min(x.number, y.number)};
      case 5:
        return {Max(x.size, y.size), std::max(x.number, y.number)};
      case 6: {
        const int64_t divisor = 1 + random_.Below(6);
        return {x.size / divisor, FloorDivide(x.number, divisor)};
      }
      default:
        return {x.size + y.size, x.number + y.number};
    }
  }
  int64_t ValueOf(const Size& size) const {
    Numbers values;
    for (const auto& [name, number] : numbers_) values.emplace(name, number);
    return size.Substitute(values).value();
  }
  const std::vector<OpenSize>& symbols() const { return symbols_; }

 private:
  Both Leaf() {
    if (random_.Below(3) == 0) {
      const int64_t number = random_.Below(17) - 4;
      return {number, number};
    }
    const OpenSize& symbol = symbols_[static_cast<size_t>(random_.Below(3))];
    return {Size::Open(symbol), numbers_.at(symbol.name)};
  }

  Random random_;
  std::vector<OpenSize> symbols_;
  std::map<std::string, int64_t> numbers_;
};

// -2^63 / -1 is no number of 64 bits.
TEST(Size, TheSmallestNumberIsDividedByMinusOne) {
  constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min(), kLargest = std::numeric_limits<int64_t>::max();
  const Size minus_one = -1;
  EXPECT_FALSE(Divides(n * minus_one, n * Size(kSmallest)));
  EXPECT_FALSE(Divides(minus_one, n * Size(kSmallest)));
  EXPECT_FALSE(Divides(n * minus_one + minus_one, n * Size(kSmallest)));
  EXPECT_FALSE(Divides(minus_one, Size(kSmallest)));
  EXPECT_EQ(FloorDiv(Size(kSmallest), minus_one), Size(kLargest));
  EXPECT_EQ(FloorMod(Size(kSmallest), minus_one), Size(0));
  EXPECT_TRUE(Divides(n * minus_one, n * Size(-6)));
}

TEST(Size, RandomExpressionsHaveTheirValues) {
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    RandomSize random(seed);
    const RandomSize::Both x = random.Make(3), y = random.Make(2);
    const std::string text = fmt::format("seed {}: {}", seed, x.size);
    ASSERT_EQ(random.ValueOf(x.size), x.number) << text;
    ASSERT_LE(x.size.min(), x.number) << text;
    ASSERT_GE(x.size.max(), x.number) << text;
    const std::optional<Size> read = ToSize(Expr(x.size), random.symbols());
    ASSERT_TRUE(read.has_value()) << text;
    ASSERT_EQ(random.ValueOf(*read), x.number) << text;
    if (x.size == y.size) {
      ASSERT_EQ(x.number, y.number) << text;
    }
    if (AlwaysLess(x.size, y.size)) {
      ASSERT_LT(x.number, y.number) << text;
    }
    if (y.number != 0 && Divides(y.size, x.size)) {
      ASSERT_EQ(x.number % y.number, 0) << text;
      ASSERT_EQ(random.ValueOf(ExactQuotient(x.size, y.size)), x.number / y.number) << text;
    }
  }
}

TEST(Size, RandomExpressionsObeyTheLawsOfArithmetic) {
  for (uint64_t seed = 0; seed < 5'000; ++seed) {
    RandomSize random(seed);
    const Size x = random.Make(2).size, y = random.Make(2).size, w = random.Make(1).size;
    const std::string text = fmt::format("seed {}: {} and {} and {}", seed, x, y, w);
    ASSERT_TRUE(x + y == y + x) << text;
    ASSERT_TRUE(x * y == y * x) << text;
    ASSERT_TRUE(x - y + y == x) << text;
    ASSERT_TRUE((x + y) * w == x * w + y * w) << text;
    ASSERT_TRUE((x * y) * w == x * (y * w)) << text;
    if (AlwaysAtMost(x, y) && AlwaysAtMost(y, x)) continue;  // then either is a minimum and a maximum
    ASSERT_TRUE(Min(x, y) == Min(y, x)) << text;
    ASSERT_TRUE(Max(x, y) == Max(y, x)) << text;
  }
}

}  // namespace
}  // namespace hone::ir
