// One visit: a batch measured by child processes, seen from the process that starts, watches and replaces them.
//
// A child that crashes, hangs or writes where it must not is one candidate's failure; the next child goes on with the
// others. Nothing a child says is believed unchecked. Must run in a process with one thread (it forks); Cancel comes
// through a file descriptor that becomes readable. Start at Visitor::Run.
#ifndef HONE_DEVICE_AGENT_VISIT_H_
#define HONE_DEVICE_AGENT_VISIT_H_

#include <cstdint>
#include <list>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device_agent/device.h"
#include "device_agent/visit_batch.h"

namespace hone::agent {

// Filled inputs and reference outputs of workloads measured lately, so that the slow reference runs once per workload.
// Memory of this process, inherited read-only by its children.
class ReferenceCache {
 public:
  explicit ReferenceCache(int64_t capacity_bytes) : capacity_(capacity_bytes) {}
  ~ReferenceCache();
  ReferenceCache(const ReferenceCache&) = delete;
  ReferenceCache& operator=(const ReferenceCache&) = delete;

  static std::string KeyOf(const VisitBatch& batch);
  char* Find(const std::string& key);  // nullptr when not there; makes it the youngest
  // Takes over a mapping of `bytes`. Drops the oldest ones beyond the capacity, never the one just added.
  void Add(const std::string& key, char* mapping, int64_t bytes);

 private:
  struct Entry {
    std::string key;
    char* mapping;
    int64_t bytes;
  };
  const int64_t capacity_;
  int64_t bytes_ = 0;
  std::list<Entry> entries_;  // youngest first
};

class Visitor {
 public:
  struct Options {
    int64_t memory_limit = 0;  // of one child, bytes of address space; 0 for none
    int64_t cache_bytes = 512ll << 20;
    double grace_seconds = 3;  // that a running kernel gets when the time of its visit is over
  };
  // `device` must outlive the visitor.
  Visitor(const Device& device, const Options& options)
      : device_(device), options_(options), cache_(options.cache_bytes) {}

  // Measures the batch; never fails as a call: see VisitResult.error. Returns early with error "cancelled" when
  // `cancel_fd` (or -1) becomes readable.
  VisitResult Run(const VisitBatch& batch, int cancel_fd);

 private:
  absl::StatusOr<char*> ReferenceData(const VisitBatch& batch, double deadline, int artifact_fd, int cancel_fd);

  const Device& device_;
  const Options options_;
  ReferenceCache cache_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_H_
