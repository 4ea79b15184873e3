// SPDX-License-Identifier: Apache-2.0
// What repeats on cold constants have in common on all devices: the numbers that come round, and which buffers of a
// kernel are replaced by them. What cold constants are: device_agent/devices/cpu/cold_constants.h.
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

// The numbers: normal and finite in every float type, read-only. The launcher keeps them from visit to visit, and its
// children inherit them: to fill them took a child longer than many a candidate.
class ColdNumbers {
 public:
  // As many as repeats of `batch` want, if there are not enough yet; none for constants that stay the same. No more
  // than would leave a small board without memory for the kernels themselves, of which `memory_limit` bytes are a
  // child's; 0 for no limit. kResourceExhausted: no memory.
  absl::Status Provide(const VisitBatch& batch, int64_t memory_limit);
  int64_t wanted() const { return wanted_; }  // bytes that the last batch wants
  // Grows when others are provided: children forked before do not have them.
  int changes() const { return changes_; }
  // In a child: so many bytes of them, no more than were there when it was forked.
  std::span<char> numbers(int64_t bytes) const;
  // In a child: that they are memory of its own which nobody may write.
  void EnterIn(RegionTable& table) const;

 private:
  RegionTable regions_{1};  // of the launcher
  std::optional<GuardedBuffer> memory_;
  int64_t wanted_ = 0;
  int changes_ = 0;
};

// Indices and sizes of the float constants, packed ones too. Integers stay what they are: they may be indices.
std::vector<std::pair<uint32_t, int64_t>> ColdBuffers(const KernelInterface& interface);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_COLD_NUMBERS_H_
