// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/reference_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "device_agent/visit/elements.h"

namespace hone::agent {
namespace {

constexpr size_t kEntriesMax = 256;

absl::StatusOr<MemoryFile> FilledInputs(const VisitBatch& batch, const DataLayout& layout) {
  HONE_ASSIGN_OR_RETURN(MemoryFile file, MemoryFile::Create("hone-inputs", std::max<int64_t>(layout.input_bytes, 1)));
  {
    HONE_ASSIGN_OR_RETURN(const Mapping memory, file.Map(MemoryFile::Access::kReadAndWrite));
    for (size_t i = 0; i < batch.buffers.size(); ++i) {
      if (batch.buffers[i].role == BufferRole::kOutput) continue;
      Fill(batch.buffers[i], static_cast<int>(i), batch.fill_seed, memory.data() + layout.offsets[i]);
    }
  }
  HONE_RETURN_IF_ERROR(file.MakeReadOnly());
  return file;
}

// Bytes of the outputs at all points.
int64_t AllOutputBytes(const VisitBatch& batch) {
  return ComputeDataLayout(batch).output_bytes * static_cast<int64_t>(batch.points.size());
}

// Memory that children do not inherit.
absl::StatusOr<Mapping> OwnMemory(int64_t bytes) {
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void* const memory = IsAddressable(bytes)
                           ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                           : MAP_FAILED;
  if (memory != MAP_FAILED) {
    Mapping own(static_cast<char*>(memory), size);
    if (madvise(memory, size, MADV_DONTFORK) == 0) return own;
  }
  return absl::ResourceExhaustedError(fmt::format("no memory for {} bytes of outputs", bytes));
}

}  // namespace

absl::StatusOr<ReferenceData> ReferenceCache::Prepare(const VisitBatch& batch) {
  const DataLayout layout = ComputeDataLayout(batch);
  ReferenceData data;
  HONE_ASSIGN_OR_RETURN(data.inputs, FilledInputs(batch, layout));
  HONE_ASSIGN_OR_RETURN(data.outputs, OwnMemory(AllOutputBytes(batch)));
  return data;
}

void ReferenceCache::Drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

std::string ReferenceCache::KeyOf(const VisitBatch& batch) {
  std::string key = fmt::format("{}:{}", batch.workload_digest, batch.fill_seed);
  for (const VisitBuffer& buffer : batch.buffers) {
    key += fmt::format(":{},{},{},{},{}", buffer.dtype, buffer.elements, static_cast<int>(buffer.role), buffer.low,
                       buffer.high);
  }
  for (const std::vector<int64_t>& point : batch.points) key += fmt::format(";{}", fmt::join(point, ","));
  return key;
}

const ReferenceData* ReferenceCache::Find(const std::string& key) {
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->key != key) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return &entry->data;
  }
  return nullptr;
}

const ReferenceData* ReferenceCache::Add(const VisitBatch& batch, ReferenceData data) {
  const std::string key = KeyOf(batch);
  if (Find(key) != nullptr) Drop(entries_.begin());
  entries_.push_front({key, std::move(data), ComputeDataLayout(batch).input_bytes + AllOutputBytes(batch)});
  bytes_ += entries_.front().bytes;
  while (entries_.size() > 1 && (bytes_ > capacity_ || entries_.size() > kEntriesMax)) Drop(std::prev(entries_.end()));
  return &entries_.front().data;
}

}  // namespace hone::agent
