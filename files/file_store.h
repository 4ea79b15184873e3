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
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/open_file.h"
#include "files/chunk_list.h"
#include "files/chunks.h"
#include "files/partial_file.h"

namespace hone::files {

// Which files stay.
struct KeepRules {
  int64_t quota = int64_t{16} << 30;  // bytes of all files; a file counts as at least kChunkBytesMin
  // Whether a file that does not fit is refused. False: the quota limits only what may be deleted, so that a file that
  // is needed now always comes in.
  bool refuse_beyond_quota = true;
  int64_t quota_of_owner = INT64_MAX;     // bytes of one owner's files that may not be deleted now
  absl::Duration keep = absl::Hours(24);  // a file is not deleted before it was unused for so long
  // Which of these files may not be deleted now. It is called without locks of the store, and only about files that
  // could be deleted; null = none.
  using InUse = std::function<std::set<std::string>(const std::vector<std::string>& digests)>;
  InUse in_use;
  std::function<absl::Time()> now = absl::Now;
};

class FileStore {
 public:
  // Opens the folder. A missing one is created, without access for other users. Files beyond the quota stay until the
  // next call that deletes some. kFailedPrecondition: another process uses it; kUnavailable: the folder cannot be made
  // or read.
  static absl::StatusOr<std::unique_ptr<FileStore>> Open(std::filesystem::path folder, KeepRules rules);

  struct OfferResult {
    // The chunks to put, one index for each different content, in order. None: the file is complete.
    std::vector<int32_t> missing;
    bool completed = false;  // by this call: all of its chunks are in other files, too
  };
  // Announces a file. Whether complete or partial, it counts as used now. owner: whose quota it counts against, that of
  // the last offer; "" = of none. holder: who offers it; "" = a caller that need not prove to have it. A digest is no
  // secret, so it proves nothing. The digests of several chunks prove that the holder has the file. If the file has one
  // chunk, the result names this chunk as missing, and Put of it is the proof. After the proof Holds is true. Files
  // that were unused for longest are deleted if the quota demands it. An offer with another list of chunks than the
  // last one of the same file starts it anew. kInvalidArgument (CheckDescription), kResourceExhausted (a quota),
  // kDataLoss (as for Put), kUnavailable (the disk is full or fails; nothing of the file is left behind).
  absl::StatusOr<OfferResult> Offer(const FileDescription& file, const std::string& owner = "",
                                    const std::string& holder = "");

  struct PutResult {
    int32_t missing = 0;     // chunks of different contents that are still missing
    bool completed = false;  // by this call
  };
  // Stores one chunk. holder: as for Offer. kNotFound: the file was not offered, or deleted since; kInvalidArgument:
  // the index is out of range or the contents differ from the chunk's digest; kDataLoss: all chunks are right but the
  // file differs from its digest, and it was deleted; kUnavailable: as for Offer.
  absl::StatusOr<PutResult> Put(const std::string& digest, int64_t index, std::string_view contents,
                                const std::string& holder = "");
  // Whether the file is complete and the holder has shown that it has the contents, or AddHolder was called.
  bool Holds(const std::string& digest, const std::string& holder) const;
  // The size of a complete file; nullopt: there is none. It does not count as a use.
  std::optional<int64_t> BytesOf(const std::string& digest) const;
  void AddHolder(const std::string& digest, const std::string& holder);

  // Keeps files from being deleted while it lives; they may come into the store later.
  class Hold {
   public:
    Hold(FileStore& store, std::vector<std::string> digests);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    FileStore& store_;
    const std::vector<std::string> digests_;
  };

  // All three find complete files and count as a use. kNotFound: there is none. A file whose bytes have changed on the
  // disk is deleted and not found: Get compares a chunk's digest, and OpenFile that of the whole file, once in the life
  // of this object.
  absl::StatusOr<FileDescription> Describe(const std::string& digest);
  // The contents of a chunk. kInvalidArgument: the index is out of range.
  absl::StatusOr<std::string> Get(const std::string& digest, int64_t index);
  // The file, open for reading. It can be read also after it was deleted from the folder.
  absl::StatusOr<OpenedFile> OpenFile(const std::string& digest);

  // Copies a file of this machine into the store. Errors as Offer; kNotFound: it cannot be opened; kAborted: it changed
  // meanwhile; kCancelled.
  absl::StatusOr<FileDescription> AddLocal(const std::string& path, const std::string& owner = "",
                                           const std::stop_token& stop = {});

