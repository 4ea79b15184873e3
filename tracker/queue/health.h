// SPDX-License-Identifier: Apache-2.0
// The health of a device: which failures count against it, when its quarantine begins and ends, drift, and heat.
//
// Pure functions on the health record of a device (v1::HealthRecord). The tracker stores the record, so that a restart
// of tracker or agent does not end a quarantine. Not here: batches and leases. Start at CountFailure and ApplyCheck.
#ifndef HONE_TRACKER_QUEUE_HEALTH_H_
#define HONE_TRACKER_QUEUE_HEALTH_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/agent.pb.h"
#include "tracker/queue/limits.h"

namespace hone::tracker {

// The device measured a batch: its run of failures ends. After batches_to_forget_quarantines measured batches since the
// last quarantine, the next quarantine is as short as the first.
void CountMeasured(v1::HealthRecord& health, const DeviceOptions& options);
// Counts a failure of the device, and begins a quarantine when there are too many. A failure is: the device was lost
// with a batch, its golden kernel failed during one, or it failed on a batch that another device then measured.
void CountFailure(v1::HealthRecord& health, const std::string& why, absl::Time now, const DeviceOptions& options);

// Takes back the newest failure, because a candidate turned out to be its cause. A quarantine that has begun stays.
void Forgive(v1::HealthRecord& health);

// Returns whether the check is new, and remembers it. An agent sends its newest check with every call, also to a
// restarted tracker, so most arrivals are repeats. boot_id: the agent's process, which numbers its checks.
bool RememberCheck(v1::HealthRecord& health, const std::string& boot_id, const v1::GoldenCheck& check);
// Judges a new check: counts failure, drift and heat; ends a quarantine or the cooling down; begins a quarantine when
// the device cooled down for longer than cooling_max.
void ApplyCheck(v1::HealthRecord& health, const v1::GoldenCheck& check, absl::Time now, const DeviceOptions& options);
// Judges a temperature, of a check or of a batch. At hot_c the device begins to cool down; below cool_c that ends.
// nullopt: the temperature is not known, and nothing changes. Only for devices with a golden kernel, because only
// checks reach a device that gets no work.
void ApplyTemperature(v1::HealthRecord& health, std::optional<double> celsius, const DeviceOptions& options);

// The tracker stood still for `stall` and could not hear that the device is cool: that time is not cooling time.
void ExcludeStallFromCooling(v1::HealthRecord& health, absl::Duration stall, absl::Time now);

// An operator releases the device: everything is reset, the baseline too. Only the seen checks stay noted.
void ResetHealth(v1::HealthRecord& health);
// Ends a quarantine whose time is over, for a device without a golden kernel that could prove its health.
void EndOverdueQuarantine(v1::HealthRecord& health, absl::Time now, const DeviceOptions& options);

// Repairs a stored quarantine that begins after `now`, because the clock was set back while the tracker was not
// running: it begins at `now` and keeps its length. Returns whether it did.
bool RestartQuarantineAfterClockStep(v1::HealthRecord& health, absl::Time now);

// Converts the record's times for display: from the queue's clock to one that is ahead of it by `ahead`.
void ShiftTimes(v1::HealthRecord& health, absl::Duration ahead);

// Why the device gets no work; "" when it may get some. check: the device's newest; null: it has no golden kernel.
std::string HealthProblem(const v1::HealthRecord& health, const v1::GoldenCheck* check, absl::Time now);
bool IsQuarantined(const v1::HealthRecord& health);
// Whether a new check could end the device's quarantine or cooling down now, or the newest check failed.
bool NeedsCheck(const v1::HealthRecord& health, const v1::GoldenCheck& check, absl::Time now);

// The golden kernel's usual time on the device. Both in seconds; 0: there are no checks yet.
struct Baseline {
  double median = 0;
  double mad = 0;  // median absolute deviation
};
Baseline BaselineOf(const v1::HealthRecord& health);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_HEALTH_H_
