// SPDX-License-Identifier: Apache-2.0
#include "files/transfer.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include "base/digest.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "files/disk.h"
#include "hone/v1/file.grpc.pb.h"
#include "transport/transport.h"

namespace hone::files {
namespace {

// Bytes of chunks in one message: few at first, and more while calls are quick, so that a slow connection shows
// progress, and loses little when it is cut.
constexpr int64_t kMessageBytesFirst = kChunkBytesMax, kMessageBytesMost = std::min(kPutBytesMax, kGetBytesMax);
constexpr absl::Duration kQuickCall = absl::Seconds(2), kSlowCall = absl::Seconds(10);
constexpr absl::Duration kPauseFirst = absl::Milliseconds(100), kPauseMost = absl::Seconds(2);
// Storing the last chunk reads the whole file once more. A connection that is gone is found out by keep-alive.
constexpr absl::Duration kCallMost = absl::Minutes(10);
constexpr int kDamagedMost = 3;  // times that an answer may differ from its digest

absl::Status Stopped() { return absl::CancelledError("stopped before the file was transferred"); }

absl::Status TooLate() {
  return absl::DeadlineExceededError("the time until which the file was needed was over before it was transferred");
}

// What may be over when the call is made again. An offer is refused for a quota, which is not.
bool MayPass(const absl::Status& status, bool offer) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:  // by a tracker that ends
    case absl::StatusCode::kUnknown:    // a connection that was cut within a call
    case absl::StatusCode::kInternal:
      return true;
    case absl::StatusCode::kResourceExhausted:  // too many calls, or too many large messages at a time
      return !offer;
    default:
      return false;
  }
}

void Sleep(absl::Duration pause, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, absl::ToChronoNanoseconds(pause), [] { return false; });
}

}  // namespace

// The calls of one transfer. A call that fails is made again until there was no progress for long; Put is not, because
// the next message may be shorter.
class FileTransfer::Calls {
 public:
  Calls(const Connect& connect, const TransferOptions& options) : connect_(connect), options_(options) {}

  absl::StatusOr<v1::OfferFileResponse> Offer(const v1::OfferFileRequest& request) {
    while (true) {
      auto answer = Call<v1::OfferFileResponse>(&v1::FileService::Stub::Offer, request);
      if (answer.ok()) return answer;
      HONE_RETURN_IF_ERROR(Recover(answer.status(), /*offer=*/true));
    }
  }
  absl::StatusOr<v1::PutChunksResponse> Put(const v1::PutChunksRequest& request) {
    return Timed(Call<v1::PutChunksResponse>(&v1::FileService::Stub::Put, request));
  }
  absl::StatusOr<FileDescription> Describe(const v1::FileName& file);
  // The contents of the first of the chunks, as many as one message has. Their digests are right.
  absl::StatusOr<v1::GetChunksResponse> Get(const FileDescription& file, const std::vector<int32_t>& indices);

  int64_t message_bytes() const { return message_bytes_; }
  // After a call that failed: OK after a pause if it may be made again.
  absl::Status Recover(const absl::Status& failed, bool offer = false) {
    return MayPass(failed, offer) ? Pause(failed) : failed;
  }
  // Waits before something is tried again. The error ends the transfer: `why` after `patience` without progress.
  absl::Status Pause(const absl::Status& why) {
    HONE_RETURN_IF_ERROR(CheckWanted());
    if (SteadyNow() - progress_at_ > options_.patience) return why;
    Sleep(std::min(pause_, options_.until - absl::Now()), options_.stop);
    pause_ = std::min(2 * pause_, kPauseMost);
    return CheckWanted();
  }

