// SPDX-License-Identifier: Apache-2.0
// A file that appears whole or not at all: written without a name, or under a temporary one, in the same folder, then
// renamed.
//
// Unless Commit has succeeded, nothing stays but the old file as it was; where a file must have a name (NFS), that is
// the destructor's work, and a program that is killed leaves the temporary one. A link is followed: what it names is
// replaced. What is no file, as a device or a pipe, is written to as it is, and so is what a shell has opened, as
// /dev/stdout.
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

class AtomicFile {
 public:
  // Errors of all three name the path and the system's reason: NotFound, PermissionDenied, ResourceExhausted (the disk
  // is full), else Unavailable.
  static absl::StatusOr<AtomicFile> Create(const std::string& path);
  absl::Status Write(std::span<const uint8_t> bytes);  // appends
  absl::Status Commit();                               // forces file and folder to disk, renames

  // Empty where there is none: the path itself is written to.
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
  absl::Status Name();  // gives the file without one a temporary name

  std::string path_;
  std::string temporary_path_;  // where it can be opened; empty: there is none, or it was renamed
  int fd_;
  bool named_;
};

// The whole of a file at once; errors as above.
absl::Status WriteTextFile(std::string_view text, const std::string& path);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_ATOMIC_FILE_H_