  // Deletes the complete files among these, however lately they were used. A file that is in use stays, and so does one
  // that a holder has who is not `ignored`.
  void DeleteUnlessHeld(const std::vector<std::string>& digests,
                        const std::function<bool(const std::string& holder)>& ignored);

  // Deletes the files beyond the quota that may be deleted. Offer does it, too.
  void DeleteBeyondQuota();

  struct Usage {
    int64_t bytes = 0;    // of complete files, and of the whole of partial ones
    int64_t files = 0;    // complete ones
    int64_t partial = 0;  // partial ones
  };
  Usage usage() const;

 private:
  // A complete file, and a partial one with what the rules need to know about it.
  struct Complete {
    FileDescription file;
    Ownership of;
    absl::Time used;
    absl::Time written;     // the time of use that is on the disk, too
    bool verified = false;  // its whole digest was compared since Open
  };
  struct Partial {
    std::shared_ptr<PartialFile> contents;
    Ownership of;
    absl::Time used;
  };
  // Where a chunk is: in a complete file.
  struct Place {
    std::string digest;  // of the file
    int64_t offset;
  };
  // A file, complete or partial, as the rules see it.
  struct Kept {
    absl::Time used;
    int64_t charge;  // bytes that it counts
    std::string digest, owner;
    bool partial, deletable;
  };

  FileStore(std::filesystem::path folder, KeepRules rules, OpenedFile lock);
  absl::Status ReadFolder();
  absl::Status ReadComplete(const std::string& digest);
  absl::Status ReadPartial(const std::string& digest);

  std::filesystem::path PathOf(const std::string& digest) const;
  std::filesystem::path PartPathOf(const std::string& digest) const;
  std::filesystem::path ListPathOf(const std::string& digest) const;
  // The files that were unused for long enough and are not in use. Takes mutex_, but not while rules_.in_use is asked.
  std::set<std::string> Unneeded() const;
  absl::Duration KeepOfPartial() const;  // as KeepRules::keep

  // Each of these is called with mutex_ held.
  absl::Status WriteList(const FileDescription& file, const Ownership& of);
  std::vector<Kept> ListKept(const std::set<std::string>& unneeded) const;  // unused for longest first
  static int64_t BytesHeldBy(const std::string& owner, const std::vector<Kept>& kept);
  absl::Status MakeRoom(const FileDescription& file, const std::string& owner, const std::set<std::string>& unneeded);
  void DeleteDownTo(int64_t bytes, const std::vector<Kept>& kept);
  // Charges the file to another owner, if that has room. of: whose it was until now.
  void MoveTo(const std::string& owner, const FileDescription& file, const std::set<std::string>& unneeded,
              Ownership& of);
  void AddHolderOf(Complete& complete, const std::string& holder);
  void Touch(const std::string& digest, Complete& complete);
  void Insert(FileDescription file, Ownership of, absl::Time used, bool verified);
  void DeleteComplete(const std::string& digest);
  void DeletePartial(const std::string& digest);

  // The partial file to go on with; null if the file is complete.
  absl::StatusOr<std::shared_ptr<PartialFile>> Begin(const FileDescription& file, const std::string& owner,
                                                     const std::string& holder);
  // The chunk that the holder must send although the file is complete; nullopt: none. kInvalidArgument: the chunks are
  // not those of the complete file.
  absl::StatusOr<std::optional<OfferResult>> AskForProof(const FileDescription& file, const std::string& holder);
  absl::Status CheckCut(const FileDescription& file);
  // Opens a complete file, and says whether its whole digest was compared.
  absl::StatusOr<OpenedFile> OpenStored(const std::string& digest, FileDescription* file, bool* verified);
  absl::Status DeleteDamaged(const std::string& digest);
  // Each of these is called with the partial file's mutex held. A failure deletes it.
  absl::Status Prepare(PartialFile& partial, const std::string& holder);
  absl::Status CopyKnownChunks(PartialFile& partial, const std::string& holder);
  absl::Status Finish(PartialFile& partial);
  absl::Status Failed(PartialFile& partial, absl::Status why);

  const std::filesystem::path folder_;
  const KeepRules rules_;
  const OpenedFile lock_;     // locked, so that no other process opens the folder
  mutable std::mutex mutex_;  // guards what follows. It is never held while a file's bytes are read or written
  std::map<std::string, Complete> complete_;
  std::map<std::string, Partial> partial_;
  std::multimap<Sha256Digest, Place> places_;  // of the chunks of complete files
  std::multiset<std::string> held_;            // digests, by each Hold
};

}  // namespace hone::files

#endif  // HONE_FILES_FILE_STORE_H_
