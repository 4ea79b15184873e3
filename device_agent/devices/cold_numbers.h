// SPDX-License-Identifier: Apache-2.0
// Cold constants, as far as all devices share them: the numbers that replace a kernel's constants in timed calls, and
// which buffers they replace. devices/cpu/cold_constants.h explains why.
#ifndef HONE_DEVICE_AGENT_DEVICES_COLD_NUMBERS_H_
#define HONE_DEVICE_AGENT_DEVICES_COLD_NUMBERS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/kernel_interface.h"
#include "device_agent/visit/batch.h"
#include "device_agent/visit/guarded_memory.h"

namespace hone::agent {

// The numbers: read-only, normal and finite in every float type. The launcher keeps them across visits and its children
// inherit them, because filling them would take a child longer than many candidates take.
class ColdNumbers {
 public:
  // Ensures that there are as many as the repeats of `batch` use; none if constants stay the same. At most as many as
  // leave a small board enough memory for the kernels. memory_limit: bytes of one child; 0: no limit.
  // kResourceExhausted: no memory.
  absl::Status EnsureAllocated(const VisitBatch& batch, int64_t memory_limit);
  int64_t wanted() const { return wanted_; }  // bytes that the last batch uses
  // The number of reallocations so far. A child that was forked before the last one does not have the present numbers.
  int generation() const { return generation_; }
  // In a child: the first `bytes` of the numbers, at most those that existed when it was forked.
  std::span<char> numbers(int64_t bytes) const;
  // In a child: adds the numbers to the table, so that a write to them is reported as a write to read-only memory.
  void RegisterIn(RegionTable& table) const;

 private:
  RegionTable regions_{1};  // the launcher's own
  std::optional<GuardedBuffer> memory_;
  int64_t wanted_ = 0;
  int generation_ = 0;
};

// Index and bytes of each float constant. Packed ones are included only if all constants are floats. Integers are not
// replaced, because they may be indices.
std::vector<std::pair<uint32_t, int64_t>> ColdBuffers(const KernelInterface& interface);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_COLD_NUMBERS_H_
