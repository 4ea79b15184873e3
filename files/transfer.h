// SPDX-License-Identifier: Apache-2.0
// Sends files to a tracker and fetches files from it (FileService, file.proto), for commands and agents.
//
// Only chunks that the other side lacks travel. A call that fails because the connection is cut, or because a side has
// no disk at the moment, is made again; the transfer resumes where it was. Everything ends early, also a call that
// hangs: with kCancelled after a stop, and with kDeadlineExceeded at TransferOptions::until. Blocks its thread; one
// object serves one thread at a time. Start with FileTransfer.
#ifndef HONE_FILES_TRANSFER_H_
#define HONE_FILES_TRANSFER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "files/chunks.h"
#include "files/file_store.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/file.pb.h"

namespace hone::files {

// Bytes of chunks in one call of FileService (file.proto). An answer is shorter than a request may be, because many
// agents may fetch one package at a time.
inline constexpr int64_t kPutBytesMax = int64_t{32} << 20, kGetBytesMax = int64_t{16} << 20;

struct TransferProgress {
  int64_t done = 0;   // bytes that the receiver has
  int64_t total = 0;  // bytes of the file
  int64_t known = 0;  // the part of `done` that the receiver had before, and that did not travel
};

struct TransferOptions {
  std::stop_token stop;
  absl::Time until = absl::InfiniteFuture();              // by the wall clock; the transfer is of no use afterwards
  absl::Duration patience = absl::Minutes(1);             // how long to go on without any progress
  std::function<void(const TransferProgress&)> progress;  // called after each message; null = none
};

class FileTransfer {
 public:
  // Returns the channel to the tracker. It is called for every call, because a program whose certificate is renewed
  // gets a new channel (pki::FarmLink).
  using Connect = std::function<std::shared_ptr<grpc::Channel>()>;

  explicit FileTransfer(Connect connect, TransferOptions options = {})
      : connect_(std::move(connect)), options_(std::move(options)) {}

  // Sends the file at `path`, and returns its name. kNotFound: it cannot be opened; kAborted: it changed meanwhile;
  // kUnavailable: the tracker was not reached for `patience`, or has no disk; kResourceExhausted, kPermissionDenied:
  // the tracker refuses it.
  absl::StatusOr<v1::FileName> Upload(const std::string& path);
  // Makes the file complete in the store. At once if it is. kNotFound: the tracker does not have it; errors of
  // FileStore::Offer; kUnavailable, kDataLoss: the tracker sent something else, also when asked again.
  absl::Status Download(const v1::FileName& file, FileStore& store);
  // Gives the contents to `write` piece by piece, in order. Their digest is known to be right only when this returns
  // OK, so `write` should write into a file that appears later (package::AtomicFile). Errors as Download, and those of
  // `write`, which end the transfer.
  absl::Status DownloadTo(const v1::FileName& file, const std::function<absl::Status(std::string_view)>& write);

 private:
  class Calls;
  // Counts the bytes of the different contents of a file, and reports them.
  class Meter {
   public:
    // missing: indices of chunks that are to travel.
    Meter(const FileDescription& file, const std::vector<int32_t>& missing, const TransferOptions& options);
    void Add(int32_t index);  // the chunk has travelled; again: it counts once

   private:
    const TransferOptions& options_;
    std::vector<Sha256Digest> digests_;      // of all chunks
    std::map<Sha256Digest, int64_t> bytes_;  // of contents that have not travelled yet, wherever they are in the file
    TransferProgress progress_;
  };
  absl::Status Send(const FileDescription& file, const OpenedFile& source, const std::string& path);
  static absl::Status SendMissing(Calls& calls, const FileDescription& file, const std::vector<int32_t>& missing,
                                  const OpenedFile& source, const std::string& path, Meter& meter);
  static absl::Status FetchMissing(Calls& calls, const FileDescription& file, std::vector<int32_t> missing,
                                   FileStore& store, Meter& meter);

  const Connect connect_;
  const TransferOptions options_;
};

// Values of files/chunks.h as messages. Of a message: kInvalidArgument, also as CheckDescription.
v1::FileDescription ToProto(const FileDescription& file);
absl::StatusOr<FileDescription> FromProto(const v1::FileDescription& file);

}  // namespace hone::files

#endif  // HONE_FILES_TRANSFER_H_
