// SPDX-License-Identifier: Apache-2.0
// Test support: a workload with values for its params, the interpreter's results, and a comparison with a kernel's
// results. Every buffer lies between canaries: a kernel that writes past one is an error.
#ifndef HONE_TESTS_UNIT_SPACE_PROBLEM_H_
#define HONE_TESTS_UNIT_SPACE_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/workload.h"

namespace hone::tests {

// Aligned bytes with a canary on both sides, whose bytes are NaN as floats.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) : Guarded(bytes, bytes) {}
  // room: as many bytes may be addressed. Those behind `bytes` belong to the canary.
  Guarded(int64_t bytes, int64_t room);
  std::byte* data();
  std::span<std::byte> span() { return {data(), bytes_}; }
  std::span<const std::byte> span() const { return const_cast<Guarded*>(this)->span(); }
  std::span<std::byte> room() { return {data(), room_}; }
  // With the canary behind it, for a copy that a device writes.
  std::span<std::byte> with_canary();
  bool Intact() const;

 private:
  size_t bytes_, room_;
  std::unique_ptr<unsigned char, void (*)(void*)> memory_;
};

std::vector<Guarded> Allocate(const std::vector<int64_t>& bytes);
// Memory for `buffers`, with room for as many bytes as those of `largest` take.
std::vector<Guarded> Allocate(const std::vector<ir::Buffer>& buffers, const std::vector<ir::Buffer>& largest);
// The size of each buffer in bytes; for its largest sizes.
std::vector<int64_t> BytesOf(const std::vector<ir::Buffer>& buffers);

// Values of a workload's open sizes, by name. A kernel is checked at several: it is compiled once, and each run gets
// memory for its own sizes. A workload without open sizes has one run, without values.
using SizeMap = std::map<std::string, int64_t, std::less<>>;
inline const std::vector<SizeMap> kFixedSizes = {{}};
// The values in the order of workload.sizes, as kernels take them.
std::vector<int64_t> InOrder(const ir::Workload& workload, const SizeMap& sizes);

// How much floats may differ: by `relative` times the largest magnitude in the expected tensor, or times `least` if
// that is larger. If `apart` is not negative, each element may instead differ by that many representable floats.
// Integers must be equal.
struct Tolerance {
  double relative = 1e-5;
  double least = 1e-6;
  int64_t apart = -1;
};

// How much memory a buffer has: for the sizes of the run, or for the largest ones, as the interpreter of funcs takes
// it.
enum class Room : uint8_t { kOfRun, kOfLargest };

struct Problem {
  ir::Workload workload;  // with numbers for its sizes
  std::vector<Guarded> params, outputs;
  std::vector<ir::Bytes> expected;  // one for each output
};

// Fills params with numbers that are uniform in their range, and the same in every run. Integers without a range are
// between -100 and 100.
absl::StatusOr<Problem> MakeProblem(const ir::Workload& workload, const SizeMap& sizes, Room room = Room::kOfRun);
// DataLoss with the first element that differs by more than the tolerance.
absl::Status Compare(const ir::BufferNode& buffer, std::span<const std::byte> expected,
                     std::span<const std::byte> actual, Tolerance tolerance);
// Compares all outputs, and checks the canaries.
absl::Status CompareAll(const Problem& problem, const std::vector<Guarded>& packed, Tolerance tolerance);
// An error of the run at these sizes, with them.
absl::Status AtSizes(const absl::Status& status, const SizeMap& sizes);

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_SPACE_PROBLEM_H_
