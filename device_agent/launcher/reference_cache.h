// SPDX-License-Identifier: Apache-2.0
// A cache of inputs and reference outputs of recent workloads, so that the slow reference kernel runs once per
// workload.
//
// Its key is the digest of the workload's text as received, and how its buffers are filled. The inputs are a sealed
// file, which children map. The outputs are memory of the launcher that children do not inherit, so no kernel can copy
// them.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_REFERENCE_CACHE_H_
#define HONE_DEVICE_AGENT_LAUNCHER_REFERENCE_CACHE_H_

#include <cstdint>
#include <list>
#include <string>

#include "absl/status/statusor.h"
#include "base/memory_file.h"
#include "device_agent/visit/batch.h"

namespace hone::agent {

struct ReferenceData {
  MemoryFile inputs;  // laid out by ComputeDataLayout
  Mapping outputs;    // a block as ComputeDataLayout lays it out for each point of the batch, in order
};

class ReferenceCache {
 public:
  explicit ReferenceCache(int64_t capacity_bytes) : capacity_(capacity_bytes) {}

  // Fills the inputs and allocates the outputs, which the caller must write. kResourceExhausted: no memory.
  static absl::StatusOr<ReferenceData> Prepare(const VisitBatch& batch);

  static std::string KeyOf(const VisitBatch& batch);
  const ReferenceData* Find(const std::string& key);  // nullptr if absent; else it becomes the youngest entry
  // Adds or replaces the entry. Then drops the oldest entries beyond the capacity, and beyond 256 entries, because each
  // holds an open file. Never drops the entry just added.
  const ReferenceData* Add(const VisitBatch& batch, ReferenceData data);

 private:
  struct Entry {
    std::string key;
    ReferenceData data;
    int64_t bytes;
  };
  void Drop(std::list<Entry>::iterator entry);

  const int64_t capacity_;
  int64_t bytes_ = 0;
  std::list<Entry> entries_;  // youngest first
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_REFERENCE_CACHE_H_
