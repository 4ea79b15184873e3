// SPDX-License-Identifier: Apache-2.0
// Constants that a kernel has not touched for a while, as in a model: between two runs of a kernel there, the constants
// of all others pass through the caches. Timed again and again on the same ones, a kernel finds them in a cache, and
// schedules win that are slower in the model.
//
// One read-only buffer of numbers (cold_numbers.h). Every call takes the next stretch of it, so that memory comes round
// as often as in the model, and nothing is copied or flushed. What the numbers are does
// not matter to the time of a kernel; results are compared with the true constants, before.
#ifndef HONE_DEVICE_AGENT_DEVICES_CPU_COLD_CONSTANTS_H_
#define HONE_DEVICE_AGENT_DEVICES_CPU_COLD_CONSTANTS_H_

#include <cstdint>
#include <span>

namespace hone::agent {

class ColdConstants {
 public:
  // Of memory that must outlive them.
  explicit ColdConstants(std::span<char> numbers) : numbers_(numbers) {}

  // Whether stretches of so many bytes, taken in turns, are cold.
  bool Serve(int64_t bytes) const { return bytes > 0 && bytes <= static_cast<int64_t>(numbers_.size()) / 2; }
  // The next stretch, aligned to HONE_BUFFER_ALIGNMENT; `bytes` at most what Serve allows.
  void* Next(int64_t bytes);

 private:
  std::span<char> numbers_;
  int64_t next_ = 0;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CPU_COLD_CONSTANTS_H_
