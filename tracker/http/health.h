// SPDX-License-Identifier: Apache-2.0
// The health checks of the tracker, for monitoring: /healthz.
#ifndef HONE_TRACKER_HTTP_HEALTH_H_
#define HONE_TRACKER_HTTP_HEALTH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hone::tracker {

struct HealthFacts {
  std::string storage_failure;  // why nothing can be stored; "" when storing works
  int64_t disk_free_bytes = 0;  // of the records' file system
  absl::Time now;               // by the system's clock
  absl::Time not_before;        // the latest start in the state file; a clock that shows less was set back
};

struct HealthCheck {
  std::string name;  // "store", "disk", "clock"
  std::string why;   // what is wrong and what to do; empty: the check passed
};

// Runs all checks and returns each, passed or not. Pure.
std::vector<HealthCheck> CheckHealth(const HealthFacts& facts);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_HEALTH_H_
