// SPDX-License-Identifier: Apache-2.0
#include "cli/record_source.h"

#include <fmt/format.h>

#include <utility>

#include "CLI/CLI.hpp"
#include "base/resolve_path.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/tracker_records.h"
#include "records/default_path.h"
#include "storage/open.h"

namespace hone::cli {

void RecordSourceOptions::AddTo(CLI::App* command, std::vector<const std::string*> others) {
  command->add_option("--records", records, "records file (default: ~/.local/share/hone/records.db)")->check(NotEmpty);
  others.push_back(&records);
  tracker.AddTo(command, TrackerOptions::Need::kOptional, std::move(others));
}

absl::StatusOr<std::unique_ptr<hone::records::Source>> RecordSourceOptions::Open(hone::records::OpenMode mode) const {
  if (!tracker.given()) return OpenFile(mode);
  if (!records.empty()) {
    return UsageError("--records and --tracker exclude each other: give only one source of records");
  }
  TrackerOptions known = tracker;
  HONE_ASSIGN_OR_RETURN(const auto channel, known.Connect());
  return std::make_unique<TrackerRecords>(channel, known.address);
}

absl::Status RecordSourceOptions::MissingIfNoFile(const absl::Status& opened, bool require) const {
  const bool no_file = absl::IsNotFound(opened) && !tracker.given();  // of a tracker: no certificate
  return require && no_file ? RecordsMissingError(std::string(opened.message())) : opened;
}

absl::StatusOr<std::unique_ptr<hone::records::Store>> RecordSourceOptions::OpenFile(
    hone::records::OpenMode mode) const {
  if (tracker.given()) {
    return UsageError(
        "this command works on a records file; name one with --records FILE, on the tracker's machine (a tracker was "
        "given by --tracker or HONE_TRACKER)");
  }
  HONE_ASSIGN_OR_RETURN(const std::filesystem::path path, File());
  return hone::storage::OpenRecords(path, mode);
}

absl::StatusOr<std::unique_ptr<hone::records::Source>> RecordSourceOptions::OpenIfAny() const {
  if (given()) return Open(hone::records::OpenMode::kSnapshot);
  const absl::StatusOr<std::filesystem::path> path = File();
  if (!path.ok()) return nullptr;  // an account without a home has no records of its own
  absl::StatusOr<std::unique_ptr<hone::records::Store>> own =
      hone::storage::OpenRecords(*path, hone::records::OpenMode::kSnapshot);
  if (absl::IsNotFound(own.status())) return nullptr;  // also an empty file, as after a killed first `hone tune`
  HONE_RETURN_IF_ERROR(own.status());
  return *std::move(own);
}

absl::Status RecordSourceOptions::CheckNotARecordsFile(const std::string& output) const {
  const absl::StatusOr<std::filesystem::path> path = File();
  if (!path.ok() || path->empty()) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(CheckNotAnInput(output, {path->string()}));
  const std::string meant = ResolvePath(output).string(), records_file = ResolvePath(path->string()).string();
  for (const char* suffix : {"", ".lock", "-wal", "-shm"}) {
    if (meant != records_file + suffix) continue;
    return UsageError(fmt::format("{} is the records file {} or a file that belongs to it; write to another file",
                                  output, records_file));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::filesystem::path> RecordSourceOptions::File() const {
  if (tracker.given()) return std::filesystem::path();
  if (records.empty()) return hone::records::DefaultRecordsPath();
  return records;
}

}  // namespace hone::cli
