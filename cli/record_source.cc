#include "cli/record_source.h"

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "cli/tracker_records.h"
#include "records/default_path.h"

namespace hone::cli {

void RecordSourceOptions::AddTo(CLI::App* command) {
  command->add_option("--records", records, "records file (default: ~/.local/share/hone/records.db)")->check(NotEmpty);
  tracker.AddTo(command, false);
}

absl::StatusOr<std::unique_ptr<hone::records::Source>> RecordSourceOptions::Open(hone::records::OpenMode mode) const {
  if (!tracker.given()) return OpenFile(mode);
  if (!records.empty()) {
    return UsageError("--records and --tracker exclude each other: records come from one of them");
  }
  TrackerOptions known = tracker;
  HONE_ASSIGN_OR_RETURN(const auto channel, known.Connect());
  return std::make_unique<TrackerRecords>(channel, known.address);
}

absl::StatusOr<std::unique_ptr<hone::records::Store>> RecordSourceOptions::OpenFile(
    hone::records::OpenMode mode) const {
  if (tracker.given()) {
    return UsageError("this is about a records file; run it where the tracker's is, with --records FILE");
  }
  HONE_ASSIGN_OR_RETURN(const std::filesystem::path path, File());
  return hone::records::Store::Open(path, mode);
}

absl::StatusOr<std::unique_ptr<hone::records::Source>> RecordSourceOptions::OpenIfAny() const {
  if (!given()) {
    HONE_ASSIGN_OR_RETURN(const std::filesystem::path path, File());
    if (!std::filesystem::exists(path)) return nullptr;
  }
  return Open(hone::records::OpenMode::kReadOnly);
}

absl::StatusOr<std::filesystem::path> RecordSourceOptions::File() const {
  if (tracker.given()) return std::filesystem::path();
  if (records.empty()) return hone::records::DefaultRecordsPath();
  return records;
}

}  // namespace hone::cli
