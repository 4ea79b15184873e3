// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/result_memory.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "base/kernel_abi.h"
#include "base/status.h"
#include "device_agent/visit/elements.h"

namespace hone::agent {
namespace {

constexpr size_t kZoneBytesMax = kPageBytesMax + 256;  // bytes on one side of a buffer
constexpr size_t kZoneBytesMin = 16;
constexpr size_t kHeader = HONE_BUFFER_ALIGNMENT;

// The number of buffers for which a kernel must store guard zones: those that it may write. All workspaces count as
// one, because they may be parts of one buffer.
size_t Written(const KernelInterface& interface) {
  return interface.Of(BufferRole::kOutput).size() + interface.Of(BufferRole::kPacked).size() +
         std::min<size_t>(interface.Of(BufferRole::kWorkspace).size(), 1);
}

// The largest number of buffers of one kernel.
size_t ZonesMax(const VisitBatch& batch) {
  size_t own = batch.reference.interface.buffers.size();
  for (const VisitCandidate& candidate : batch.candidates) {
    own = std::max(own, candidate.kernel.interface.buffers.size());
  }
  return batch.buffers.size() + own + 1;
}

}  // namespace

struct ResultMemory::Zones {
  uint32_t front, back;
  char name[56];
  char bytes[2 * kZoneBytesMax];  // the front zone ends in the middle, and the back zone begins there
};

ResultMemory::ResultMemory(const VisitBatch& batch, MemoryFile file, Mapping memory)
    : batch_(&batch),
      layout_(ComputeDataLayout(batch)),
      zones_max_(ZonesMax(batch)),
      file_(std::move(file)),
      memory_(std::move(memory)) {}

int64_t ResultMemory::BytesFor(const VisitBatch& batch) {
  return static_cast<int64_t>(kHeader + ZonesMax(batch) * sizeof(Zones)) + ComputeDataLayout(batch).output_bytes;
}

absl::StatusOr<ResultMemory> ResultMemory::Create(const VisitBatch& batch) {
  HONE_ASSIGN_OR_RETURN(MemoryFile file, MemoryFile::Create("hone-results", BytesFor(batch)));
  return Open(batch, std::move(file));
}

absl::StatusOr<ResultMemory> ResultMemory::Open(const VisitBatch& batch, MemoryFile file) {
  HONE_ASSIGN_OR_RETURN(Mapping memory, file.Map(MemoryFile::Access::kReadAndWrite));
  if (memory.bytes() != static_cast<size_t>(BytesFor(batch))) {
    return absl::InternalError("the size of the result memory does not fit its batch");
  }
  return ResultMemory(batch, std::move(file), std::move(memory));
}

uint32_t& ResultMemory::count() const { return *reinterpret_cast<uint32_t*>(memory_.data() + layout_.output_bytes); }
ResultMemory::Zones* ResultMemory::zones() const {
  return reinterpret_cast<Zones*>(memory_.data() + layout_.output_bytes + kHeader);
}

void ResultMemory::ClearGuards() { count() = 0; }

std::span<char> ResultMemory::OutputBytes(size_t buffer) {
  return {memory_.data() + layout_.offsets[buffer], static_cast<size_t>(batch_->buffers[buffer].bytes)};
}

void ResultMemory::StoreGuards(const std::string& name, const GuardZones& given) {
  if (count() >= zones_max_) return;
  Zones& shown = zones()[count()++];
  const size_t front = std::min(given.front.size(), kZoneBytesMax), back = std::min(given.back.size(), kZoneBytesMax);
  shown.front = static_cast<uint32_t>(front);
  shown.back = static_cast<uint32_t>(back);
  memset(shown.name, 0, sizeof(shown.name));
  name.copy(shown.name, sizeof(shown.name) - 1);
  memcpy(shown.bytes + kZoneBytesMax - front, given.front.data() + given.front.size() - front, front);
  memcpy(shown.bytes + kZoneBytesMax, given.back.data(), back);
}

std::optional<VisitFailure> ResultMemory::CompareOutputs(const char* expected, double& max_error) {
  std::optional<VisitFailure> failure;
  for (size_t i = 0; i < batch_->buffers.size(); ++i) {
    const VisitBuffer& buffer = batch_->buffers[i];
    if (buffer.role != BufferRole::kOutput || failure.has_value()) continue;
    const Comparison comparison =
        Compare(buffer, batch_->tolerance, OutputBytes(i).data(), expected + layout_.offsets[i]);
    if (!comparison.equal) failure = {FailureKind::kWrongOutput, comparison.text};
    max_error = std::max(max_error, comparison.max_error);
  }
  EraseOutputs();
  return failure;
}

void ResultMemory::MoveOutputs(char* to) {
  memcpy(to, memory_.data(), static_cast<size_t>(layout_.output_bytes));
  EraseOutputs();
}

// Otherwise a kernel could show the outputs of another kernel as its own.
void ResultMemory::EraseOutputs() { memset(memory_.data(), 0xff, static_cast<size_t>(layout_.output_bytes)); }

std::optional<VisitFailure> ResultMemory::CheckGuards(const KernelInterface& interface) const {
  const uint32_t shown = count();
  const VisitFailure tampered{FailureKind::kOutOfBoundsWrite, "tampered with the guard zones around its buffers"};
  if (shown > zones_max_ || shown < Written(interface)) return tampered;
  for (uint32_t i = 0; i < shown; ++i) {
    const Zones& one = zones()[i];
    const size_t front = one.front, back = one.back;
    if (front < kZoneBytesMin || front > kZoneBytesMax || back < kZoneBytesMin || back > kZoneBytesMax) return tampered;
    const GuardZones zones{{one.bytes + kZoneBytesMax - front, front}, {one.bytes + kZoneBytesMax, back}};
    if (const auto distance = FindOverwrittenByte(zones)) {
      return OutOfBoundsWrite(std::string(one.name, strnlen(one.name, sizeof(one.name))), *distance);
    }
  }
  return std::nullopt;
}

VisitFailure OutOfBoundsWrite(const std::string& name, int64_t distance) {
  return {FailureKind::kOutOfBoundsWrite, distance < 0
                                              ? fmt::format("wrote {} bytes before {}", -distance, name)
                                              : fmt::format("wrote {} bytes past the end of {}", distance + 1, name)};
}

}  // namespace hone::agent
