// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/driver_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/read_file.h"
#include "base/status.h"

namespace hone::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kAsFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

absl::Status CannotEmptyError(const std::string& path) {
  return absl::InternalError(
      fmt::format("cannot empty {}, where a batch may have left files for the next: {}", path, strerror(errno)));
}

// An open folder, through which nested folders are visited. Only one is open at a time, because a kernel may have
// nested more folders than a process may open.
class OpenFolder {
 public:
  explicit OpenFolder(const std::string& path) : folder_(open(path.c_str(), kAsFolder)) {}
  ~OpenFolder() {
    if (folder_ >= 0) close(folder_);
  }
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;

  bool is_open() const { return folder_ >= 0; }
  // Moves to a subfolder, or with ".." to the parent.
  bool Enter(const std::string& name) {
    const int next = openat(folder_, name.c_str(), kAsFolder);
    close(folder_);
    folder_ = next;
    return is_open();
  }
  // Removes files and empty folders. Returns the names of the folders that are left; nullopt: the folder cannot be
  // read.
  std::optional<std::vector<std::string>> RemoveFiles() {
    fchmod(folder_, 0700);  // a kernel may have taken the right to
    std::optional<std::vector<std::string>> names = Names();
    if (!names.has_value()) return names;
    std::erase_if(*names, [&](const std::string& name) {
      if (unlinkat(folder_, name.c_str(), 0) == 0 || RemoveFolder(name)) return true;
      fchmodat(folder_, name.c_str(), 0700, 0);
      return false;
    });
    return names;
  }
  bool RemoveFolder(const std::string& name) { return unlinkat(folder_, name.c_str(), AT_REMOVEDIR) == 0; }

 private:
  std::optional<std::vector<std::string>> Names() const {
    const int again = openat(folder_, ".", kAsFolder);
    DIR* const entries = again < 0 ? nullptr : fdopendir(again);
    if (entries == nullptr) return std::nullopt;
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* const entry = readdir(entries)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const bool all = errno == 0;
    closedir(entries);
    return all ? std::optional(std::move(names)) : std::nullopt;
  }

  int folder_;
};

// Removes the contents of the folder. Follows no link.
absl::Status RemoveContents(const std::string& path) {
  chmod(path.c_str(), 0700);  // of this folder, too, a kernel may have taken its rights
  OpenFolder folder(path);
  std::vector<std::vector<std::string>> left;  // in each folder on the way to this one, and in this one
  const auto remove_files = [&] {
    std::optional<std::vector<std::string>> names = folder.RemoveFiles();
    if (names.has_value()) left.push_back(*std::move(names));
    return names.has_value();
  };
  if (!folder.is_open() || !remove_files()) return CannotEmptyError(path);
  while (true) {
    if (!left.back().empty()) {
      if (!folder.Enter(left.back().back()) || !remove_files()) return CannotEmptyError(path);
      continue;
    }
    left.pop_back();
    if (left.empty()) return absl::OkStatus();
    if (!folder.Enter("..") || !folder.RemoveFolder(left.back().back())) return CannotEmptyError(path);
    left.back().pop_back();
  }
}

}  // namespace

absl::Status DriverFolder::Reset() const {
  for (const std::string& path : paths_) HONE_RETURN_IF_ERROR(RemoveContents(path));
  std::error_code failed;  // what cannot be written, as on a full disk, is built again
  for (const Entry& entry : saved_) {
    if (!entry.bytes.has_value()) {
      fs::create_directory(entry.path, failed);
      continue;
    }
    std::ofstream file(entry.path, std::ios::binary);
    file << *entry.bytes;
    file.close();
    if (!file) fs::remove(entry.path, failed);
  }
  return absl::OkStatus();
}

void DriverFolder::SaveContents() {
  if (!saved_.empty()) return;
  for (const std::string& path : paths_) {
    std::error_code failed;
    for (fs::recursive_directory_iterator entry(path, failed), end; !failed && entry != end; entry.increment(failed)) {
      std::error_code gone;
      const fs::file_status status = entry->symlink_status(gone);
      if (fs::is_directory(status)) saved_.push_back({entry->path().string(), std::nullopt});
      if (!fs::is_regular_file(status)) continue;
      saved_.push_back({entry->path().string(), ReadWholeFile(entry->path().string()).value_or("")});
    }
  }
}

}  // namespace hone::agent
