// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/write_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/resolve_path.h"
#include "base/shell_word.h"
#include "fmt/format.h"

namespace hone::storage {
namespace {

// The text that the holder wrote into the lock file, "process 4711 (hone-tracker)". It is only for messages: the lock
// itself is the flock.
std::string Holder(int descriptor) {
  std::array<char, 128> text;
  const ssize_t size = pread(descriptor, text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : std::string("another process");
}

// Whether the file is a lock: it begins as holders write it, is empty (a new lock), or begins with a zero byte (its
// text was lost in a power cut). Any other file of that name belongs to a user and must stay as it is.
bool IsLock(int descriptor) {
  constexpr std::string_view kBeginning = "process ";
  std::array<char, kBeginning.size()> text;
  const ssize_t size = pread(descriptor, text.data(), text.size(), 0);
  if (size < 0) return false;
  const std::string_view there(text.data(), static_cast<size_t>(size));
  return kBeginning.starts_with(there) || there.front() == '\0';
}

// Opens the lock file, or creates it if it is missing. An existing file is opened without O_CREAT: in a folder such as
// /tmp the kernel refuses O_CREAT on a file of another user.
int OpenLock(const std::string& name) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  const int there = open(name.c_str(), kFlags);
  return there >= 0 || errno != ENOENT ? there : open(name.c_str(), kFlags | O_CREAT, 0644);
}

absl::Status CannotLock(const std::string& name, const std::string& file) {
  const int error = errno;
  std::error_code ignored;
  if (std::filesystem::exists(name, ignored)) {
    return absl::PermissionDeniedError(
        fmt::format("cannot write the lock {}: {}; every user who writes {} must be able to write the lock; as its "
                    "owner, run: chmod --reference={} {}",
                    name, std::strerror(error), file, ShellWord(file), ShellWord(name)));
  }
  const std::string message = fmt::format("cannot create the lock {}: {}", name, std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(message + "; free some space on that disk");
  }
  return absl::PermissionDeniedError(message + "; it needs a writable folder");
}

// Gives the lock file the access rights of the file, if the file exists and the lock file is ours: every user who may
// write the file needs the lock. A lock file with further hard links is left as it is. Errors are ignored, because the
// lock is valid without these rights.
void ShareAsFile(int descriptor, const std::string& file) {
  struct stat wanted{}, lock{};
  if (stat(file.c_str(), &wanted) != 0 || fstat(descriptor, &lock) != 0) return;
  if (lock.st_uid != geteuid() || lock.st_nlink != 1 || !S_ISREG(lock.st_mode)) return;
  constexpr mode_t kRights = 0666;
  if (((lock.st_mode ^ wanted.st_mode) & kRights) != 0 && fchmod(descriptor, wanted.st_mode & kRights) != 0) errno = 0;
  const bool foreign = lock.st_uid != wanted.st_uid || lock.st_gid != wanted.st_gid;
  if (foreign && geteuid() == 0 && fchown(descriptor, wanted.st_uid, wanted.st_gid) != 0) errno = 0;
}

}  // namespace

absl::StatusOr<WriteLock> WriteLock::Acquire(const std::filesystem::path& given, std::string_view what,
                                             std::string_view instead) {
  const std::filesystem::path file = ResolvePath(given);
  const std::string name = file.string() + ".lock";
  const int descriptor = OpenLock(name);
  if (descriptor < 0) return CannotLock(name, file.string());
  WriteLock lock(descriptor);
  if (!IsLock(descriptor)) {
    return absl::FailedPreconditionError(
        fmt::format("{} should be the lock of {} {}, but it holds something else and is not overwritten; move it away",
                    name, what, file.string()));
  }
  ShareAsFile(descriptor, file.string());
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return absl::UnavailableError(
          fmt::format("cannot lock {}: {}; keep it on a local disk", name, std::strerror(errno)));
    }
    return absl::FailedPreconditionError(
        fmt::format("{} {} is being written by {}; {}", what, file.string(), Holder(descriptor), instead));
  }
  const std::string holder = fmt::format("process {} ({})", getpid(), program_invocation_short_name);
  // An error here (a full disk) is ignored: only the holder's name is then missing in another process's message.
  if (ftruncate(descriptor, 0) == 0 && pwrite(descriptor, holder.data(), holder.size(), 0) < 0) errno = 0;
  return lock;
}

WriteLock::WriteLock(WriteLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

WriteLock& WriteLock::operator=(WriteLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

WriteLock::~WriteLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace hone::storage
