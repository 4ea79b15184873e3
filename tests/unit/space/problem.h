// SPDX-License-Identifier: Apache-2.0
// Test support: a workload with values for its params, what the interpreter makes of them, and whether a kernel agrees.
//
// Every buffer lies between canaries: a kernel that writes past one is an error.
#ifndef HONE_TESTS_UNIT_SPACE_PROBLEM_H_
#define HONE_TESTS_UNIT_SPACE_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/workload.h"

namespace hone::tests {

// Aligned bytes with a canary on both sides.
class Guarded {
 public:
  explicit Guarded(int64_t bytes);
  std::byte* data();
  std::span<std::byte> span() { return {data(), bytes_}; }
  std::span<const std::byte> span() const { return const_cast<Guarded*>(this)->span(); }
  bool Intact() const;

 private:
  size_t bytes_;
  std::unique_ptr<unsigned char, void (*)(void*)> memory_;
};

std::vector<Guarded> Allocate(const std::vector<int64_t>& bytes);
// Bytes of each.
std::vector<int64_t> BytesOf(const std::vector<ir::Buffer>& buffers);

// By how much floats may differ: `relative` times the largest magnitude in the expected tensor, or times `least` where
// that is larger. Where `apart` is not negative, by so many of the floats that there are between them, each element for
// itself. Integers are exact.
struct Tolerance {
  double relative = 1e-5;
  double least = 1e-6;
  int64_t apart = -1;
};

struct Problem {
  std::vector<Guarded> params;
  std::vector<ir::Bytes> expected;  // per output
};

// Params are uniform in their range, always the same ones; integers that have no range of their own are between -100
// and 100.
absl::StatusOr<Problem> MakeProblem(const ir::Workload& workload);
// DataLoss naming the first element that differs by more.
absl::Status Compare(const ir::BufferNode& buffer, std::span<const std::byte> expected,
                     std::span<const std::byte> actual, Tolerance tolerance);
// Compares all outputs, and looks at the canaries.
absl::Status CompareAll(const ir::Workload& workload, const Problem& problem, const std::vector<Guarded>& packed,
                        const std::vector<Guarded>& outputs, Tolerance tolerance);

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_SPACE_PROBLEM_H_
