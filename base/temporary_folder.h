// A folder of one's own, removed with everything in it at the end. Not for what must outlive the process.
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

  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }  // absolute, without links
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;  // empty: moved from
};

}  // namespace hone

#endif  // HONE_BASE_TEMPORARY_FOLDER_H_
