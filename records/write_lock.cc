#include "records/write_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "fmt/format.h"

namespace hone::records {
namespace {

// "process 4711 (hone-tracker)", as its holder wrote it; the lock itself is the flock, this is only for people.
std::string Holder(int descriptor) {
  std::array<char, 128> text;
  const ssize_t size = pread(descriptor, text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : std::string("another process");
}

}  // namespace

absl::StatusOr<WriteLock> WriteLock::Acquire(const std::filesystem::path& file, std::string_view what,
                                             std::string_view instead) {
  const std::string name = file.string() + ".lock";
  const int descriptor = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor < 0) {
    const int error = errno;
    const std::string message = fmt::format("cannot create {}: {}", name, std::strerror(error));
    if (error == ENOSPC || error == EDQUOT) {
      return absl::ResourceExhaustedError(message + "; free some space on that disk");
    }
    return absl::PermissionDeniedError(message + "; a folder that may be written is needed");
  }
  WriteLock lock(descriptor);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return absl::UnavailableError(
          fmt::format("cannot lock {}: {}; keep it on a local disk", name, std::strerror(errno)));
    }
    return absl::FailedPreconditionError(
        fmt::format("{} {} is being written by {}; {}", what, file.string(), Holder(descriptor), instead));
  }
  const std::string holder = fmt::format("process {} ({})", getpid(), program_invocation_short_name);
  // A failure here (a full disk) costs only the name in another process's message.
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

}  // namespace hone::records
