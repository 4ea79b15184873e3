// SPDX-License-Identifier: Apache-2.0
// A lock file: the schedule of every workload of a model, per target, as text that is kept beside a model's sources.
//
// From it `hone compile --locked` makes the same package again, without records. It is JSON with each value, and each
// step of a schedule, on a line of its own, so that a change reads as one. Workloads stand in the order of the model.
// Values only. Who makes one: records_lock.h.
#ifndef HONE_CLI_LOCK_FILE_H_
#define HONE_CLI_LOCK_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::cli {

// Where a pinned schedule was measured: for people, a compilation does not read it, and any of it may be left out.
struct LockedRecord {
  std::string measurement, device, compiler, measured_at;
  std::string how_near;  // as in Usable (schedule_lookup.h)
  double median_ms = 0;
  std::optional<double> default_ms;
};

struct LockedWorkload {
  std::string digest;
  std::string op;
  int64_t calls = 0;
  std::string schedule;                // text, each line of it with its end
  std::optional<LockedRecord> record;  // none: the default schedule, which nobody measured for this
};

struct LockedProgram {
  std::string target;  // canonical text
  std::vector<LockedWorkload> workloads;
};

struct LockFile {
  std::string compiler;  // version of the code generator; another may make other code of the same schedules
  std::string model;     // name of the file, for people
  std::vector<LockedProgram> programs;
};

std::string ToText(const LockFile& lock);

// path: for messages. What is only for people may be missing. DataLoss says where it is not JSON, or names what is
// missing, of the wrong type, or there twice; FailedPrecondition: a newer Hone wrote it.
absl::StatusOr<LockFile> ParseLockFile(std::string_view text, const std::string& path);
absl::StatusOr<LockFile> ReadLockFile(const std::string& path);
absl::Status WriteLockFile(const LockFile& lock, const std::string& path);

}  // namespace hone::cli

#endif  // HONE_CLI_LOCK_FILE_H_
