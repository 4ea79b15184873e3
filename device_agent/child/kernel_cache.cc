// SPDX-License-Identifier: Apache-2.0
#include "device_agent/child/kernel_cache.h"

#include <algorithm>
#include <utility>

#include "base/kernel_interface.h"

namespace hone::agent {
namespace {

constexpr int64_t kLoadedBytesMax = 1 << 30;  // bytes, and no more than this part of the memory
constexpr int64_t kMemoryDivisor = 4;

int64_t OwnBytes(const KernelInterface& interface) {
  int64_t bytes = interface.workspace_bytes;
  for (const uint32_t i : interface.Of(BufferRole::kPacked)) bytes += interface.buffers[i].bytes();
  return bytes;
}

}  // namespace

KernelCache::KernelCache(Child& child)
    : child_(child),
      bytes_max_(child.memory_limit() > 0 ? std::min(kLoadedBytesMax, child.memory_limit() / kMemoryDivisor)
                                          : kLoadedBytesMax) {}

LoadedKernel* KernelCache::Acquire(int candidate, bool& must_exit) {
  must_exit = false;
  if (const auto found = loaded_.find(candidate); found != loaded_.end()) return found->second.get();
  absl::Status status = Load(candidate, must_exit);
  if (absl::IsResourceExhausted(status) && !loaded_.empty()) {
    loaded_.clear();
    bytes_ = 0;
    status = Load(candidate, must_exit);
  }
  if (status.ok()) return loaded_.at(candidate).get();
  child_.launcher_channel().SendFailure(candidate, FailureFromStatus(status));
  return nullptr;
}

absl::Status KernelCache::Load(int candidate, bool& must_exit) {
  ChildChannel& channel_to_launcher = child_.launcher_channel();
  const VisitKernel& kernel = child_.batch().candidates[static_cast<size_t>(candidate)].kernel;
  channel_to_launcher.BeginLoading(candidate, child_.device().load_seconds());
  absl::StatusOr<std::unique_ptr<LoadedKernel>> loaded = child_.session().Load(kernel);
  must_exit = !loaded.ok() && !CanReuseSession(loaded.status());
  if (!loaded.ok()) return loaded.status();
  channel_to_launcher.BeginCalling(candidate, kSlackSeconds + 2 * child_.batch().policy.timeout_seconds);
  const absl::Status prepared = (*loaded)->Prepare();
  must_exit = !prepared.ok() && !absl::IsResourceExhausted(prepared);
  if (!prepared.ok()) return prepared;
  bytes_ += OwnBytes(kernel.interface);
  loaded_.emplace(candidate, *std::move(loaded));
  return absl::OkStatus();
}

void KernelCache::Unload(int candidate) {
  if (loaded_.erase(candidate) == 0) return;
  bytes_ -= OwnBytes(child_.batch().candidates[static_cast<size_t>(candidate)].kernel.interface);
}

}  // namespace hone::agent
