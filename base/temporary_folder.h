// SPDX-License-Identifier: Apache-2.0
// A folder of one's own, removed with everything in it at the end. Not for what must outlive the process. The folder of
// a process that was killed stays behind, until another one calls RemoveAbandoned.
#ifndef HONE_BASE_TEMPORARY_FOLDER_H_
#define HONE_BASE_TEMPORARY_FOLDER_H_

#include <filesystem>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone {

class TemporaryFolder {
 public:
  // A new folder with a name that nobody else has, for this user alone, in `parent` (the system's folder for such
  // things if empty). kUnavailable: it cannot be made there.
  static absl::StatusOr<TemporaryFolder> Create(const std::filesystem::path& parent = {});

  // Removes the folders in `parent` (as above) that this user's processes have left there when they died. A living one
  // holds a lock on its folder; what is younger than a minute is left alone, since it may be about to take it.
  static void RemoveAbandoned(const std::filesystem::path& parent = {});

  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }  // absolute, without links
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  TemporaryFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;  // empty: moved from
  int lock_;                    // the folder, open and locked
};

}  // namespace hone

#endif  // HONE_BASE_TEMPORARY_FOLDER_H_
