// SPDX-License-Identifier: Apache-2.0
// Recorded schedules for `hone compile`: the best of the exact device, else of the same target, else of a near target.
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

// What the kernels will run on. The fingerprint may be empty: unknown.
struct Place {
  std::string target;
  std::string device_fingerprint;
};

// The target's, with this machine's CPUs as the device where they are what the target is about.
absl::StatusOr<Place> PlaceOf(const target::Target& target);

// A record that may serve a workload.
struct Usable {
  records::BestRecord best;
  std::string how_near;  // records::ClosenessName, or "other_target"
};

// Those to try for a workload, the best first: at most one of its target, and one of another of the same architecture.
// Of `filter`, device and compiler count: only records of those.
absl::StatusOr<std::vector<Usable>> UsableRecords(const records::Source& source, const Place& place,
                                                  const std::string& digest, const records::Filter& filter = {});
std::vector<package::RecordedSchedule> SchedulesOf(const std::vector<Usable>& usable);

// The same as `hone compile` asks for them. The lookup keeps the source as long as it lives.
package::ScheduleLookup LookupIn(std::shared_ptr<const records::Source> source, const Place& place);

}  // namespace hone::cli

#endif  // HONE_CLI_SCHEDULE_LOOKUP_H_
