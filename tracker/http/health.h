// SPDX-License-Identifier: Apache-2.0
// Whether the tracker does what it is for, for whoever watches it: /healthz.
#ifndef HONE_TRACKER_HTTP_HEALTH_H_
#define HONE_TRACKER_HTTP_HEALTH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hone::tracker {

struct HealthFacts {
  std::string trouble;          // why nothing can be stored now; "" when it can
  int64_t disk_free_bytes = 0;  // of the records' file system
  absl::Time now;               // by the system's clock
  absl::Time not_before;        // the latest start of the tracker, as its state file knows: no clock may be behind that
};

struct HealthCheck {
  std::string name;  // "store", "disk", "clock"
  std::string why;   // what is wrong and what to do; empty: nothing
};

// All checks, whatever they find. Pure.
std::vector<HealthCheck> CheckHealth(const HealthFacts& facts);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_HEALTH_H_
