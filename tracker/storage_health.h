// SPDX-License-Identifier: Apache-2.0
// Tracks whether the tracker can store results and state, and decides what to log when it cannot: a full disk is logged
// once a minute, and not at every call.
//
// Plain state; every call takes `now`. Not thread-safe: Shell guards it.
#ifndef HONE_TRACKER_STORAGE_HEALTH_H_
#define HONE_TRACKER_STORAGE_HEALTH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hone::tracker {

class StorageHealth {
 public:
  enum class What { kResults, kState };

  // Notes how the latest commit of this sort went. Returns the line to log now; "" for none.
  std::string Note(What what, const absl::Status& stored, absl::Time now);
  // Why nothing can be stored now; "" if storing works. An error of results counts for 15 seconds only: if agents bring
  // no results after that, the next ones will show whether storing works.
  std::string FailureReason(absl::Time now) const;

 private:
  struct Side {
    std::string failure_reason;
    absl::Time since, last;
  };
  Side& Of(What what) { return what == What::kResults ? results_ : state_; }

  Side results_, state_;
  absl::Time last_logged_ = absl::InfinitePast();
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_STORAGE_HEALTH_H_
