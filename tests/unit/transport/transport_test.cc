// SPDX-License-Identifier: Apache-2.0
#include "transport/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/temporary_folder.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

TEST(Transport, PlainTextIsRefusedAlsoOnThisMachine) {
  for (const char* address : {"127.0.0.1:1", "localhost:1", "10.0.0.1:1", "unix:socket", "unix-abstract:socket"}) {
    EXPECT_THAT(std::string(OpenChannel(address, {}).status().message()), HasSubstr("TLS")) << address;
  }
  EXPECT_THAT(std::string(ListenCredentials({}, AnonymousClients::kReject).status().message()), HasSubstr("TLS"));
}

TEST(Transport, AnAddressIsAHostAndAPort) {
  EXPECT_EQ(HostOf("tracker.lab:9190").value_or(""), "tracker.lab");
  EXPECT_EQ(HostOf("[::1]:9190").value_or(""), "::1");
  for (const char* wrong : {"", "localhost", ":9190", "localhost:", "localhost:abc", "localhost:0", "localhost:70000",
                            "localhost:91 ", "unix:relative"}) {
    EXPECT_EQ(HostOf(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(Transport, ASocketIsAPath) {
  EXPECT_EQ(SocketPath("unix:/tmp/socket"), "/tmp/socket");
  EXPECT_EQ(SocketPath("unix:socket"), std::nullopt);
  EXPECT_EQ(SocketPath("127.0.0.1:80"), std::nullopt);
}

// Anybody could listen on a socket in an open folder, and would be sent the code that runs on the agent.
TEST(Transport, ASocketOthersCouldReachIsNotTrusted) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string address = "unix:" + (folder / "socket").string();
  EXPECT_TRUE(OpenChannel(address, {}).ok());
  EXPECT_THAT(std::string(OpenChannel(address, {"a", "b"}).status().message()), HasSubstr("omit --identity"));
  EXPECT_THAT(std::string(OpenChannel(address + ",2", {}).status().message()), HasSubstr("must not contain a comma"));
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  EXPECT_THAT(std::string(OpenChannel(address, {}).status().message()), HasSubstr("chmod 700"));
}

TEST(Transport, TlsNeedsBothFilesAndReadableOnes) {
  EXPECT_THAT(std::string(OpenChannel("h:1", {"a", ""}).status().message()), HasSubstr("join the farm first"));
  EXPECT_THAT(std::string(ListenCredentials({"/none", "/none"}, AnonymousClients::kAccept).status().message()),
              HasSubstr("/none"));
}

TEST(Transport, StatusIsConvertedBothWays) {
  const absl::Status status = absl::AbortedError("lease");
  EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  EXPECT_TRUE(FromGrpc(ToGrpc(absl::OkStatus())).ok());
}

// The texts are those of gRPC 1.51.
TEST(Transport, AConnectionThatCannotBeMadeIsToldInOurWords) {
  const std::string all = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: ";
  const auto told = [](const std::string& text) {
    return std::string(FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, text)).message());
  };
  EXPECT_THAT(told(all + "Failed to connect to remote host: Connection refused"), HasSubstr("nothing listens there"));
  EXPECT_THAT(told(all + "Peer name vm is not in peer certificate"), HasSubstr("--host of hone pki init"));
  EXPECT_THAT(told(all + "Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL routines::certificate verify failed"),
              HasSubstr("--identity DIR"));
  EXPECT_THAT(told("DNS resolution failed for a.b:9: C-ares status is not ARES_SUCCESS: Domain name not found"),
              HasSubstr("no host of that name"));
  EXPECT_EQ(told("the tracker stops"), "the tracker stops");
  const std::string storage = "the tracker cannot store anything now: records.db: No such file or directory";
  EXPECT_EQ(told(storage), storage);
  EXPECT_THAT(std::string(FromGrpc(grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded")).message()),
              HasSubstr("in time"));
}

TEST(Transport, AnUnknownMethodHasAnErrorText) {
  EXPECT_THAT(std::string(FromGrpc({grpc::StatusCode::UNIMPLEMENTED, ""}).message()),
              HasSubstr("does not support this call"));
  EXPECT_EQ(FromGrpc({grpc::StatusCode::UNIMPLEMENTED, "no"}).message(), "no");
}

}  // namespace
}  // namespace hone
