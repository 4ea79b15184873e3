// SPDX-License-Identifier: Apache-2.0
// Floods of connections and large messages, from strangers and from members of the farm: other callers must not notice.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>

#include "absl/time/clock.h"
#include "base/resource_limit.h"
#include "base/temporary_folder.h"
#include "hone/v1/job.grpc.pb.h"
#include "pki/identity_folder.h"
#include "pki/tracker_folder.h"
#include "tests/farm/processes.h"
#include "transport/transport.h"

namespace hone::farm {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class FloodTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Time now = absl::Now();
    ASSERT_TRUE(pki::MakeTrackerFolder(folder_ / "pki", {"localhost"}, now).ok());
    const auto authority = pki::ReadAuthority(folder_ / "pki").value();
    ASSERT_TRUE(pki::IssueIdentity(*authority, folder_ / "client", {Role::kClient, "client"}, "localhost:1", now).ok());
    const std::filesystem::path port = folder_ / "port";
    tracker_ = std::make_unique<Process>(
        std::vector<std::string>{HONE_TRACKER_BINARY, "--listen", "localhost:0", "--records", folder_ / "records",
                                 "--port-file", port, "--pki", folder_ / "pki"},
        folder_ / "tracker.log");
    ASSERT_TRUE(Eventually([&] { return std::ifstream(port).good() || !tracker_->Running(); }));
    std::ifstream(port) >> address_;
    ASSERT_FALSE(address_.empty()) << tracker_->Log();
  }

  // Makes one call over a new connection, as a client that has no part in the flood.
  grpc::Status CallOfAnother() const {
    const auto channel = OpenChannel(address_, pki::FilesIn(folder_ / "client")).value();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    context.set_wait_for_ready(true);
    v1::ListJobsResponse response;
    return v1::JobService::NewStub(channel)->List(&context, v1::ListJobsRequest(), &response);
  }

  double TrackerMegabytes() const {
    std::ifstream status(fmt::format("/proc/{}/status", tracker_->pid()));
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("VmRSS:", 0) == 0) return std::stod(line.substr(6)) / 1024;
    }
    return 0;
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::unique_ptr<Process> tracker_;
  std::string address_;
};

TEST_F(FloodTest, TenThousandIdleConnectionsDoNoHarm) {
  const uint64_t files = RaiseOpenFileLimit();
  const int count = static_cast<int>(std::min<uint64_t>(10'000, files - std::min<uint64_t>(files, 500)));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address_.substr(address_.rfind(':') + 1))));
  std::vector<int> idle;
  for (int i = 0; i < count; ++i) {
    idle.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(idle.back(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0) << i << " connections";
  }
  EXPECT_TRUE(CallOfAnother().ok());
  EXPECT_LT(TrackerMegabytes(), 1000);
  for (const int connection : idle) close(connection);
  EXPECT_TRUE(CallOfAnother().ok());
  EXPECT_TRUE(tracker_->Running()) << tracker_->Log();
}

TEST_F(FloodTest, MessagesOfAHundredMegabytesDoNoHarm) {
  grpc::SslCredentialsOptions options;
  const TlsFiles client = pki::FilesIn(folder_ / "client");
  options.pem_root_certs = ReadFile(client.authority);
  options.pem_private_key = options.pem_cert_chain = ReadFile(client.identity);
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  const auto channel = grpc::CreateCustomChannel(address_, grpc::SslCredentials(options), arguments);
  const grpc::Slice slice(std::string(100 << 20, 'x'));
  for (int i = 0; i < 4; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    std::promise<grpc::Status> done;
    grpc::GenericStub stub(channel);
    stub.UnaryCall(&context, "/hone.v1.JobService/Submit", grpc::StubOptions(), &request, &response,
                   [&done](const grpc::Status& status) { done.set_value(status); });
    EXPECT_EQ(done.get_future().get().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_TRUE(CallOfAnother().ok());
  }
  EXPECT_LT(TrackerMegabytes(), 500);
  EXPECT_TRUE(tracker_->Running()) << tracker_->Log();
}

}  // namespace
}  // namespace hone::farm
