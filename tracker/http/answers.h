// SPDX-License-Identifier: Apache-2.0
// What answers of the HTTP server take of memory until they are taken.
#ifndef HONE_TRACKER_HTTP_ANSWERS_H_
#define HONE_TRACKER_HTTP_ANSWERS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tracker/http/server.h"

namespace hone::tracker {

// Bytes of answers that were made and are not taken yet. Safe from any thread.
class AnswersOnTheirWay {
 public:
  bool TooMany(const std::string& address, const HttpLimits& limits) const {
    const std::lock_guard lock(mutex_);
    const auto found = of_address_.find(address);
    return bytes_ > limits.answer_bytes ||
           (found != of_address_.end() && found->second > limits.answer_bytes_of_address);
  }
  // They count until what is returned is let go, which may be after the server has ended.
  static std::shared_ptr<void> Count(const std::shared_ptr<AnswersOnTheirWay>& answers, const std::string& address,
                                     size_t bytes) {
    if (bytes == 0) return nullptr;
    answers->Add(address, bytes);
    return {answers.get(), [answers, address, bytes](AnswersOnTheirWay* all) { all->Forget(address, bytes); }};
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
