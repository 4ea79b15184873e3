// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/task.h"

#include <optional>
#include <utility>

#include "base/kernel_interface.h"
#include "device_agent/visit/packing.h"

namespace hone::agent {

void Fields(auto& ends, Like<VisitBuffer> auto& b) {
  ends.All(b.name, b.role, b.dtype, b.elements, b.bytes, b.low, b.high, b.rounded);
}

void Fields(Packer& ends, const VisitKernel& k) { ends.All(Print(k.interface), k.code_offset, k.code_bytes); }

void Fields(Unpacker& ends, VisitKernel& k) {
  std::string text, error;
  ends.All(text, k.code_offset, k.code_bytes);
  std::optional<KernelInterface> interface = ParseKernelInterface(text, &error);
  if (!interface.has_value()) return ends.Fail();
  k.interface = *std::move(interface);
}

void Fields(auto& ends, Like<VisitCandidate> auto& c) { ends.All(c.id, c.kernel); }

namespace {

template <typename Ends, typename Task, typename Batch>
void AllFields(Ends& ends, Task& task, Batch& batch) {
  ends.All(task.purpose, task.deadline, task.cold_bytes, task.to_verify, task.verified);
  ends.All(batch.workload_digest, batch.buffers, batch.points, batch.reference, batch.candidates, batch.tolerance,
           batch.fill_seed, batch.threads, batch.policy, batch.final);
}

}  // namespace

std::string Pack(const VisitTask& task, const VisitBatch& batch) {
  Packer packer;
  AllFields(packer, task, batch);
  return packer.Take();
}

absl::Status Unpack(std::string_view bytes, VisitTask& task, VisitBatch& batch) {
  Unpacker unpacker(bytes);
  AllFields(unpacker, task, batch);
  return unpacker.good() ? absl::OkStatus() : absl::InternalError("a child process of the visit cannot read its task");
}

}  // namespace hone::agent
