// SPDX-License-Identifier: Apache-2.0
// What a visit's child shows the launcher of a kernel that has run: its outputs, and what lies around every buffer. The
// child copies it into a file of memory that both have mapped; the launcher, which has never mapped a kernel's code,
// judges it.
//
// The reference's outputs are not in here, nor anywhere else in the child: a kernel cannot copy what it is compared
// with. Nothing here is believed: sizes are checked, and what is missing counts against the kernel.
#ifndef HONE_DEVICE_AGENT_VISIT_RESULT_MEMORY_H_
#define HONE_DEVICE_AGENT_VISIT_RESULT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "device_agent/visit/batch.h"
#include "device_agent/visit/guarded_memory.h"
#include "device_agent/visit/memory_file.h"

namespace hone::agent {

class ResultMemory {
 public:
  // For the kernels of `batch`, which must outlive it. kResourceExhausted: no memory.
  static absl::StatusOr<ResultMemory> Create(const VisitBatch& batch);
  // In the child: of the file that another one's file() is. kInternal: it is not of that batch.
  static absl::StatusOr<ResultMemory> Open(const VisitBatch& batch, MemoryFile file);
  const MemoryFile& file() const { return file_; }

  // In the child. Begin forgets the guard zones shown before; name: of the buffer, for messages.
  void ForgetGuards();
  std::span<char> OutputBytes(size_t buffer);  // where that output is shown
  void StoreGuards(const std::string& name, const GuardZones& zones);

  // In the launcher. What of the outputs differs from `expected`, laid out as LayOut says; nothing is left to show
  // again.
  std::optional<VisitFailure> CompareOutputs(const char* expected, double& max_error);
  // What was written beside the buffers of a kernel with that interface.
  std::optional<VisitFailure> CheckGuards(const KernelInterface& interface) const;
  // The outputs, to where LayOut's offsets count from; nothing is left of them.
  void TakeOutputs(char* to);

 private:
  struct Zones;
  static int64_t BytesFor(const VisitBatch& batch);
  ResultMemory(const VisitBatch& batch, MemoryFile file, Mapping memory);
  void Scrub();
  uint32_t& count() const;
  Zones* zones() const;

  const VisitBatch* batch_;
  DataLayout layout_;
  size_t most_;  // buffers of which zones fit
  MemoryFile file_;
  Mapping memory_;
};

// "wrote 3 bytes past the end of output 'y'"
VisitFailure OutOfBoundsWrite(const std::string& name, int64_t distance);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_RESULT_MEMORY_H_
