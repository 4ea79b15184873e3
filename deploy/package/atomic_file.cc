// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/identity.h"
#include "base/resolve_path.h"
#include "base/status.h"
#include "base/write_all.h"

namespace hone::package {
namespace {

absl::Status SystemError(std::string_view what, const std::string& path) {
  const int reason = errno;
  const std::string text = fmt::format("cannot {} '{}': {}", what, path, std::strerror(reason));
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(text + "; free some space and try again, the old file is untouched");
    case EFBIG:
      return absl::ResourceExhaustedError(
          text + "; raise the limit (ulimit -f, LimitFSIZE= of systemd) and try again, the old file is untouched");
    case ENOENT:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text);
    default:
      return absl::UnavailableError(text);
  }
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A path that opens the same file again.
std::string PlaceOf(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// Gives an open file a name in its folder. On failure errno has the reason.
bool Link(int fd, const std::string& name) {
  return linkat(AT_FDCWD, PlaceOf(fd).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

// Opens a new file without a name in `folder`. Returns -1 if the file system has no such files or does not let them be
// linked, which is tried with a first file.
int OpenUnnamedFile(const std::string& folder) {
  const auto open_one = [&folder] { return open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666); };
  const int tried = open_one();
  if (tried < 0) return -1;
  const std::string name = fmt::format("{}/.tmp.{}", folder, RandomId());
  const bool linked = Link(tried, name);
  close(tried);
  if (!linked) return -1;
  unlink(name.c_str());
  return open_one();
}

// The descriptor that a path such as /dev/stdout or /dev/fd/3 names, if this program was started with it; else -1. A
// descriptor that the program opened itself (it has FD_CLOEXEC) does not count.
int DescriptorOfPath(std::filesystem::path path) {
  constexpr int kLinksMax = 40;
  std::error_code error;
  for (int links = 0; links < kLinksMax; ++links) {
    if (std::filesystem::equivalent(path.parent_path(), "/proc/self/fd", error)) {
      const std::string name = path.filename().string();
      int descriptor = -1;
      const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), descriptor);
      if (wrong != std::errc() || end != name.data() + name.size()) return -1;
      return fcntl(descriptor, F_GETFD) == 0 ? descriptor : -1;  // without FD_CLOEXEC
    }
    if (!std::filesystem::is_symlink(path, error)) return -1;
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return -1;
}

}  // namespace

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& given) {
  // A descriptor from the shell is written to directly: replacing a file that the shell appends to would lose its
  // contents.
  if (const int descriptor = DescriptorOfPath(given); descriptor >= 0) {
    const int fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return SystemError("write to", given);
    return AtomicFile(given, "", fd);
  }
  struct stat there{};
  if (stat(given.c_str(), &there) != 0) {
    if (errno == ENAMETOOLONG) return SystemError("create", given);
  } else if (!S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)) {
    const int fd = open(given.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return SystemError("write to", given);
    return AtomicFile(given, "", fd);
  }
  const std::string path = FollowLinks(given).string();
  // A file without a name vanishes if the program ends, however it ends.
  if (const int fd = OpenUnnamedFile(FolderOf(path)); fd >= 0)
    return AtomicFile(path, PlaceOf(fd), fd, /*named=*/false);
  std::string temporary = path + ".tmp.XXXXXX";
  int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0 && errno == ENAMETOOLONG) {  // the file's own name is too long for a suffix
    temporary = FolderOf(path) + "/.tmp.XXXXXX";
    fd = mkostemp(temporary.data(), O_CLOEXEC);
  }
  if (fd < 0) return SystemError("create a file beside", path);
  AtomicFile file(path, temporary, fd);
  // mkostemp creates a private file. The umask alone decides who can read a package, as for any new file.
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(fd, 0666 & ~mask) != 0) return SystemError("set the permissions of", temporary);
  return file;
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (named_ && !temporary_path_.empty()) unlink(temporary_path_.c_str());
}

absl::Status AtomicFile::Write(std::span<const uint8_t> bytes) {
  const bool written = WriteAll(fd_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return written ? absl::OkStatus() : SystemError("write", path_);
}

absl::Status AtomicFile::Name() {
  const std::string suffix = ".tmp." + RandomId();
  for (const std::string& name : {path_ + suffix, FolderOf(path_) + "/" + suffix}) {
    if (Link(fd_, name)) {
      temporary_path_ = name;
      named_ = true;
      return absl::OkStatus();
    }
    if (errno != ENAMETOOLONG) break;  // the file's own name is too long for a suffix: try the shorter name
  }
  return SystemError("create a file beside", path_);
}

absl::Status AtomicFile::Commit() {
  if (temporary_path_.empty()) {
    return close(std::exchange(fd_, -1)) == 0 ? absl::OkStatus() : SystemError("close", path_);
  }
  if (fsync(fd_) != 0) return SystemError("force to disk", path_);
  if (!named_) HONE_RETURN_IF_ERROR(Name());
  if (close(std::exchange(fd_, -1)) != 0) return SystemError("close", path_);
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) return SystemError("replace", path_);
  temporary_path_.clear();
  // The rename is durable only when the folder is on disk. A failure is ignored, because some file systems cannot sync
  // folders, and the file itself is complete.
  const int folder = open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return absl::OkStatus();
}

absl::Status WriteTextFile(std::string_view text, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  HONE_RETURN_IF_ERROR(file.Write({reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  return file.Commit();
}

}  // namespace hone::package
