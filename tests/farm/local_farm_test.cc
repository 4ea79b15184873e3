// The farm of one command, and the other users of the machine it runs on.
#include "cli/local_farm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "base/temporary_folder.h"
#include "hone/v1/admin.grpc.pb.h"
#include "tests/farm/other_user.h"
#include "transport/transport.h"

namespace hone::farm {
namespace {

grpc::Status Ask(const std::string& address, v1::GetFarmResponse* response) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  return v1::AdminService::NewStub(OpenChannel(address, {}).value())->GetFarm(&context, v1::GetFarmRequest(), response);
}

TEST(LocalFarmTest, NoOtherUserReachesIt) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto farm = cli::LocalFarm::Start({.records = folder / "records", .threads = 1, .devices = {"cpu"}});
  ASSERT_TRUE(farm.ok()) << farm.status();
  v1::GetFarmResponse counters;
  EXPECT_TRUE(Ask(farm->address(), &counters).ok());
  const auto socket = SocketPath(farm->address());
  ASSERT_TRUE(socket.has_value()) << farm->address() << " can be reached by every user";
  EXPECT_EQ(std::filesystem::status(socket->parent_path()).permissions(), std::filesystem::perms::owner_all);
  if (geteuid() != 0) GTEST_SKIP() << "only root can try it as another user";
  EXPECT_EQ(WelcomeOf(geteuid(), *socket), Welcome::kServed);
  EXPECT_EQ(WelcomeOf(kNobody, *socket), Welcome::kNoWay);
}

}  // namespace
}  // namespace hone::farm
