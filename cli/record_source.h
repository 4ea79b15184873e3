// SPDX-License-Identifier: Apache-2.0
// The options that say which records a command means, and the records themselves (records/source.h): those of a file,
// or of the farm behind a tracker.
#ifndef HONE_CLI_RECORD_SOURCE_H_
#define HONE_CLI_RECORD_SOURCE_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/tracker_options.h"
#include "records/source.h"
#include "records/store.h"

namespace CLI {
class App;
}

namespace hone::cli {

struct RecordSourceOptions {
  std::string records;  // file; empty, and no tracker: the user's own
  TrackerOptions tracker;

  void AddTo(CLI::App* command);
  bool given() const { return !records.empty() || tracker.given(); }

  // Usage error: both were given. Errors as of Store::Open and TrackerOptions::Connect; whether a tracker answers shows
  // at the first question.
  absl::StatusOr<std::unique_ptr<records::Source>> Open(records::OpenMode mode) const;
  // To read schedules for a compilation. Null: nothing was given and nothing was ever tuned here, so that defaults are
  // what there is. A file that was given must exist, and have records or be ready for them.
  absl::StatusOr<std::unique_ptr<records::Source>> OpenIfAny() const;
  // The file alone, for what only a file can do. Usage error: a tracker was given.
  absl::StatusOr<std::unique_ptr<records::Store>> OpenFile(records::OpenMode mode) const;
  // Its path; empty where a tracker has the records.
  absl::StatusOr<std::filesystem::path> File() const;
  // A usage error where what is to be written is that file, or one that a database keeps beside it: its lock, its log
  // and the index of that, also where they are not there yet.
  absl::Status CheckIsNoFileOfRecords(const std::string& output) const;
};

}  // namespace hone::cli

#endif  // HONE_CLI_RECORD_SOURCE_H_
