#include "transport/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/temporary_folder.h"

namespace hone {
namespace {

using testing::HasSubstr;

TEST(Transport, LoopbackIsRecognised) {
  for (const char* address : {"127.0.0.1:0", "127.9.9.9:80", "localhost:1", "[::1]:50"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  for (const char* address : {"0.0.0.0:0", "[::]:1", "10.0.0.1:1", "example.org:1", "127.evil.org:1",
                              "127.0.0.1.evil:2", ":80", "unix:socket", "unix-abstract:socket"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

TEST(Transport, PlainTextBeyondLoopbackIsRefused) {
  EXPECT_THAT(std::string(OpenChannel("10.0.0.1:1", {}).status().message()), HasSubstr("TLS"));
  EXPECT_THAT(std::string(ListenCredentials("0.0.0.0:0", {}).status().message()), HasSubstr("TLS"));
  EXPECT_TRUE(OpenChannel("127.0.0.1:1", {}).ok());
  EXPECT_TRUE(ListenCredentials("127.0.0.1:0", {}).ok());
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
  EXPECT_THAT(std::string(OpenChannel(address, {"a", "b", "c"}).status().message()), HasSubstr("leave the TLS files"));
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  EXPECT_THAT(std::string(OpenChannel(address, {}).status().message()), HasSubstr("chmod 700"));
}

TEST(Transport, TlsNeedsAllFilesAndReadableOnes) {
  EXPECT_THAT(std::string(OpenChannel("h:1", {"a", "b", ""}).status().message()), HasSubstr("all three"));
  EXPECT_THAT(std::string(ListenCredentials("h:1", {"/none", "/none", "/none"}).status().message()),
              HasSubstr("/none"));
}

TEST(Transport, StatusSurvivesTheTrip) {
  const absl::Status status = absl::AbortedError("lease");
  EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  EXPECT_TRUE(FromGrpc(ToGrpc(absl::OkStatus())).ok());
}

}  // namespace
}  // namespace hone