 private:
  // Whether somebody still wants the file.
  absl::Status CheckWanted() const {
    if (options_.stop.stop_requested()) return Stopped();
    return absl::Now() < options_.until ? absl::OkStatus() : TooLate();
  }
  template <typename Response, typename Request>
  absl::StatusOr<Response> Call(grpc::Status (v1::FileService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                              Response*),
                                const Request& request) {
    HONE_RETURN_IF_ERROR(CheckWanted());
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(std::min(absl::Now() + kCallMost, options_.until)));
    const std::stop_callback cancel(options_.stop, [&] { context.TryCancel(); });
    Response response;
    called_at_ = SteadyNow();
    const auto stub = v1::FileService::NewStub(connect_());
    const absl::Status status = FromGrpc((stub.get()->*method)(&context, request, &response));
    if (status.ok()) return response;
    message_bytes_ = kMessageBytesFirst;
    return status;
  }
  // The response of a call that carries chunks, whose time decides how many the next one carries.
  template <typename Response>
  absl::StatusOr<Response> Timed(absl::StatusOr<Response> response) {
    if (!response.ok()) return response;
    progress_at_ = SteadyNow();
    pause_ = kPauseFirst;
    const absl::Duration taken = progress_at_ - called_at_;
    if (taken < kQuickCall) message_bytes_ = std::min(2 * message_bytes_, kMessageBytesMost);
    if (taken > kSlowCall) message_bytes_ = kMessageBytesFirst;
    return response;
  }

  const Connect& connect_;
  const TransferOptions& options_;
  int64_t message_bytes_ = kMessageBytesFirst;
  absl::Time called_at_, progress_at_ = SteadyNow();
  absl::Duration pause_ = kPauseFirst;
  int damaged_ = 0;
};

absl::StatusOr<FileDescription> FileTransfer::Calls::Describe(const v1::FileName& file) {
  v1::DescribeFileRequest request;
  request.set_digest(file.digest());
  while (true) {
    const auto answer = Call<v1::FileDescription>(&v1::FileService::Stub::Describe, request);
    if (!answer.ok()) {
      HONE_RETURN_IF_ERROR(Recover(answer.status()));
      continue;
    }
    HONE_ASSIGN_OR_RETURN(FileDescription description, FromProto(*answer));
    if (description.digest == file.digest()) return description;
    return absl::DataLossError(
        fmt::format("the tracker described file {} instead of {}", answer->digest(), file.digest()));
  }
}

absl::StatusOr<v1::GetChunksResponse> FileTransfer::Calls::Get(const FileDescription& file,
                                                               const std::vector<int32_t>& indices) {
  while (true) {
    v1::GetChunksRequest request;
    request.set_digest(file.digest);
    int64_t bytes = 0;
    for (const int32_t index : indices) {
      bytes += file.chunks[static_cast<size_t>(index)].bytes;
      if (request.chunks_size() > 0 && bytes > message_bytes_) break;
      request.add_chunks(index);
    }
    auto response = Timed(Call<v1::GetChunksResponse>(&v1::FileService::Stub::Get, request));
    if (!response.ok()) {
      HONE_RETURN_IF_ERROR(Recover(response.status()));
      continue;
    }
    bool right = response->chunks_size() > 0 && response->chunks_size() <= request.chunks_size();
    for (int i = 0; right && i < response->chunks_size(); ++i) {
      const v1::Chunk& chunk = response->chunks(i);
      right = chunk.index() == request.chunks(i) &&
              Sha256Of(chunk.contents()) == file.chunks[static_cast<size_t>(chunk.index())].digest;
    }
    if (right) return response;
    if (++damaged_ >= kDamagedMost) {
      return absl::DataLossError(fmt::format(
          "the tracker sent chunks of file {} that differ from their digests, several times; check its disk and memory",
          file.digest));
    }
  }
}

