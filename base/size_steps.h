// SPDX-License-Identifier: Apache-2.0
// Steps that compute sizes from other sizes when a run begins: extents of tensors, and how many groups a kernel needs.
//
// Values are numbered: first the given ones, then one for each step. A step reads earlier values only. The compiler
// writes steps (compiler/ir/size_numbers.h) into the manifest of a package and into interfaces of kernels. Not here:
// which values are given. This header needs only the C++ library, because the runtime that ships with a model includes
// it.
#ifndef HONE_BASE_SIZE_STEPS_H_
#define HONE_BASE_SIZE_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hone {

// The numbers are stored in packages and never change.
enum class SizeOp : uint32_t {
  kNumber = 1,
  kAdd = 2,
  kSubtract = 3,
  kMultiply = 4,
  kFloorDivide = 5,     // by 0: 0
  kFloorRemainder = 6,  // by 0: 0
  kMin = 7,
  kMax = 8
};

// Computes one value from earlier ones. Stored in packages as it is.
struct SizeStep {
  SizeOp op;
  uint32_t a, b;      // numbers of earlier values; 0 for kNumber
  uint32_t reserved;  // 0
  int64_t number;     // of kNumber; else 0
  friend bool operator==(const SizeStep&, const SizeStep&) = default;
};
static_assert(sizeof(SizeStep) == 24);

// The word of an operation in texts ("add"), and the operation of a word; nullopt for an unknown one.
std::string_view Name(SizeOp op);
std::optional<SizeOp> ParseSizeOp(std::string_view word);

// Whether the step is one of the above and reads only the first `known` values.
bool IsValid(const SizeStep& step, size_t known);
// The value of a valid step. Sums and products wrap.
int64_t Compute(const SizeStep& step, std::span<const int64_t> values);
// Computes all steps. values: the given ones, followed by one place for each step.
void ComputeAll(std::span<const SizeStep> steps, std::span<int64_t> values);

}  // namespace hone

#endif  // HONE_BASE_SIZE_STEPS_H_
