// SPDX-License-Identifier: Apache-2.0
// The kernels of a measuring child that are loaded: as many as there is memory for stay until the later rounds.
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
  // `child`, which is opened, must outlive it.
  explicit KernelCache(Child& child);

  // The kernel of the candidate, loaded and prepared. Others go where there is no memory for it beside them. nullptr:
  // it is told as failed; `lost`: and this process must not go on.
  LoadedKernel* Ready(int candidate, bool& lost);
  void Unload(int candidate);
  bool full() const { return bytes_ > most_; }  // whoever is not needed at once should go

 private:
  absl::Status Load(int candidate, bool& lost);

  Child& child_;
  const int64_t most_;
  std::map<int, std::unique_ptr<LoadedKernel>> loaded_;
  int64_t bytes_ = 0;  // of their packed buffers and workspaces
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CHILD_KERNEL_CACHE_H_