absl::StatusOr<v1::FileName> FileTransfer::Upload(const std::string& path) {
  const OpenedFile source(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (source.descriptor() < 0) {
    return absl::NotFoundError(fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  }
  HONE_ASSIGN_OR_RETURN(const FileDescription file, DescribeFile(source.descriptor(), path, options_.stop));
  v1::FileName name;
  name.set_digest(file.digest);
  name.set_bytes(file.bytes());
  name.set_name(std::filesystem::path(path).filename().string());
  HONE_RETURN_IF_ERROR(Send(file, source, path));
  return name;
}

absl::Status FileTransfer::Send(const FileDescription& file, const OpenedFile& source, const std::string& path) {
  Calls calls(connect_, options_);
  v1::OfferFileRequest offer;
  *offer.mutable_file() = ToProto(file);
  std::optional<Meter> meter;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const v1::OfferFileResponse answer, calls.Offer(offer));
    const std::vector<int32_t> missing(answer.missing().begin(), answer.missing().end());
    for (const int32_t index : missing) HONE_RETURN_IF_ERROR(CheckIndex(file, index));
    if (!meter.has_value()) meter.emplace(file, missing, options_);
    if (missing.empty()) return absl::OkStatus();
    const absl::Status sent = SendMissing(calls, file, missing, source, path, *meter);
    if (sent.ok()) return sent;
    // The store has deleted the partial file meanwhile, or another caller has offered it with other chunks.
    if (!absl::IsNotFound(sent) && !absl::IsInvalidArgument(sent)) return sent;
    HONE_RETURN_IF_ERROR(calls.Pause(sent));
  }
}

absl::Status FileTransfer::SendMissing(Calls& calls, const FileDescription& file, const std::vector<int32_t>& missing,
                                       const OpenedFile& source, const std::string& path, Meter& meter) {
  for (size_t next = 0; next < missing.size();) {
    v1::PutChunksRequest put;
    put.set_digest(file.digest);
    int64_t bytes = 0;
    for (size_t i = next; i < missing.size(); ++i) {
      const ChunkName& chunk = file.chunks[static_cast<size_t>(missing[i])];
      if (put.chunks_size() > 0 && bytes + chunk.bytes > calls.message_bytes()) break;
      bytes += chunk.bytes;
      HONE_ASSIGN_OR_RETURN(std::optional<std::string> contents,
                            ReadChunk(source.descriptor(), path, file, static_cast<size_t>(missing[i])));
      if (!contents.has_value()) {
        return absl::AbortedError(fmt::format("'{}' changed while it was sent; send it again", path));
      }
      v1::Chunk* added = put.add_chunks();
      added->set_index(missing[i]);
      added->set_contents(*std::move(contents));
    }
    const absl::StatusOr<v1::PutChunksResponse> answer = calls.Put(put);
    if (!answer.ok()) {
      HONE_RETURN_IF_ERROR(calls.Recover(answer.status()));
      continue;
    }
    for (const v1::Chunk& chunk : put.chunks()) meter.Add(chunk.index());
    if (answer->missing() == 0) return absl::OkStatus();
    next += static_cast<size_t>(put.chunks_size());
  }
  return absl::NotFoundError("the tracker has forgotten chunks that it had; send the file again");
}

absl::Status FileTransfer::Download(const v1::FileName& name, FileStore& store) {
  if (const auto there = store.Describe(name.digest()); there.ok()) {
    Meter(*there, {}, options_);
    return absl::OkStatus();
  }
  Calls calls(connect_, options_);
  HONE_ASSIGN_OR_RETURN(const FileDescription file, calls.Describe(name));
  std::optional<Meter> meter;
  while (true) {
    HONE_ASSIGN_OR_RETURN(FileStore::OfferResult offer, store.Offer(file));
    if (!meter.has_value()) meter.emplace(file, offer.missing, options_);
    if (offer.missing.empty()) return absl::OkStatus();
    const absl::Status fetched = FetchMissing(calls, file, std::move(offer.missing), store, *meter);
    if (fetched.ok()) return fetched;
    // The store has deleted the partial file meanwhile.
    if (!absl::IsAborted(fetched)) return fetched;
    HONE_RETURN_IF_ERROR(calls.Pause(fetched));
  }
}

