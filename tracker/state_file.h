// The SQLite files in which the tracker keeps what must survive it, beside the records: how each of them is opened.
#ifndef HONE_TRACKER_STATE_FILE_H_
#define HONE_TRACKER_STATE_FILE_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "records/sqlite.h"

namespace hone::tracker {

// Opens the file, made where missing, and runs `schema` on it, which must do nothing where that was done before. What
// is committed is on the disk.
absl::StatusOr<records::Connection> OpenStateFile(const std::filesystem::path& path, const std::string& schema);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_STATE_FILE_H_
