// SPDX-License-Identifier: Apache-2.0
// Files travel to a tracker and from it over gRPC: only chunks that are not there, and once, also over connections that
// are cut.
#include "files/transfer.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/steady_time.h"
#include "base/temporary_folder.h"
#include "hone/v1/file.grpc.pb.h"
#include "tests/farm/relay.h"
#include "tests/unit/files/made_up_files.h"
#include "tracker/callers.h"
#include "tracker/file_service.h"
#include "transport/transport.h"

namespace hone::files {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::shared_ptr<grpc::Channel> ChannelTo(int port) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments);
}

class TransferTest : public testing::Test {
 protected:
  TransferTest() { Start(int64_t{1} << 30); }
  ~TransferTest() override { Stop(); }

  // Starts the tracker's side, with what was stored before.
  void Start(int64_t quota) {
    files_ = tracker::OpenFiles(folder_ / "tracker", quota, nullptr).value();
    // Calls without a certificate are those of the owner, for whom the rights need no farm.
    rights_ = std::make_unique<tracker::FileRights>(nullptr, files_.get());
    Serve(tracker::MakeFileService(files_.get(), rights_.get(), tracker::Callers(nullptr)));
  }
  void Serve(std::unique_ptr<grpc::Service> service) {
    service_ = std::move(service);
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(kMessageBytesMax);
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port_), grpc::InsecureServerCredentials(), &port_);
    server_ = builder.RegisterService(service_.get()).BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void Stop() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    service_.reset();
    files_.reset();
  }
  FileTransfer Transfer(TransferOptions options = {}, int port = 0) {
    const auto channel = ChannelTo(port == 0 ? port_ : port);
    return FileTransfer([channel] { return channel; }, std::move(options));
  }
  TransferOptions Progress() {
    return {.progress = [this](const TransferProgress& progress) { progress_ = progress; }};
  }
  std::string Write(const std::string& contents) {
    WriteBytes(folder_ / "model.hone", contents);
    return folder_ / "model.hone";
  }
  static std::string Stored(FileStore& store, const std::string& digest) {
    const auto file = store.OpenFile(digest);
    return file.ok() ? ReadBytes(file->path()) : "";
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::unique_ptr<FileStore> cache_ = FileStore::Open(folder_ / "cache", {}).value();
  int port_ = 0;
  std::unique_ptr<FileStore> files_;
  std::unique_ptr<tracker::FileRights> rights_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  TransferProgress progress_;
};

TEST_F(TransferTest, AFileGoesThereAndComesBack) {
  const std::string contents = RandomBytes(1, 40 * kMiB);
  const auto name = Transfer(Progress()).Upload(Write(contents));
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->digest(), Sha256Hex(contents));
  EXPECT_EQ(name->bytes(), 40 * kMiB);
  EXPECT_EQ(name->name(), "model.hone");
  EXPECT_EQ(progress_.done, progress_.total);
  EXPECT_EQ(progress_.known, 0);
  EXPECT_EQ(Stored(*files_, name->digest()), contents);
  ASSERT_TRUE(Transfer(Progress()).Download(*name, *cache_).ok());
  EXPECT_EQ(progress_.done, 40 * kMiB);
  EXPECT_EQ(progress_.known, 0);
  EXPECT_EQ(Stored(*cache_, name->digest()), contents);
  std::string written;
  const auto write = [&](std::string_view piece) { return written.append(piece), absl::OkStatus(); };
  ASSERT_TRUE(Transfer(Progress()).DownloadTo(*name, write).ok());
  EXPECT_EQ(written, contents);
  EXPECT_EQ(progress_.done, 40 * kMiB);
}

TEST_F(TransferTest, ChunksThatAreThereDoNotTravel) {
  std::string contents = RandomBytes(1, 32 * kMiB);
  ASSERT_TRUE(Transfer().Download(*Transfer().Upload(Write(contents)), *cache_).ok());
  ASSERT_TRUE(Transfer(Progress()).Upload(Write(contents)).ok());
  EXPECT_EQ(progress_.known, 32 * kMiB) << "the file itself";
  contents.insert(0, RandomBytes(2, 1000)).insert(20 * kMiB, RandomBytes(3, 1000));
  const auto name = Transfer(Progress()).Upload(Write(contents));
  ASSERT_TRUE(name.ok());
  EXPECT_GT(progress_.known, 20 * kMiB) << "a file like it";
  EXPECT_LT(progress_.known, progress_.total);
  EXPECT_EQ(progress_.done, progress_.total);
  progress_ = {};
  ASSERT_TRUE(Transfer(Progress()).Download(*name, *cache_).ok());
  EXPECT_GT(progress_.known, 20 * kMiB);
  EXPECT_EQ(Stored(*cache_, name->digest()), contents);
}

