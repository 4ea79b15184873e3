// SPDX-License-Identifier: Apache-2.0
// Memory of the HTTP server that clients take, counted so that it can be limited: of long bodies of requests, and of
// answers that were not read yet. Not an allocator. Start with ClientMemory::Reserve and Count.
#ifndef HONE_TRACKER_HTTP_CLIENT_MEMORY_H_
#define HONE_TRACKER_HTTP_CLIENT_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace hone::tracker {

// Bytes of one kind: of all clients, and of each. A client is whatever the caller tells apart, such as an address. Safe
// from any thread.
class ClientMemory {
 public:
  struct Limits {
    uint64_t all, of_client;  // bytes
  };

  // Whether more is counted than a limit allows, for all clients or for this one.
  bool IsOverLimit(const std::string& client, const Limits& limits) const {
    const std::lock_guard lock(mutex_);
    const auto found = of_client_.find(client);
    return bytes_ > limits.all || (found != of_client_.end() && found->second > limits.of_client);
  }
  // Adds bytes whatever the limits are. They count until the returned token is destroyed, which may be after the
  // server's end. Null for 0 bytes.
  static std::shared_ptr<void> Count(const std::shared_ptr<ClientMemory>& memory, const std::string& client,
                                     uint64_t bytes) {
    return bytes == 0 ? nullptr : Reserve(memory, client, bytes, {UINT64_MAX, UINT64_MAX});
  }
  // The same, but null without an effect if a limit would be exceeded.
  static std::shared_ptr<void> Reserve(const std::shared_ptr<ClientMemory>& memory, const std::string& client,
                                       uint64_t bytes, const Limits& limits) {
    if (!memory->Add(client, bytes, limits)) return nullptr;
    return {memory.get(), [memory, client, bytes](ClientMemory* all) { all->Forget(client, bytes); }};
  }

 private:
  bool Add(const std::string& client, uint64_t bytes, const Limits& limits) {
    const std::lock_guard lock(mutex_);
    const auto found = of_client_.find(client);
    const uint64_t before = found == of_client_.end() ? 0 : found->second;
    if (bytes_ + bytes > limits.all || before + bytes > limits.of_client) return false;
    bytes_ += bytes;
    of_client_[client] = before + bytes;
    return true;
  }
  void Forget(const std::string& client, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ -= bytes;
    const auto found = of_client_.find(client);
    found->second -= bytes;
    if (found->second == 0) of_client_.erase(found);
  }

  mutable std::mutex mutex_;
  uint64_t bytes_ = 0;
  std::map<std::string, uint64_t> of_client_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_CLIENT_MEMORY_H_
