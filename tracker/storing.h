// SPDX-License-Identifier: Apache-2.0
// Whether what the tracker has to store can be stored, and who is told when it cannot: a full disk is said aloud, once
// a minute, and not at every call.
//
// Plain state; every call takes `now`. Not thread-safe: Shell guards it.
#ifndef HONE_TRACKER_STORING_H_
#define HONE_TRACKER_STORING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hone::tracker {

class Storing {
 public:
  enum class What { kResults, kState };

  // How storing went the last time. Returns what to log now; "" for nothing.
  std::string Note(What what, const absl::Status& stored, absl::Time now);
  // Why nothing can be stored now; "" when it can. Trouble with results is over, too, when nobody has brought any for a
  // while: the next ones will tell.
  std::string Trouble(absl::Time now) const;

 private:
  struct Side {
    std::string trouble;
    absl::Time since, last;
  };
  Side& Of(What what) { return what == What::kResults ? results_ : state_; }

  Side results_, state_;
  absl::Time said_ = absl::InfinitePast();
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_STORING_H_
