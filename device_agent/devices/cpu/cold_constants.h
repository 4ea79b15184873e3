// SPDX-License-Identifier: Apache-2.0
// Constants that are cold in timed calls, as they are in a model: there the constants of all other kernels pass through
// the caches between two calls of a kernel. A kernel that is timed on the same constants again and again finds them in
// a cache, and schedules win that are slower in the model.
//
// Each timed call takes the next stretch of one read-only buffer of numbers (cold_numbers.h), so that memory returns as
// often as in the model, without copies or flushes. The values do not influence the time of a kernel. Results are
// compared before, with the true constants.
#ifndef HONE_DEVICE_AGENT_DEVICES_CPU_COLD_CONSTANTS_H_
#define HONE_DEVICE_AGENT_DEVICES_CPU_COLD_CONSTANTS_H_

#include <cstdint>
#include <span>

namespace hone::agent {

class ColdConstants {
 public:
  // The memory of `numbers` must outlive them.
  explicit ColdConstants(std::span<char> numbers) : numbers_(numbers) {}

  // Whether consecutive stretches of `bytes` are cold when the buffer is cycled.
  bool CanServe(int64_t bytes) const { return bytes > 0 && bytes <= static_cast<int64_t>(numbers_.size()) / 2; }
  // The next stretch, aligned to HONE_BUFFER_ALIGNMENT; `bytes` must satisfy CanServe.
  void* Next(int64_t bytes);

 private:
  std::span<char> numbers_;
  int64_t next_ = 0;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CPU_COLD_CONSTANTS_H_
