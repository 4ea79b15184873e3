// SPDX-License-Identifier: Apache-2.0
// Test support: a workload with values for its params, the interpreter's results, and a comparison with a kernel's
// results. Every buffer lies between canaries: a kernel that writes past one is an error.
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
// The size of each buffer in bytes.
std::vector<int64_t> BytesOf(const std::vector<ir::Buffer>& buffers);

// How much floats may differ: by `relative` times the largest magnitude in the expected tensor, or times `least` if
// that is larger. If `apart` is not negative, each element may instead differ by that many representable floats.
// Integers must be equal.
struct Tolerance {
  double relative = 1e-5;
  double least = 1e-6;
  int64_t apart = -1;
};

struct Problem {
  std::vector<Guarded> params;
  std::vector<ir::Bytes> expected;  // one for each output
};

// Fills params with numbers that are uniform in their range, and the same in every run. Integers without a range are
// between -100 and 100.
absl::StatusOr<Problem> MakeProblem(const ir::Workload& workload);
// DataLoss with the first element that differs by more than the tolerance.
absl::Status Compare(const ir::BufferNode& buffer, std::span<const std::byte> expected,
                     std::span<const std::byte> actual, Tolerance tolerance);
// Compares all outputs, and checks the canaries.
absl::Status CompareAll(const ir::Workload& workload, const Problem& problem, const std::vector<Guarded>& packed,
                        const std::vector<Guarded>& outputs, Tolerance tolerance);

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_SPACE_PROBLEM_H_