TEST_F(TransferTest, AnEmptyFileTravels) {
  const auto name = Transfer().Upload(Write(""));
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_TRUE(Transfer().Download(*name, *cache_).ok());
  EXPECT_TRUE(Transfer().DownloadTo(*name, [](std::string_view) { return absl::InternalError("called"); }).ok());
}

// Each connection is cut after 6 MiB, in the middle of a message.
TEST_F(TransferTest, AConnectionThatIsCutIsMadeAgain) {
  const std::string contents = RandomBytes(1, 32 * kMiB);
  const farm::Relay relay(port_, -1, {}, 6 * kMiB);
  const auto name = Transfer(Progress(), relay.port()).Upload(Write(contents));
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(Stored(*files_, name->digest()), contents);
  const int connections = relay.connections();
  EXPECT_GE(connections, 5);
  ASSERT_TRUE(Transfer({}, relay.port()).Download(*name, *cache_).ok());
  EXPECT_EQ(Stored(*cache_, name->digest()), contents);
  EXPECT_GE(relay.connections(), connections + 5);
  std::string written;
  const auto write = [&](std::string_view piece) { return written.append(piece), absl::OkStatus(); };
  ASSERT_TRUE(Transfer({}, relay.port()).DownloadTo(*name, write).ok());
  EXPECT_EQ(written, contents);
}

// The tracker is restarted in the middle. What it had does not travel again.
TEST_F(TransferTest, ATransferGoesOnAfterTheTrackerRestarted) {
  const std::string contents = RandomBytes(1, 24 * kMiB);
  bool restarted = false;
  int32_t missing_after = 0;
  TransferOptions options;
  options.progress = [&](const TransferProgress& progress) {
    if (restarted || progress.done < progress.total / 2) return;
    restarted = true;
    Stop();
    Start(int64_t{1} << 30);
    missing_after = static_cast<int32_t>(files_->Offer(DescribeBytes(contents))->missing.size());
  };
  const auto name = Transfer(options).Upload(Write(contents));
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_TRUE(restarted);
  EXPECT_LE(missing_after, 14);
  EXPECT_EQ(Stored(*files_, name->digest()), contents);
}

TEST_F(TransferTest, AnAbsentTrackerIsGivenUpAfterAWhile) {
  Stop();
  const absl::Time begin = SteadyNow();
  const absl::Status gone = Transfer({.patience = absl::Milliseconds(500)}).Upload(Write("contents")).status();
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  EXPECT_THAT(std::string(gone.message()), HasSubstr("nothing listens there"));
  EXPECT_GE(SteadyNow() - begin, absl::Milliseconds(500));
  Start(int64_t{1} << 30);
}

TEST_F(TransferTest, AStopEndsATransferWhichGoesOnLater) {
  const std::string contents = RandomBytes(1, 24 * kMiB);
  std::stop_source stop;
  TransferOptions options{.stop = stop.get_token()};
  options.progress = [&](const TransferProgress& progress) {
    if (progress.done > 0) stop.request_stop();
  };
  EXPECT_TRUE(absl::IsCancelled(Transfer(options).Upload(Write(contents)).status()));
  EXPECT_EQ(files_->usage().partial, 1);
  const auto name = Transfer(Progress()).Upload(Write(contents));
  ASSERT_TRUE(name.ok());
  EXPECT_GT(progress_.known, 0);
  stop = std::stop_source();
  options.stop = stop.get_token();
  EXPECT_TRUE(absl::IsCancelled(Transfer(options).Download(*name, *cache_)));
  ASSERT_TRUE(Transfer(Progress()).Download(*name, *cache_).ok());
  EXPECT_GT(progress_.known, 0);
  EXPECT_EQ(Stored(*cache_, name->digest()), contents);
}

// A tracker that answers no call before the caller goes away.
class HangingTracker final : public v1::FileService::Service {
 public:
  grpc::Status Describe(grpc::ServerContext* context, const v1::DescribeFileRequest*, v1::FileDescription*) override {
    return Hang(*context);
  }
  grpc::Status Offer(grpc::ServerContext* context, const v1::OfferFileRequest*, v1::OfferFileResponse*) override {
    return Hang(*context);
  }

  std::atomic<bool> called = false;
  std::atomic<bool> left = false;  // a caller went away

