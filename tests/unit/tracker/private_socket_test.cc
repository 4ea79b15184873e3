// SPDX-License-Identifier: Apache-2.0
#include "tracker/private_socket.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/temporary_folder.h"
#include "hone/v1/admin.grpc.pb.h"
#include "tests/farm/other_user.h"
#include "transport/transport.h"

namespace hone::tracker {
namespace {

using farm::kNobody;
using farm::Welcome;
using farm::WelcomeOf;
using ::testing::HasSubstr;

// A server that only shows which users can speak with it.
class Served {
 public:
  explicit Served(const std::filesystem::path& path) : socket_(PrivateSocket::Listen(path).value()) {
    server_ = grpc::ServerBuilder().RegisterService(&service_).BuildAndStart();
    socket_->Serve(server_.get());
  }
  ~Served() {
    socket_->Stop();
    server_->Shutdown(std::chrono::system_clock::now());
  }

 private:
  std::unique_ptr<PrivateSocket> socket_;
  v1::AdminService::Service service_;
  std::unique_ptr<grpc::Server> server_;
};

class PrivateSocketTest : public testing::Test {
 protected:
  static std::string Problem(const std::filesystem::path& path) {
    return std::string(PrivateSocket::Listen(path).status().message());
  }
  bool Connects() const {
    return OpenChannel("unix:" + path_.string(), {})
        .value()
        ->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10));
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::filesystem::path path_ = folder_ / "a socket #1; 50%25 of what?";
};

TEST_F(PrivateSocketTest, ItsOwnUserIsServed) {
  {
    const Served served(path_);
    EXPECT_TRUE(Connects());
    EXPECT_TRUE(Connects());
    EXPECT_EQ(WelcomeOf(geteuid(), path_), Welcome::kServed);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(PrivateSocketTest, AnotherUserIsRefusedTwice) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can try it as another user";
  const Served served(path_);
  EXPECT_EQ(WelcomeOf(kNobody, path_), Welcome::kNoWay);
  // The permissions of the folder no longer protect the socket, so the server must check the user itself.
  ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  EXPECT_EQ(WelcomeOf(kNobody, path_), Welcome::kClosed);
  EXPECT_EQ(WelcomeOf(geteuid(), path_), Welcome::kServed);
}

TEST_F(PrivateSocketTest, TheSocketOfAKilledProcessIsReplacedButNotOfALiveOne) {
  sockaddr_un address{AF_UNIX, {}};
  std::strcpy(address.sun_path, path_.c_str());
  const int left_behind = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(left_behind, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(left_behind);
  const Served served(path_);
  EXPECT_THAT(Problem(path_), HasSubstr("in use"));
  EXPECT_TRUE(Connects());
}

TEST_F(PrivateSocketTest, OpenFoldersAndLongPathsAreRefused) {
  EXPECT_THAT(Problem(folder_ / std::string(200, 'x')), HasSubstr("TMPDIR"));
  ASSERT_EQ(chmod(folder_.path().c_str(), 0750), 0);
  EXPECT_THAT(Problem(path_), HasSubstr("chmod 700"));
}

}  // namespace
}  // namespace hone::tracker
