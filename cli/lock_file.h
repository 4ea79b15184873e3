// SPDX-License-Identifier: Apache-2.0
// A lock file: the schedule of every workload of a model, per target, as text that is kept beside the model's sources.
//
// From it `hone compile --locked` makes the same package again, without records. The file is JSON with each value, and
// each step of a schedule, on a line of its own, so that a version control shows small differences. Workloads are in
// the order of the model. This file has the values, their text and their files; records_lock.h fills them from records.
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

// The measurement of a pinned schedule. It informs the reader of the file: a compilation ignores it, and each field may
// be missing in the file.
struct LockedRecord {
  std::string measurement, device, compiler, measured_at;
  std::string closeness;  // how close the record's device is, as in UsableRecord (schedule_lookup.h)
  double median_ms = 0;
  std::optional<double> default_ms;
};

struct LockedWorkload {
  std::string digest;
  std::string op;
  int64_t calls = 0;
  std::string target;                  // canonical text of the unit that computes it; empty: the program has one target
  std::string schedule;                // text; every line ends with a newline
  std::optional<LockedRecord> record;  // nullopt = the default schedule, without a measurement
};

struct LockedProgram {
  std::string target;  // canonical text, of all units together (PrintTargetList in model_options.h)
  std::vector<LockedWorkload> workloads;
};

struct LockFile {
  std::string compiler;  // version of the code generator; another version may make other code from the same schedules
  std::string model;     // file name of the model, for the reader of the file
  std::vector<LockedProgram> programs;
};

// The file's text. The same lock file always gives the same text.
std::string ToText(const LockFile& lock);

// path: for messages. Fields that only inform the reader may be missing. kDataLoss: the text is not JSON, or a field is
// missing, has the wrong type, or appears twice; the message says which. kFailedPrecondition: the format is that of
// another Hone.
absl::StatusOr<LockFile> ParseLockFile(std::string_view text, const std::string& path);
// Reads and parses the file. kNotFound: it cannot be read or is empty. Other errors: those of ParseLockFile.
absl::StatusOr<LockFile> ReadLockFile(const std::string& path);
absl::Status WriteLockFile(const LockFile& lock, const std::string& path);

}  // namespace hone::cli

#endif  // HONE_CLI_LOCK_FILE_H_
