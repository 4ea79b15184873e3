// SPDX-License-Identifier: Apache-2.0
// A private temporary folder that its destructor removes with everything in it. Not for files that must outlive the
// process. The folder of a killed process stays behind until another process calls RemoveAbandoned.
#ifndef HONE_BASE_TEMPORARY_FOLDER_H_
#define HONE_BASE_TEMPORARY_FOLDER_H_

#include <filesystem>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone {

class TemporaryFolder {
 public:
  // Makes a new folder with a unique name, accessible to this user only, in `parent`. An empty parent means the
  // system's folder for temporary files. kUnavailable: the folder cannot be made there.
  static absl::StatusOr<TemporaryFolder> Create(const std::filesystem::path& parent = {});

  // Removes the folders in `parent` (as for Create) that killed processes of this user left behind. A running process
  // holds a lock on its folder, so its folder stays. Folders younger than a minute stay as well, because their process
  // may not have taken the lock yet. Errors are ignored.
  static void RemoveAbandoned(const std::filesystem::path& parent = {});

  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }  // absolute, without links
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  TemporaryFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;  // empty after a move
  int lock_;  // descriptor of the folder, which is locked; -1 if it could not be opened, or after a move
};

}  // namespace hone

#endif  // HONE_BASE_TEMPORARY_FOLDER_H_
