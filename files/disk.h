// SPDX-License-Identifier: Apache-2.0
// Reading and writing of files at offsets, and errors of the disk that say what to do. Only for the room `files`.
#ifndef HONE_FILES_DISK_H_
#define HONE_FILES_DISK_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/open_file.h"

namespace hone::files {

// kUnavailable from errno: what could not be done with the file, and what to do if the disk is full. what: "write".
absl::Status DiskError(std::string_view what, const std::filesystem::path& path);

// Opens a file with the flags of open(2). Returns no file if it does not exist; other errors as DiskError.
absl::StatusOr<OpenedFile> OpenIfThere(const std::filesystem::path& path, int flags);
// Creates the file anew, for reading and writing by this user alone.
absl::StatusOr<OpenedFile> CreateFile(const std::filesystem::path& path);

// Reads until `bytes` are read or the file ends, and returns how many; -1: errno says why not.
ptrdiff_t ReadAt(int descriptor, char* to, size_t bytes, int64_t offset);
// False: errno says why.
bool WriteAt(int descriptor, std::string_view bytes, int64_t offset);
// Gives the file its size and its place on the disk, so that a full disk is noticed now. False: errno says why.
bool Reserve(int descriptor, int64_t bytes);
// The SHA-256 of the whole open file, as Hex gives it. path: for the error, as DiskError.
absl::StatusOr<std::string> DigestOf(int descriptor, const std::filesystem::path& path);

// Forces the folder's names to the disk.
absl::Status SyncFolder(const std::filesystem::path& folder);

}  // namespace hone::files

#endif  // HONE_FILES_DISK_H_
