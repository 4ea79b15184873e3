// SPDX-License-Identifier: Apache-2.0
#include "files/partial_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "files/disk.h"

namespace hone::files {

PartialFile::PartialFile(FileDescription file, std::filesystem::path path, OpenedFile opened, bool has_bytes)
    : file_(std::move(file)), path_(std::move(path)), opened_(std::move(opened)), has_bytes_(has_bytes) {
  int64_t offset = 0;
  for (size_t i = 0; i < file_.chunks.size(); ++i) {
    missing_[file_.chunks[i].digest].push_back({static_cast<int32_t>(i), offset});
    offset += file_.chunks[i].bytes;
  }
}

absl::Status PartialFile::Prepare() {
  if (prepared_) return absl::OkStatus();
  if (!Reserve(opened_.descriptor(), file_.bytes())) return DiskError("write", path_);
  for (auto missing = missing_.begin(); has_bytes_ && missing != missing_.end();) {
    const auto& [digest, places] = *missing;
    std::string contents(static_cast<size_t>(file_.chunks[places.front().index].bytes), '\0');
    bool right = true;
    for (const Place& place : places) {
      if (ReadAt(opened_.descriptor(), contents.data(), contents.size(), place.offset) < 0) {
        return DiskError("read", path_);
      }
      right = right && Sha256Of(contents) == digest;
    }
    missing = right ? missing_.erase(missing) : std::next(missing);
  }
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status PartialFile::Write(const Sha256Digest& digest, std::string_view contents) {
  const auto missing = missing_.find(digest);
  if (missing == missing_.end()) return absl::OkStatus();
  for (const Place& place : missing->second) {
    if (!WriteAt(opened_.descriptor(), contents, place.offset)) return DiskError("write", path_);
  }
  missing_.erase(missing);
  return absl::OkStatus();
}

std::vector<int32_t> PartialFile::MissingIndices() const {
  std::vector<int32_t> indices;
  for (const auto& [digest, places] : missing_) indices.push_back(places.front().index);
  std::ranges::sort(indices);
  return indices;
}

absl::Status PartialFile::Finish() {
  HONE_ASSIGN_OR_RETURN(const std::string digest, DigestOf(opened_.descriptor(), path_));
  if (digest != file_.digest) {
    return absl::DataLossError(fmt::format(
        "the chunks of file {} are right, but the whole has the digest {}; describe the file anew and send it again",
        file_.digest, digest));
  }
  return fsync(opened_.descriptor()) == 0 ? absl::OkStatus() : DiskError("write", path_);
}

}  // namespace hone::files
