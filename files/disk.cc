// SPDX-License-Identifier: Apache-2.0
#include "files/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/digest.h"

namespace hone::files {

absl::Status DiskError(std::string_view what, const std::filesystem::path& path) {
  const int reason = errno;
  const char* advice = "check that disk";
  if (reason == ENOSPC || reason == EDQUOT) advice = "free some space on that disk and try again";
  if (reason == EFBIG) advice = "raise the limit on the sizes of files (ulimit -f, LimitFSIZE= of systemd)";
  if (reason == EACCES || reason == EPERM || reason == EROFS) advice = "make it writable to this program's user";
  return absl::UnavailableError(
      fmt::format("cannot {} {}: {}; {}", what, path.string(), std::strerror(reason), advice));
}

absl::StatusOr<OpenedFile> OpenIfThere(const std::filesystem::path& path, int flags) {
  OpenedFile file(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW));
  if (file.descriptor() < 0 && errno != ENOENT) return DiskError("open", path);
  return file;
}

absl::StatusOr<OpenedFile> CreateFile(const std::filesystem::path& path) {
  OpenedFile file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.descriptor() < 0) return DiskError("create", path);
  return file;
}

ptrdiff_t ReadAt(int descriptor, char* to, size_t bytes, int64_t offset) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t read = pread(descriptor, to + done, bytes - done, offset + static_cast<int64_t>(done));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return -1;
    if (read == 0) break;
    done += static_cast<size_t>(read);
  }
  return static_cast<ptrdiff_t>(done);
}

bool WriteAt(int descriptor, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return true;
}

bool Reserve(int descriptor, int64_t bytes) {
  if (bytes == 0 || fallocate(descriptor, 0, 0, bytes) == 0) return true;
  // Some file systems (NFS, FUSE) reserve nothing; there a full disk is noticed by a later write.
  return (errno == EOPNOTSUPP || errno == ENOSYS) && ftruncate(descriptor, bytes) == 0;
}

absl::StatusOr<std::string> DigestOf(int descriptor, const std::filesystem::path& path) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::string piece(kPiece, '\0');
  Sha256 sum;
  for (int64_t offset = 0;; offset += static_cast<int64_t>(kPiece)) {
    const ptrdiff_t read = ReadAt(descriptor, piece.data(), kPiece, offset);
    if (read < 0) return DiskError("read", path);
    sum.Add({piece.data(), static_cast<size_t>(read)});
    if (static_cast<size_t>(read) < kPiece) return Hex(sum.Finish());
  }
}

absl::Status SyncFolder(const std::filesystem::path& folder) {
  const OpenedFile opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.descriptor() < 0 || fsync(opened.descriptor()) != 0) return DiskError("write", folder);
  return absl::OkStatus();
}

}  // namespace hone::files
