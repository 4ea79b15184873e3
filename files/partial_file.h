// SPDX-License-Identifier: Apache-2.0
// A file of which some chunks are there, open for writing at its final size. Only for FileStore.
//
// Only state() is thread-safe. FileStore holds `mutex` during every other call. Lock order: `mutex` before FileStore's
// own lock.
#ifndef HONE_FILES_PARTIAL_FILE_H_
#define HONE_FILES_PARTIAL_FILE_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/open_file.h"
#include "files/chunks.h"

namespace hone::files {

class PartialFile {
 public:
  enum class State {
    kOpen,
    kComplete,  // it is a complete file of the store
    kGone,      // it was deleted; what is written to it is lost
  };

  // has_bytes: whether the file was written by another process, so that Prepare has to read it.
  PartialFile(FileDescription file, std::filesystem::path path, OpenedFile opened, bool has_bytes);

  // Reserves the place on the disk, and compares the chunks that are there. Once; later calls do nothing. Errors as
  // DiskError.
  absl::Status Prepare();
  // Writes the chunk, which has that digest, wherever it is missing.
  absl::Status Write(const Sha256Digest& digest, std::string_view contents);
  bool HasAll() const { return missing_.empty(); }
  int32_t missing() const { return static_cast<int32_t>(missing_.size()); }  // different contents
  // The first index of each content that is missing, in order.
  std::vector<int32_t> MissingIndices() const;
  // kDataLoss: the whole differs from its digest. OK: it is right, and its bytes are on the disk.
  absl::Status Finish();

  const FileDescription& file() const { return file_; }
  const std::filesystem::path& path() const { return path_; }
  State state() const { return state_; }
  void set_state(State state) { state_ = state; }

  std::mutex mutex;

 private:
  struct Place {
    int32_t index;
    int64_t offset;
  };

  const FileDescription file_;
  const std::filesystem::path path_;
  const OpenedFile opened_;
  bool has_bytes_, prepared_ = false;
  std::map<Sha256Digest, std::vector<Place>> missing_;  // where the missing contents belong
  std::atomic<State> state_ = State::kOpen;
};

}  // namespace hone::files

#endif  // HONE_FILES_PARTIAL_FILE_H_