 private:
  grpc::Status Hang(grpc::ServerContext& context) {
    called = true;
    for (int i = 0; i < 2000 && !context.IsCancelled(); ++i) absl::SleepFor(absl::Milliseconds(10));
    left = context.IsCancelled();
    return {grpc::StatusCode::NOT_FOUND, "the caller waited for 20 s"};
  }
};

TEST_F(TransferTest, ATransferThatHangsEndsAtItsTimeAndAtAStop) {
  Stop();
  auto service = std::make_unique<HangingTracker>();
  HangingTracker& tracker = *service;
  Serve(std::move(service));
  const std::string path = Write("contents");
  v1::FileName name;
  name.set_digest(Sha256Hex("contents"));
  const auto until = [] { return TransferOptions{.until = absl::Now() + absl::Milliseconds(300)}; };
  EXPECT_TRUE(absl::IsDeadlineExceeded(Transfer(until()).Upload(path).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Transfer(until()).Download(name, *cache_)));
  tracker.called = false;
  std::stop_source stop;
  const std::jthread stopper([&] {
    while (!tracker.called) absl::SleepFor(absl::Milliseconds(1));
    stop.request_stop();
  });
  EXPECT_TRUE(absl::IsCancelled(Transfer({.stop = stop.get_token()}).Upload(path).status()));
  server_->Shutdown();  // waits for the calls
  EXPECT_TRUE(tracker.left);
}

TEST_F(TransferTest, AFileThatChangesIsNotStored) {
  const std::string path = Write(RandomBytes(1, 24 * kMiB));
  TransferOptions options;
  options.progress = [&](const TransferProgress& progress) {
    if (progress.done > 0) WriteBytes(path, RandomBytes(2, 24 * kMiB));
  };
  const absl::Status changed = Transfer(options).Upload(path).status();
  EXPECT_TRUE(absl::IsAborted(changed)) << changed;
  EXPECT_EQ(files_->usage().files, 0);
  EXPECT_TRUE(absl::IsNotFound(Transfer().Upload(path + "x").status()));
}

// Another caller offers the same file with other chunks, and the store starts it anew.
TEST_F(TransferTest, APartialFileThatIsDeletedIsOfferedAgain) {
  const std::string contents = RandomBytes(1, 24 * kMiB);
  FileDescription other{Sha256Hex(contents), {}};
  for (size_t at = 0; at < contents.size(); at += kMiB) {
    other.chunks.push_back({Sha256Of(contents.substr(at, kMiB)), kMiB});
  }
  bool offered = false;
  TransferOptions options;
  options.progress = [&](const TransferProgress& progress) {
    if (progress.done == 0 || offered) return;
    offered = true;
    EXPECT_TRUE(files_->Offer(other).ok());
  };
  ASSERT_TRUE(Transfer(options).Upload(Write(contents)).ok());
  EXPECT_TRUE(offered);
  EXPECT_EQ(Stored(*files_, other.digest), contents);
}

TEST_F(TransferTest, AFullStoreRefusesAtOnce) {
  Stop();
  Start(10 * kMiB);
  const absl::Time begin = SteadyNow();
  EXPECT_TRUE(absl::IsResourceExhausted(Transfer().Upload(Write(RandomBytes(1, 11 * kMiB))).status()));
  EXPECT_LT(SteadyNow() - begin, absl::Seconds(20));
}

TEST_F(TransferTest, AFileThatTheTrackerDoesNotHaveIsNotFound) {
  v1::FileName name;
  name.set_digest(Sha256Hex("never stored"));
  EXPECT_TRUE(absl::IsNotFound(Transfer().Download(name, *cache_)));
  const auto write = [](std::string_view) { return absl::OkStatus(); };
  EXPECT_TRUE(absl::IsNotFound(Transfer().DownloadTo(name, write)));
}