absl::Status FileTransfer::FetchMissing(Calls& calls, const FileDescription& file, std::vector<int32_t> missing,
                                        FileStore& store, Meter& meter) {
  while (true) {
    HONE_ASSIGN_OR_RETURN(const v1::GetChunksResponse answer, calls.Get(file, missing));
    for (const v1::Chunk& chunk : answer.chunks()) {
      const absl::StatusOr<FileStore::PutResult> put = store.Put(file.digest, chunk.index(), chunk.contents());
      if (absl::IsNotFound(put.status())) return absl::AbortedError(put.status().message());
      HONE_RETURN_IF_ERROR(put.status());
      meter.Add(chunk.index());
      if (put->missing == 0) return absl::OkStatus();
    }
    missing.erase(missing.begin(), missing.begin() + answer.chunks_size());
    if (missing.empty()) return absl::AbortedError("the store has forgotten chunks that it had");
  }
}

absl::Status FileTransfer::DownloadTo(const v1::FileName& name,
                                      const std::function<absl::Status(std::string_view)>& write) {
  Calls calls(connect_, options_);
  HONE_ASSIGN_OR_RETURN(const FileDescription file, calls.Describe(name));
  std::vector<int32_t> missing(file.chunks.size());
  for (size_t i = 0; i < missing.size(); ++i) missing[i] = static_cast<int32_t>(i);
  Meter meter(file, missing, options_);
  Sha256 sum;
  while (!missing.empty()) {
    HONE_ASSIGN_OR_RETURN(const v1::GetChunksResponse answer, calls.Get(file, missing));
    for (const v1::Chunk& chunk : answer.chunks()) {
      HONE_RETURN_IF_ERROR(write(chunk.contents()));
      sum.Add(chunk.contents());
      meter.Add(chunk.index());
    }
    missing.erase(missing.begin(), missing.begin() + answer.chunks_size());
  }
  if (Hex(sum.Finish()) == file.digest) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("the chunks that the tracker lists for file {} are another file", file.digest));
}

FileTransfer::Meter::Meter(const FileDescription& file, const std::vector<int32_t>& missing,
                           const TransferOptions& options)
    : options_(options) {
  for (const ChunkName& chunk : file.chunks) bytes_[chunk.digest] += chunk.bytes;
  for (const ChunkName& chunk : file.chunks) digests_.push_back(chunk.digest);
  progress_.total = file.bytes();
  progress_.known = progress_.total;
  std::set<Sha256Digest> counted;
  for (const int32_t index : missing) {
    const Sha256Digest& digest = digests_[static_cast<size_t>(index)];
    if (counted.insert(digest).second) progress_.known -= bytes_[digest];
  }
  for (auto content = bytes_.begin(); content != bytes_.end();) {
    content = counted.contains(content->first) ? std::next(content) : bytes_.erase(content);
  }
  progress_.done = progress_.known;
  if (options_.progress) options_.progress(progress_);
}

void FileTransfer::Meter::Add(int32_t index) {
  const auto content = bytes_.find(digests_[static_cast<size_t>(index)]);
  if (content == bytes_.end()) return;
  progress_.done += content->second;
  bytes_.erase(content);
  if (options_.progress) options_.progress(progress_);
}

v1::FileDescription ToProto(const FileDescription& file) {
  v1::FileDescription message;
  message.set_digest(file.digest);
  for (const ChunkName& chunk : file.chunks) {
    v1::ChunkName* added = message.add_chunks();
    added->set_digest(chunk.digest.data(), chunk.digest.size());
    added->set_bytes(chunk.bytes);
  }
  return message;
}

absl::StatusOr<FileDescription> FromProto(const v1::FileDescription& message) {
  FileDescription file{message.digest(), {}};
  file.chunks.reserve(static_cast<size_t>(message.chunks_size()));
  for (const v1::ChunkName& chunk : message.chunks()) {
    ChunkName& added = file.chunks.emplace_back();
    if (chunk.digest().size() != added.digest.size()) {
      return absl::InvalidArgumentError(fmt::format("the digest of chunk {} of file {} has {} bytes instead of {}",
                                                    file.chunks.size() - 1, file.digest, chunk.digest().size(),
                                                    added.digest.size()));
    }
    std::ranges::copy(chunk.digest(), reinterpret_cast<char*>(added.digest.data()));
    added.bytes = chunk.bytes();
  }
  HONE_RETURN_IF_ERROR(CheckDescription(file));
  return file;
}

}  // namespace hone::files
