// SPDX-License-Identifier: Apache-2.0
#include "device_agent/child/kernel_cache.h"

#include <algorithm>
#include <utility>

#include "base/kernel_interface.h"

namespace hone::agent {
namespace {

constexpr int64_t kMostKept = 1 << 30;  // bytes, and no more than this part of the memory
constexpr int64_t kPartKept = 4;

int64_t OwnBytes(const KernelInterface& interface) {
  int64_t bytes = interface.workspace_bytes;
  for (const uint32_t i : interface.Of(BufferRole::kPacked)) bytes += interface.buffers[i].bytes();
  return bytes;
}

}  // namespace

KeptKernels::KeptKernels(Child& child)
    : child_(child),
      most_(child.memory_limit() > 0 ? std::min(kMostKept, child.memory_limit() / kPartKept) : kMostKept) {}

LoadedKernel* KeptKernels::Ready(int candidate, bool& lost) {
  lost = false;
  if (const auto found = loaded_.find(candidate); found != loaded_.end()) return found->second.get();
  absl::Status status = Load(candidate, lost);
  if (absl::IsResourceExhausted(status) && !loaded_.empty()) {
    loaded_.clear();
    bytes_ = 0;
    status = Load(candidate, lost);
  }
  if (status.ok()) return loaded_.at(candidate).get();
  child_.voice().Failed(candidate, FailureOf(status));
  return nullptr;
}

absl::Status KeptKernels::Load(int candidate, bool& lost) {
  Voice& voice = child_.voice();
  const VisitKernel& kernel = child_.batch().candidates[static_cast<size_t>(candidate)].kernel;
  voice.Loading(candidate, child_.device().load_seconds());
  absl::StatusOr<std::unique_ptr<LoadedKernel>> loaded = child_.session().Load(kernel);
  lost = !loaded.ok() && !LivesOn(loaded.status());
  if (!loaded.ok()) return loaded.status();
  voice.Calling(candidate, kSlack + 2 * child_.batch().policy.timeout_seconds);
  const absl::Status prepared = (*loaded)->Prepare();
  lost = !prepared.ok() && !absl::IsResourceExhausted(prepared);
  if (!prepared.ok()) return prepared;
  bytes_ += OwnBytes(kernel.interface);
  loaded_.emplace(candidate, *std::move(loaded));
  return absl::OkStatus();
}

void KeptKernels::Unload(int candidate) {
  if (loaded_.erase(candidate) == 0) return;
  bytes_ -= OwnBytes(child_.batch().candidates[static_cast<size_t>(candidate)].kernel.interface);
}

}  // namespace hone::agent
