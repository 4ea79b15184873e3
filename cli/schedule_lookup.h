// SPDX-License-Identifier: Apache-2.0
// Looks up recorded schedules for `hone compile`: the best of the same device, else of the same target, else of a
// similar target.
#ifndef HONE_CLI_SCHEDULE_LOOKUP_H_
#define HONE_CLI_SCHEDULE_LOOKUP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "deploy/package/compile_kernels.h"
#include "records/source.h"

namespace hone::cli {

// The target and device that the kernels will run on.
struct Place {
  std::string target;              // canonical text
  std::string device_fingerprint;  // empty = unknown
};

// The place for `target`. The device is this machine's CPU if the target describes this machine, else unknown.
absl::StatusOr<Place> PlaceOf(const target::Target& target);

// The closeness of a record of another target (UsableRecord).
inline constexpr char kOtherTarget[] = "other_target";

// A record whose schedule may be used for a workload.
struct UsableRecord {
  records::BestRecord best;
  std::string closeness;  // how close its device is: a records::ClosenessName, or kOtherTarget
};

// The records whose schedules are to be tried for a workload, in this order: at most one for the place's target, then
// at most one for another target of the same architecture. Only the device and the compiler of `filter` are used.
absl::StatusOr<std::vector<UsableRecord>> UsableRecords(const records::Source& source, const Place& place,
                                                        const std::string& digest, const records::Filter& filter = {});
// The schedules of the records in the same order, each with a text that says which record it is from.
std::vector<package::RecordedSchedule> ToRecordedSchedules(const std::vector<UsableRecord>& usable);

// UsableRecords as the function that a compilation calls. It shares ownership of `source`.
enum class OtherTargets { kUsed, kIgnored };
package::ScheduleLookup MakeScheduleLookup(std::shared_ptr<const records::Source> source, const Place& place,
                                           OtherTargets others);

}  // namespace hone::cli

#endif  // HONE_CLI_SCHEDULE_LOOKUP_H_
