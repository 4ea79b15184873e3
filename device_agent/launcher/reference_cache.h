// SPDX-License-Identifier: Apache-2.0
// Filled inputs and reference outputs of workloads measured lately, so that the slow reference runs once per workload.
//
// A workload is known by the digest of its text as it came, and by how its buffers are filled. The inputs are a file
// that nobody can change, for children to map; the outputs are memory of this process, which its children do not
// inherit.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_REFERENCE_CACHE_H_
#define HONE_DEVICE_AGENT_LAUNCHER_REFERENCE_CACHE_H_

#include <cstdint>
#include <list>
#include <string>

#include "absl/status/statusor.h"
#include "device_agent/visit/batch.h"
#include "device_agent/visit/memory_file.h"

namespace hone::agent {

struct ReferenceData {
  MemoryFile inputs;  // laid out by LayOut, like the outputs
  Mapping outputs;
};

class ReferenceCache {
 public:
  explicit ReferenceCache(int64_t capacity_bytes) : capacity_(capacity_bytes) {}

  // With its inputs filled and its outputs to be written. kResourceExhausted: no memory.
  static absl::StatusOr<ReferenceData> Prepare(const VisitBatch& batch);

  static std::string KeyOf(const VisitBatch& batch);
  const ReferenceData* Find(const std::string& key);  // nullptr when not there; makes it the youngest
  // In the place of what the key has. Drops the oldest ones beyond the capacity, and beyond 256, as each has an open
  // file; never the one just added.
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
