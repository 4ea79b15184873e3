// SPDX-License-Identifier: Apache-2.0
// The path of the records file when --records is not given. Only the path: storage/open.h opens it and creates folders.
//
// $XDG_DATA_HOME/hone/records.db, or ~/.local/share/hone/records.db where XDG_DATA_HOME is unset or not absolute (as
// the XDG base directory specification asks). The home is $HOME, else the account's.
#ifndef HONE_RECORDS_DEFAULT_PATH_H_
#define HONE_RECORDS_DEFAULT_PATH_H_

#include <filesystem>

#include "absl/status/statusor.h"

namespace hone::records {

// kFailedPrecondition where the account has no home: the caller must be given a path.
absl::StatusOr<std::filesystem::path> DefaultRecordsPath();

}  // namespace hone::records

#endif  // HONE_RECORDS_DEFAULT_PATH_H_
