#include "device_agent/reference_cache.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "device_agent/elements.h"

namespace hone::agent {
namespace {

size_t Size(int64_t bytes) { return static_cast<size_t>(std::max<int64_t>(bytes, 1)); }

// A file of memory, so that a fork need not copy the tables of its pages; read-only once it is filled.
char* FilledInputs(const VisitBatch& batch, const DataLayout& layout) {
  const size_t size = Size(layout.input_bytes);
  const int file = memfd_create("hone-inputs", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  char* inputs = nullptr;
  if (ftruncate(file, static_cast<off_t>(size)) == 0) {
    if (void* const shared = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0); shared != MAP_FAILED) {
      for (size_t i = 0; i < batch.buffers.size(); ++i) {
        if (batch.buffers[i].role == BufferRole::kOutput) continue;
        Fill(batch.buffers[i], static_cast<int>(i), batch.fill_seed, static_cast<char*>(shared) + layout.offsets[i]);
      }
      munmap(shared, size);
      void* const mapping = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
      if (mapping != MAP_FAILED) inputs = static_cast<char*>(mapping);
    }
  }
  close(file);
  return inputs;
}

}  // namespace

absl::StatusOr<ReferenceData> ReferenceCache::Prepare(const VisitBatch& batch) {
  const DataLayout layout = LayOut(batch);
  ReferenceData data;
  data.inputs = FilledInputs(batch, layout);
  const size_t size = Size(layout.output_bytes);
  void* const outputs = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (outputs != MAP_FAILED) data.outputs = static_cast<char*>(outputs);
  if (data.inputs != nullptr && data.outputs != nullptr && madvise(outputs, size, MADV_DONTFORK) == 0) return data;
  Free(batch, data);
  return absl::ResourceExhaustedError(
      fmt::format("no memory for {} bytes of inputs and outputs", layout.input_bytes + layout.output_bytes));
}

void ReferenceCache::Free(const VisitBatch& batch, const ReferenceData& data) {
  const DataLayout layout = LayOut(batch);
  if (data.inputs != nullptr) munmap(data.inputs, Size(layout.input_bytes));
  if (data.outputs != nullptr) munmap(data.outputs, Size(layout.output_bytes));
}

ReferenceCache::~ReferenceCache() {
  while (!entries_.empty()) Drop(entries_.begin());
}

void ReferenceCache::Drop(std::list<Entry>::iterator entry) {
  munmap(entry->data.inputs, Size(entry->input_bytes));
  munmap(entry->data.outputs, Size(entry->output_bytes));
  bytes_ -= entry->input_bytes + entry->output_bytes;
  entries_.erase(entry);
}

std::string ReferenceCache::KeyOf(const VisitBatch& batch) {
  std::string key = fmt::format("{}:{}", batch.workload_digest, batch.fill_seed);
  for (const VisitBuffer& buffer : batch.buffers) {
    key += fmt::format(":{},{},{},{},{}", buffer.dtype, buffer.elements, static_cast<int>(buffer.role), buffer.low,
                       buffer.high);
  }
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

const ReferenceData* ReferenceCache::Add(const VisitBatch& batch, const ReferenceData& data) {
  const std::string key = KeyOf(batch);
  if (Find(key) != nullptr) Drop(entries_.begin());
  const DataLayout layout = LayOut(batch);
  entries_.push_front({key, data, layout.input_bytes, layout.output_bytes});
  bytes_ += layout.input_bytes + layout.output_bytes;
  while (bytes_ > capacity_ && entries_.size() > 1) Drop(std::prev(entries_.end()));
  return &entries_.front().data;
}

}  // namespace hone::agent
