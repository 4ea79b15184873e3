// SPDX-License-Identifier: Apache-2.0
// The memory in which a child shows the results of a kernel to the launcher: the outputs, and the guard zones around
// every buffer. The child copies them into a file of memory that both processes map. The launcher, which never maps a
// kernel's code, judges them.
//
// The reference's outputs are neither here nor elsewhere in the child, so a kernel cannot copy them. The launcher
// checks all sizes in this memory; missing results count against the kernel.
#ifndef HONE_DEVICE_AGENT_VISIT_RESULT_MEMORY_H_
#define HONE_DEVICE_AGENT_VISIT_RESULT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/memory_file.h"
#include "device_agent/visit/batch.h"
#include "device_agent/visit/guarded_memory.h"

namespace hone::agent {

class ResultMemory {
 public:
  // For the kernels of `batch`, which must outlive it. kResourceExhausted: no memory.
  static absl::StatusOr<ResultMemory> Create(const VisitBatch& batch);
  // In the child: maps `file`, the file() of a ResultMemory for the same batch. kInternal: its size is that of another
  // batch.
  static absl::StatusOr<ResultMemory> Open(const VisitBatch& batch, MemoryFile file);
  const MemoryFile& file() const { return file_; }

  // In the child. ClearGuards removes the guard zones stored before. `name` of a buffer is for messages.
  void ClearGuards();
  std::span<char> OutputBytes(size_t buffer);  // the place for the output buffer of that index
  void StoreGuards(const std::string& name, const GuardZones& zones);

  // In the launcher. Compares the outputs with `expected`, laid out as ComputeDataLayout says, and raises max_error to
  // the largest error. Erases the outputs, so that no other kernel can show them as its own.
  std::optional<VisitFailure> CompareOutputs(const char* expected, double& max_error);
  // In the launcher. Checks the stored guard zones of a kernel with that interface. The failure says what was
  // overwritten.
  std::optional<VisitFailure> CheckGuards(const KernelInterface& interface) const;
  // In the launcher. Copies the block of outputs to `to`, laid out as ComputeDataLayout says, and erases them here.
  void MoveOutputs(char* to);

 private:
  struct Zones;
  static int64_t BytesFor(const VisitBatch& batch);
  ResultMemory(const VisitBatch& batch, MemoryFile file, Mapping memory);
  void EraseOutputs();
  uint32_t& count() const;
  Zones* zones() const;

  const VisitBatch* batch_;
  DataLayout layout_;
  size_t zones_max_;  // buffers whose guard zones fit
  MemoryFile file_;
  Mapping memory_;
};

// "wrote 3 bytes past the end of output 'y'"
VisitFailure OutOfBoundsWrite(const std::string& name, int64_t distance);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_RESULT_MEMORY_H_
