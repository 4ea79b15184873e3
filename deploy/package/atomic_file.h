// SPDX-License-Identifier: Apache-2.0
// An AtomicFile is a file that appears whole or not at all: it is written without a name, or under a temporary name, in
// the same folder, and then renamed.
//
// Until Commit succeeds, the old file stays as it is. If the file system has no files without a name (NFS), the
// destructor deletes the temporary file, and a program that is killed leaves it. Symbolic links are followed: the file
// to which they lead is replaced. A device, a pipe, or a descriptor that a shell has opened (/dev/stdout) cannot be
// replaced and is written to directly. Start with Create, or with WriteTextFile.
#ifndef HONE_DEPLOY_PACKAGE_ATOMIC_FILE_H_
#define HONE_DEPLOY_PACKAGE_ATOMIC_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::package {

// Owns the open file. One thread at a time may use it.
class AtomicFile {
 public:
  // The errors of all three functions name the path and the system's reason: NotFound, PermissionDenied,
  // ResourceExhausted (the disk is full, or a limit on file sizes), else Unavailable.
  static absl::StatusOr<AtomicFile> Create(const std::string& path);
  // Appends the bytes.
  absl::Status Write(std::span<const uint8_t> bytes);
  // Forces the file to disk, gives it its final name, and forces the folder to disk. Call it once, as the last one.
  absl::Status Commit();

  // A path at which the bytes written so far can be opened. Empty if the path itself is written to, or after Commit.
  const std::string& temporary_path() const { return temporary_path_; }

  AtomicFile(AtomicFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_path_(std::exchange(other.temporary_path_, {})),
        fd_(std::exchange(other.fd_, -1)),
        named_(other.named_) {}
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

 private:
  AtomicFile(std::string path, std::string temporary_path, int fd, bool named = true)
      : path_(std::move(path)), temporary_path_(std::move(temporary_path)), fd_(fd), named_(named) {}
  // Gives a file without a name a temporary one.
  absl::Status Name();

  std::string path_;
  std::string temporary_path_;  // see temporary_path()
  int fd_;                      // owned; -1 when closed
  bool named_;                  // whether temporary_path_ is a name in the folder, and not in /proc
};

// Writes `text` as the whole file; errors as above.
absl::Status WriteTextFile(std::string_view text, const std::string& path);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_ATOMIC_FILE_H_
