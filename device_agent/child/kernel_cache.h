// SPDX-License-Identifier: Apache-2.0
// The loaded kernels of a measuring child. As many as fit into memory stay loaded for the later rounds.
#ifndef HONE_DEVICE_AGENT_CHILD_KERNEL_CACHE_H_
#define HONE_DEVICE_AGENT_CHILD_KERNEL_CACHE_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "device_agent/child/child.h"
#include "device_agent/devices/device.h"

namespace hone::agent {

class KernelCache {
 public:
  // `child` must outlive the cache, and Child::Open must have succeeded.
  explicit KernelCache(Child& child);

  // Returns the candidate's kernel, loaded and prepared. Unloads other kernels if there is not enough memory. nullptr:
  // the failure was reported to the launcher; with `must_exit` this process must also end.
  LoadedKernel* Acquire(int candidate, bool& must_exit);
  void Unload(int candidate);
  bool full() const { return bytes_ > bytes_max_; }  // then kernels that are not needed soon should be unloaded

 private:
  absl::Status Load(int candidate, bool& must_exit);

  Child& child_;
  const int64_t bytes_max_;
  std::map<int, std::unique_ptr<LoadedKernel>> loaded_;
  int64_t bytes_ = 0;  // of their packed buffers and workspaces
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CHILD_KERNEL_CACHE_H_
