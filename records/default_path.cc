// SPDX-License-Identifier: Apache-2.0
#include "records/default_path.h"

#include <cstdlib>

#include "base/home_folder.h"

namespace hone::records {

absl::StatusOr<std::filesystem::path> DefaultRecordsPath() {
  if (const char* xdg = std::getenv("XDG_DATA_HOME"); xdg != nullptr && *xdg == '/') {
    return std::filesystem::path(xdg) / "hone" / "records.db";
  }
  std::filesystem::path home = HomeFolder();
  if (!home.is_absolute()) {
    return absl::FailedPreconditionError("this account has no home folder; pass --records FILE");
  }
  return home / ".local" / "share" / "hone" / "records.db";
}

}  // namespace hone::records
