// SPDX-License-Identifier: Apache-2.0
// Compares the elements of two tensors of one type and shape: how far they are apart, where most, and whether that is
// too far. It knows nothing of models.
#ifndef HONE_DEPLOY_DIFF_COMPARE_ELEMENTS_H_
#define HONE_DEPLOY_DIFF_COMPARE_ELEMENTS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/element_type.h"

namespace hone::diff {

// An element passes if |actual - expected| <= relative * |expected| + absolute * (largest finite |expected|) + steps.
// NaN passes where NaN is expected, and infinity where the same infinity is. All 0: the elements must be equal.
struct Tolerance {
  double relative = 0, absolute = 0;
  int64_t steps = 0;  // of integers
};

// The classes of a histogram of errors, as shares of the largest finite |expected|: equal; below 1e-7, 1e-6, ... 1e-1,
// 1; at least 1; and elements of which one side alone is NaN or infinite.
inline constexpr int kErrorClasses = 11;
std::string ErrorClassText(int number);  // "equal", "< 1e-06", ">= 1", "not finite"

struct Comparison {
  int64_t elements = 0;
  int64_t wrong = 0;                // elements that do not pass
  double largest = 0;               // the largest finite |expected|
  double max_error = 0;             // largest |actual - expected|; infinite if one side alone is NaN or infinite
  int64_t worst = -1;               // the element with that error, in row-major order; -1 if all are equal
  double actual = 0, expected = 0;  // that element
  std::array<int64_t, kErrorClasses> histogram = {};

  // The largest error as a share of the largest element; that error itself if all elements are 0.
  double RelativeError() const { return largest > 0 ? max_error / largest : max_error; }
};

// `actual` and `expected` have equally many bytes, whole elements of the type.
Comparison CompareElements(DType dtype, std::span<const uint8_t> actual, std::span<const uint8_t> expected,
                           const Tolerance& tolerance);

// The elements of a value of this shape in row-major order, from a tensor that has its dimensions in another order:
// dimension i of the value is dimension axes[i] of the tensor. `axes` is a permutation of the dimensions.
std::vector<uint8_t> InOwnOrder(std::span<const uint8_t> tensor, int64_t element_bytes, std::span<const int64_t> shape,
                                std::span<const int64_t> axes);

// The position of an element of a tensor of this shape.
std::vector<int64_t> PositionOf(int64_t element, std::span<const int64_t> shape);

}  // namespace hone::diff

#endif  // HONE_DEPLOY_DIFF_COMPARE_ELEMENTS_H_
