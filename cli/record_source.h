// SPDX-License-Identifier: Apache-2.0
// The options that select the records of a command, and the functions that open them (records/source.h). Records are in
// a file, or in the farm of a tracker.
#ifndef HONE_CLI_RECORD_SOURCE_H_
#define HONE_CLI_RECORD_SOURCE_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/tracker_options.h"
#include "records/source.h"
#include "records/store.h"

namespace CLI {
class App;
}

namespace hone::cli {

struct RecordSourceOptions {
  std::string records;  // path of a records file; empty without a tracker = the user's own file
  TrackerOptions tracker;

  // others: as for TrackerOptions::AddTo, besides --records.
  void AddTo(CLI::App* command, std::vector<const std::string*> others = {});
  bool given() const { return !records.empty() || tracker.given(); }

  // Opens the file or connects to the tracker. Usage error: both were given. Other errors: those of OpenRecords and
  // TrackerOptions::Connect. A tracker that does not answer is noticed only by the first call.
  absl::StatusOr<std::unique_ptr<records::Source>> Open(records::OpenMode mode) const;
  // Opens a snapshot of the records, to look up schedules for a compilation. Null: no option was given and the user has
  // no records file, so the compilation uses default schedules. A file that was given must exist and be a records file.
  absl::StatusOr<std::unique_ptr<records::Source>> OpenIfAny() const;
  // With --require, the status of Open or OpenIfAny as a RecordsMissingError (command.h) if it says that there is no
  // records file; else unchanged.
  absl::Status MissingIfNoFile(const absl::Status& opened, bool require) const;
  // Opens the file, for commands that work on files only. Usage error: a tracker was given.
  absl::StatusOr<std::unique_ptr<records::Store>> OpenFile(records::OpenMode mode) const;
  // The path of the file; empty if a tracker has the records.
  absl::StatusOr<std::filesystem::path> File() const;
  // Usage error if `output`, which is to be written, is the records file or a file that the database keeps beside it:
  // its lock, its write-ahead log, or the index of that log, whether they exist or not.
  absl::Status CheckNotARecordsFile(const std::string& output) const;
};

}  // namespace hone::cli

#endif  // HONE_CLI_RECORD_SOURCE_H_
