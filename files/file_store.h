// SPDX-License-Identifier: Apache-2.0
// A folder of files that are named by the digests of their contents, within a quota. The tracker's store of the files
// of runs and an agent's cache of packages are both this class.
//
// A file comes in by Offer, which tells the missing chunks, and Put, one chunk at a time. Chunks that other files of
// the store have are copied from these and are not missing. A chunk counts after its digest was compared, and a file
// after the digest of the whole was compared and its bytes are on the disk. After kill -9 at any moment the next Open
// finds complete files and partial ones; the chunks of a partial file are compared again before they count.
//
// In the folder: DIGEST (a complete file), DIGEST.part (a partial one), DIGEST.chunks (the list of its chunks), `lock`.
// One process at a time uses a folder. Thread-safe; calls for different files do not wait for each other's disk or
// digests. Not here: messages and calls of the farm (transfer.h, tracker/file_service.h). Start at Open.
#ifndef HONE_FILES_FILE_STORE_H_
#define HONE_FILES_FILE_STORE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "files/chunks.h"
#include "files/open_file.h"

namespace hone::files {

// Which files stay.
struct KeepRules {
  int64_t quota = int64_t{16} << 30;  // bytes of all files; a file counts as at least kChunkBytesMin
  // Whether a file that does not fit is refused. False: the quota limits only what may be deleted, so that a file that
  // is needed now always comes in.
  bool refuse_beyond_quota = true;
  int64_t quota_of_owner = INT64_MAX;     // bytes of one owner's files that may not be deleted now
  absl::Duration keep = absl::Hours(24);  // a file is not deleted before it was unused for so long
  // The digests of files that may not be deleted now. It is called without locks of the store; null = none.
  std::function<std::set<std::string>()> in_use;
  std::function<absl::Time()> now = absl::Now;
};

class FileStore {
 public:
  // Opens the folder. A missing one is created, without access for other users. kFailedPrecondition: another process
  // uses it; kUnavailable: the folder cannot be made or read.
  static absl::StatusOr<std::unique_ptr<FileStore>> Open(std::filesystem::path folder, KeepRules rules);
  ~FileStore();

  // Announces a file, and returns the indices of the chunks to put, one for each different content. None: the file is
  // complete, and unused since now. owner: whose quota the file counts against, that of the last offer; "" = of none.
  // Files that were unused for longest are deleted if the quota demands it. An offer with another list of chunks than
  // the last one of the same file starts it anew. kInvalidArgument (CheckDescription), kResourceExhausted (a quota),
  // kUnavailable (the disk is full or fails; nothing of the file is left behind).
  absl::StatusOr<std::vector<int32_t>> Offer(const FileDescription& file, const std::string& owner = "");

  struct PutResult {
    int32_t missing = 0;     // chunks of different contents that are still missing
    bool completed = false;  // by this call
  };
  // Stores one chunk. kNotFound: the file was not offered, or deleted since; kInvalidArgument: the index is out of
  // range or the contents differ from the chunk's digest; kDataLoss: all chunks are right but the file differs from its
  // digest, and it was deleted; kUnavailable: as for Offer.
  absl::StatusOr<PutResult> Put(const std::string& digest, int64_t index, std::string_view contents);

  // All three find complete files and count as a use. kNotFound: there is none. A file whose bytes have changed on the
  // disk is deleted and not found: Get compares a chunk's digest, and OpenFile that of the whole file, once in the life
  // of this object.
  absl::StatusOr<FileDescription> Describe(const std::string& digest);
  // The contents of a chunk. kInvalidArgument: the index is out of range.
  absl::StatusOr<std::string> Get(const std::string& digest, int64_t index);
  // The file, open for reading. It can be read also after it was deleted from the folder.
  absl::StatusOr<OpenedFile> OpenFile(const std::string& digest);

  // Copies a file of this machine into the store, without copying its bytes where the file system can share them.
  // Errors as Offer; kNotFound: it cannot be opened; kCancelled.
  absl::StatusOr<FileDescription> AddLocal(const std::string& path, const std::string& owner = "",
                                           const std::stop_token& stop = {});

  // Deletes the files beyond the quota that may be deleted. Offer does it, too.
  void DeleteBeyondQuota();

  struct Usage {
    int64_t bytes = 0;    // of complete files, and of the whole of partial ones
    int64_t files = 0;    // complete ones
    int64_t partial = 0;  // files
  };
  Usage usage() const;

 private:
  class Contents;
  explicit FileStore(std::unique_ptr<Contents> contents);
  const std::unique_ptr<Contents> contents_;
};

}  // namespace hone::files

#endif  // HONE_FILES_FILE_STORE_H_
