// SPDX-License-Identifier: Apache-2.0
// The health of devices: what counts against one, when it goes into quarantine and what lets it out, drift, heat.
//
// Pure functions on the record that the tracker keeps of a device (v1::HealthRecord), so that a restart of the tracker,
// or of the agent, makes nobody well. Nothing here knows batches or leases. Start at CountTrouble and TakeCheck.
#ifndef HONE_TRACKER_QUEUE_HEALTH_H_
#define HONE_TRACKER_QUEUE_HEALTH_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/agent.pb.h"
#include "tracker/queue/limits.h"

namespace hone::tracker {

// It measured a batch.
void CountMeasured(v1::HealthRecord& health, const DeviceOptions& options);
// It was lost with a batch, its golden kernel failed beside one, or it failed one that another then measured.
void CountTrouble(v1::HealthRecord& health, const std::string& why, absl::Time now, const DeviceOptions& options);

// The newest trouble turned out to be a candidate's.
void Forgive(v1::HealthRecord& health);

// Whether that check, of a process of the device's agent, is to be taken; then it is noted. Agents tell their newest
// one with every call, so that it comes again, and to a restarted tracker too.
bool NoteCheck(v1::HealthRecord& health, const std::string& boot_id, const v1::GoldenCheck& check);
// Takes a check that was not taken before: failure, drift and heat; the end of quarantine and of cooling down,
// and quarantine for what cools down for too long.
void TakeCheck(v1::HealthRecord& health, const v1::GoldenCheck& check, absl::Time now, const DeviceOptions& options);
// A reading beside a batch; nothing where the device tells none.
void TakeTemperature(v1::HealthRecord& health, std::optional<double> celsius, const DeviceOptions& options);

// For one that cools down: the tracker stood still for so long, and could not hear that it was cool.
void GiveBackCooling(v1::HealthRecord& health, absl::Duration stall, absl::Time now);

// By hand: forgets everything, the baseline too, but for which checks were taken.
void Release(v1::HealthRecord& health);
// Where there is no golden kernel to end a quarantine, time does.
void ReleaseInTime(v1::HealthRecord& health, absl::Time now, const DeviceOptions& options);

// The clock was set back, while the tracker was not there to see it, to before the quarantine began: it begins now, and
// takes as long as it was to. False: it was not, and nothing changed.
bool FollowClock(v1::HealthRecord& health, absl::Time now);

// For people: the same by a clock that is so far ahead.
void MoveTimes(v1::HealthRecord& health, absl::Duration ahead);

// Why it gets no work, or "". `check`: the device's newest; null where it has no golden kernel.
std::string HealthProblem(const v1::HealthRecord& health, const v1::GoldenCheck* check, absl::Time now);
bool InQuarantine(const v1::HealthRecord& health);
// Whether a check now could let it out.
bool WantsCheck(const v1::HealthRecord& health, const v1::GoldenCheck& check, absl::Time now);

struct Baseline {
  double median = 0, mad = 0;  // seconds; 0 while there are no checks
};
Baseline BaselineOf(const v1::HealthRecord& health);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_HEALTH_H_
