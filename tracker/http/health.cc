// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/health.h"

#include <fmt/format.h>

namespace hone::tracker {
namespace {

constexpr int64_t kFreeBytesMin = int64_t{256} << 20;  // enough for some hours of a busy farm
constexpr absl::Duration kClockSlack = absl::Minutes(5);

}  // namespace

std::vector<HealthCheck> CheckHealth(const HealthFacts& facts) {
  std::vector<HealthCheck> checks = {{"store", facts.storage_failure}, {"disk", ""}, {"clock", ""}};
  if (facts.disk_free_bytes < kFreeBytesMin) {
    checks[1].why = fmt::format(
        "only {} MiB of disk space are left for the records; without it the tracker accepts no results; free some "
        "space",
        facts.disk_free_bytes >> 20);
  }
  if (facts.now + kClockSlack < facts.not_before) {
    checks[2].why = fmt::format(
        "the system clock shows {}, which is before the tracker's start at {}; set the clock, because certificates are "
        "checked against it",
        absl::FormatTime(facts.now, absl::UTCTimeZone()), absl::FormatTime(facts.not_before, absl::UTCTimeZone()));
  }
  return checks;
}

}  // namespace hone::tracker
