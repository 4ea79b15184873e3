// SPDX-License-Identifier: Apache-2.0
// The memory of HTTP answers that clients have not read yet, counted so that it can be limited.
#ifndef HONE_TRACKER_HTTP_ANSWERS_H_
#define HONE_TRACKER_HTTP_ANSWERS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tracker/http/server.h"

namespace hone::tracker {

// Bytes of answers that were made but not sent completely: of all, and per client address. Safe from any thread.
class PendingAnswers {
 public:
  // Whether a limit for all answers, or for those of the address, is exceeded.
  bool IsOverLimit(const std::string& address, const HttpLimits& limits) const {
    const std::lock_guard lock(mutex_);
    const auto found = of_address_.find(address);
    return bytes_ > limits.answer_bytes ||
           (found != of_address_.end() && found->second > limits.answer_bytes_per_address);
  }
  // Adds an answer. Its bytes count until the returned token is destroyed, which may be after the server's end. Null
  // for an empty answer.
  static std::shared_ptr<void> Count(const std::shared_ptr<PendingAnswers>& answers, const std::string& address,
                                     size_t bytes) {
    if (bytes == 0) return nullptr;
    answers->Add(address, bytes);
    return {answers.get(), [answers, address, bytes](PendingAnswers* all) { all->Forget(address, bytes); }};
  }

 private:
  void Add(const std::string& address, size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
    of_address_[address] += bytes;
  }
  void Forget(const std::string& address, size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ -= bytes;
    const auto found = of_address_.find(address);
    found->second -= bytes;
    if (found->second == 0) of_address_.erase(found);
  }

  mutable std::mutex mutex_;
  size_t bytes_ = 0;
  std::map<std::string, size_t> of_address_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_ANSWERS_H_
