// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

namespace hone {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "hone-tmp-";
constexpr time_t kYoung = 60;  // seconds; RemoveAbandoned keeps folders younger than this

absl::StatusOr<fs::path> Folder(const fs::path& parent) {
  std::error_code error;
  fs::path where = parent.empty() ? fs::temp_directory_path(error) : parent;
  if (!error) where = fs::canonical(where, error);
  if (!error) return where;
  const std::string what = parent.empty() ? "the folder for temporary files (TMPDIR, else /tmp)" : parent.string();
  return absl::UnavailableError(fmt::format("cannot make a folder in {}: {}", what, error.message()));
}

// Locks the folder if its process has ended. Returns its descriptor, or -1 if the folder must stay.
int LockIfAbandoned(const fs::path& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat about = {};
  if (folder >= 0 && fstat(folder, &about) == 0 && about.st_uid == geteuid() &&
      about.st_mtime + kYoung < std::time(nullptr) && flock(folder, LOCK_EX | LOCK_NB) == 0) {
    return folder;
  }
  if (folder >= 0) close(folder);
  return -1;
}

}  // namespace

absl::StatusOr<TemporaryFolder> TemporaryFolder::Create(const fs::path& parent) {
  absl::StatusOr<fs::path> where = Folder(parent);
  if (!where.ok()) return where.status();
  std::string name = (*where / kPrefix).string() + "XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    return absl::UnavailableError(fmt::format("cannot make a folder in {}: {}", where->string(), std::strerror(errno)));
  }
  const int lock = open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock >= 0) flock(lock, LOCK_EX | LOCK_NB);  // without support for locks, RemoveAbandoned cannot lock it either
  return TemporaryFolder(name, lock);
}

void TemporaryFolder::RemoveAbandoned(const fs::path& parent) {
  const absl::StatusOr<fs::path> where = Folder(parent);
  if (!where.ok()) return;
  std::error_code ignored;  // another process may remove folders at the same time
  for (fs::directory_iterator entry(*where, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    if (!entry->path().filename().string().starts_with(kPrefix)) continue;
    const int lock = LockIfAbandoned(entry->path());
    if (lock < 0) continue;
    std::error_code failed;
    fs::remove_all(entry->path(), failed);
    close(lock);
  }
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // a destructor cannot report it
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace hone
