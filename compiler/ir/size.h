// SPDX-License-Identifier: Apache-2.0
// A Size: the extent of a dimension. It is a number, or an expression of open sizes, which get their values when a run
// begins.
//
// An open size is a symbol with a range. Sizes are kept in one normal form: a sum of products of symbols and of floor
// divisions, remainders, minima and maxima of sizes. Two sizes are equal exactly if their normal forms are, so `==`
// never holds for sizes that may differ. Order is a question about all values in the ranges: AlwaysLess, AlwaysAtMost.
// Not here: evaluation at run time (the runtime has its own, deploy/runtime). Start with Size::Open and the operators.
#ifndef HONE_COMPILER_IR_SIZE_H_
#define HONE_COMPILER_IR_SIZE_H_

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"

namespace hone::ir {

class Expr;
struct SizeSum;

// A symbol and the values that it may have, both ends included. 0 <= min <= max.
struct OpenSize {
  std::string name;  // identity; one name has one range in a model or workload
  int64_t min = 0, max = 0;
  bool operator==(const OpenSize&) const = default;
};

class Size {
 public:
  Size() = default;
  template <std::integral T>
  Size(T value) : value_(static_cast<int64_t>(value)) {}  // NOLINT: numbers are sizes
  // A symbol. A symbol with one possible value is that number.
  static Size Open(const OpenSize& symbol);

  bool IsFixed() const { return sum_ == nullptr; }
  // The number. Aborts if the size is open.
  int64_t value() const;
  // Bounds over all values of the symbols. The true range may be narrower.
  int64_t min() const;
  int64_t max() const;
  // The expression: an IntImm, or arithmetic on Vars with the names of the symbols.
  operator Expr() const;  // NOLINT: a size may stand in any index expression

  // Calls f for each symbol in the expression, perhaps several times for one.
  void ForEachSymbol(const std::function<void(const OpenSize&)>& f) const;
  // The size with symbols replaced. Symbols that the map lacks stay.
  Size Substitute(const std::map<std::string, Size, std::less<>>& values) const;

  Size& operator+=(const Size& b) { return *this = *this + b; }
  Size& operator-=(const Size& b) { return *this = *this - b; }
  Size& operator*=(const Size& b) { return *this = *this * b; }
  friend bool operator==(const Size& a, const Size& b);
  friend Size operator+(const Size& a, const Size& b);
  friend Size operator-(const Size& a, const Size& b);
  friend Size operator*(const Size& a, const Size& b);
  friend Size FloorDiv(const Size& a, const Size& b);  // 0 if b is 0
  friend Size FloorMod(const Size& a, const Size& b);  // 0 if b is 0
  friend Size Min(const Size& a, const Size& b);
  friend Size Max(const Size& a, const Size& b);

 private:
  friend struct SizeSum;
  explicit Size(const SizeSum& sum);

  int64_t value_ = 0;                   // if sum_ is null
  std::shared_ptr<const SizeSum> sum_;  // in normal form; null for a number
};

inline Size operator/(const Size& a, const Size& b) { return FloorDiv(a, b); }
inline Size operator%(const Size& a, const Size& b) { return FloorMod(a, b); }
inline Size CeilDiv(const Size& a, const Size& b) { return FloorDiv(a + (b - Size(1)), b); }  // as b may be 2^63 - 1
// Whether a < b, or a <= b, for all values of the symbols. False may also mean that it could not be decided.
bool AlwaysLess(const Size& a, const Size& b);
inline bool AlwaysAtMost(const Size& a, const Size& b) { return AlwaysLess(a, b + Size(1)); }
// Whether b divides a for all values of the symbols.
bool Divides(const Size& b, const Size& a);
// a / b if b divides a for all values of the symbols. Aborts otherwise.
Size ExactQuotient(const Size& a, const Size& b);
Size Product(std::span<const Size> sizes);

// The shape of a tensor, row-major. Numbers are a shape as well.
class Shape : public std::vector<Size> {
 public:
  using std::vector<Size>::vector;
  Shape(std::vector<Size> sizes) : std::vector<Size>(std::move(sizes)) {}                      // NOLINT
  Shape(const std::vector<int64_t>& sizes) : std::vector<Size>(sizes.begin(), sizes.end()) {}  // NOLINT
};
bool operator==(const Shape& a, const Shape& b);
bool IsFixed(std::span<const Size> shape);
// The numbers of a fixed shape. Aborts if a size is open.
std::vector<int64_t> Values(std::span<const Size> shape);
// The largest shape: max() of each size.
std::vector<int64_t> MaxValues(std::span<const Size> shape);

// The size that the expression states; nullopt if it is no arithmetic on numbers and on these symbols.
std::optional<Size> ToSize(const Expr& e, std::span<const OpenSize> symbols);
// The text: that of the expression, "n * 768 + 1".
std::string Print(const Size& size);

}  // namespace hone::ir

template <>
struct fmt::formatter<hone::ir::Size> : fmt::formatter<std::string> {
  template <typename Context>
  auto format(const hone::ir::Size& size, Context& context) const {
    return fmt::formatter<std::string>::format(hone::ir::Print(size), context);
  }
};

#endif  // HONE_COMPILER_IR_SIZE_H_
