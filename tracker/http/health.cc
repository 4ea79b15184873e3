// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/health.h"

#include <fmt/format.h>

namespace hone::tracker {
namespace {

constexpr int64_t kLeastFree = int64_t{256} << 20;  // some hours of a busy farm
constexpr absl::Duration kClockSlack = absl::Minutes(5);

}  // namespace

std::vector<HealthCheck> CheckHealth(const HealthFacts& facts) {
  std::vector<HealthCheck> checks = {{"store", facts.trouble}, {"disk", ""}, {"clock", ""}};
  if (facts.disk_free_bytes < kLeastFree) {
    checks[1].why = fmt::format("{} MiB are left for the records; at 0 nothing is accepted any more: make room",
                                facts.disk_free_bytes >> 20);
  }
  if (facts.now + kClockSlack < facts.not_before) {
    checks[2].why = fmt::format(
        "the system's clock says {}, and the tracker was started at {} already: certificates are judged by a clock "
        "that is wrong; set it",
        absl::FormatTime(facts.now, absl::UTCTimeZone()), absl::FormatTime(facts.not_before, absl::UTCTimeZone()));
  }
  return checks;
}

}  // namespace hone::tracker