TEST_F(TransferTest, AMessageHasLimits) {
  const std::string contents = RandomBytes(1, 40 * kMiB);
  const FileDescription file = *Store(*files_, contents);
  const auto stub = v1::FileService::NewStub(ChannelTo(port_));
  v1::GetChunksRequest get;
  get.set_digest(file.digest);
  for (size_t i = 0; i < file.chunks.size(); ++i) get.add_chunks(static_cast<int32_t>(i));
  v1::GetChunksResponse got;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->Get(&context, get, &got).ok());
  }
  int64_t bytes = 0;
  for (const v1::Chunk& chunk : got.chunks()) bytes += static_cast<int64_t>(chunk.contents().size());
  EXPECT_GT(bytes, kGetBytesMax - kChunkBytesMax);
  EXPECT_LE(bytes, kGetBytesMax);
  const auto code_of_get = [&](int32_t index) {
    grpc::ClientContext context;
    get.clear_chunks();
    get.add_chunks(index);
    return stub->Get(&context, get, &got).error_code();
  };
  EXPECT_EQ(code_of_get(-1), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code_of_get(1000), grpc::StatusCode::INVALID_ARGUMENT);
  const auto code_of_put = [&](const v1::PutChunksRequest& put) {
    grpc::ClientContext context;
    v1::PutChunksResponse response;
    return stub->Put(&context, put, &response).error_code();
  };
  v1::PutChunksRequest put;
  put.set_digest(file.digest);
  EXPECT_EQ(code_of_put(put), grpc::StatusCode::INVALID_ARGUMENT);
  put.add_chunks()->set_contents(std::string(static_cast<size_t>(kPutBytesMax + 1), 'x'));
  EXPECT_EQ(code_of_put(put), grpc::StatusCode::INVALID_ARGUMENT);
  v1::OfferFileRequest offer;
  *offer.mutable_file() = ToProto(file);
  offer.mutable_file()->mutable_chunks(0)->set_digest("short");
  grpc::ClientContext context;
  v1::OfferFileResponse missing;
  EXPECT_EQ(stub->Offer(&context, offer, &missing).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// A tracker that gives wrong answers, as one with a damaged disk or memory.
class WrongTracker final : public v1::FileService::Service {
 public:
  explicit WrongTracker(std::string contents) : contents_(std::move(contents)), file_(DescribeBytes(contents_)) {}
  grpc::Status Describe(grpc::ServerContext*, const v1::DescribeFileRequest* request,
                        v1::FileDescription* response) override {
    *response = ToProto(file_);
    if (lies) response->set_digest(request->digest());
    return grpc::Status::OK;
  }
  grpc::Status Get(grpc::ServerContext*, const v1::GetChunksRequest* request,
                   v1::GetChunksResponse* response) override {
    v1::Chunk* chunk = response->add_chunks();
    chunk->set_index(request->chunks(0));
    chunk->set_contents(ChunkOf(file_, contents_, request->chunks(0)));
    if (wrong-- > 0) (*chunk->mutable_contents())[7] ^= 1;
    return grpc::Status::OK;
  }

  bool lies = false;  // about the digest of the whole
  int wrong = 0;      // so many answers are wrong
 private:
  const std::string contents_;
  const FileDescription file_;
};

TEST_F(TransferTest, WrongAnswersOfATrackerMakeNoFile) {
  const std::string contents = RandomBytes(1, 6 * kMiB);
  Stop();
  auto service = std::make_unique<WrongTracker>(contents);
  WrongTracker& tracker = *service;
  Serve(std::move(service));
  v1::FileName name;
  name.set_digest(Sha256Hex(contents));
  const auto write = [](std::string_view) { return absl::OkStatus(); };
  tracker.wrong = 1'000'000;
  EXPECT_TRUE(absl::IsDataLoss(Transfer().Download(name, *cache_)));
  EXPECT_TRUE(absl::IsDataLoss(Transfer().DownloadTo(name, write)));
  tracker.wrong = 2;
  EXPECT_TRUE(Transfer().Download(name, *cache_).ok()) << "asked again, it was right";
  EXPECT_EQ(Stored(*cache_, name.digest()), contents);
  v1::FileName other;
  other.set_digest(Sha256Hex("another file"));
  EXPECT_TRUE(absl::IsDataLoss(Transfer().Download(other, *cache_)));
  tracker.lies = true;
  EXPECT_TRUE(absl::IsDataLoss(Transfer().Download(other, *cache_)));
  EXPECT_TRUE(absl::IsDataLoss(Transfer().DownloadTo(other, write)));
  EXPECT_EQ(cache_->usage().files, 1);
  EXPECT_EQ(cache_->usage().partial, 0);
}

TEST_F(TransferTest, AnErrorOfTheReceiverEndsADownload) {
  const auto name = Transfer().Upload(Write(RandomBytes(1, 6 * kMiB)));
  const auto full = [](std::string_view) { return absl::UnavailableError("the disk is full"); };
  const absl::Time begin = SteadyNow();
  EXPECT_EQ(Transfer().DownloadTo(*name, full).message(), "the disk is full");
  EXPECT_LT(SteadyNow() - begin, absl::Seconds(20));
}

}  // namespace
}  // namespace hone::files
