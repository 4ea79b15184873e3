// SPDX-License-Identifier: Apache-2.0
// The farm that `hone tune` starts for one command, and its protection from other users of the machine.
#include "cli/local_farm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "base/temporary_folder.h"
#include "cli/local_device_monitor.h"
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

// A command must not wait for a device that failed its self-test.
TEST(LocalFarmTest, ABrokenDeviceIsReported) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  std::filesystem::create_symlink(HONE_FAKE_CUDA, folder / "libcuda.so.1");
  const std::pair<const char*, std::string> variables[] = {{"LD_LIBRARY_PATH", folder.path()},
                                                           {"HONE_FAKE_CUDA_BROKEN", "1"}};
  for (const auto& [name, value] : variables) setenv(name, value.c_str(), 1);
  const auto farm = cli::LocalFarm::Start({.records = folder / "records", .threads = 1, .devices = {"cuda"}});
  for (const auto& [name, value] : variables) unsetenv(name);
  ASSERT_TRUE(farm.ok()) << farm.status();
  cli::JobClient client(OpenChannel(farm->address(), {}).value(), farm->address());
  cli::LocalDeviceMonitor device(client, {.failed_test = absl::Milliseconds(200), .quarantine = absl::Hours(1)});
  absl::Status status;
  for (int i = 0; i < 300 && status.ok(); ++i) {
    status = device.Check();
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("local/cuda gets no work: self-test failed: the reference kernel computes a wrong "
                                   "result: the device is broken"));
}

// A command must not wait for a device that this machine lacks. An empty job name is refused, because it would match
// every job in the tracker's list.
TEST(LocalFarmTest, AJobForAnotherDeviceIsReported) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto farm = cli::LocalFarm::Start({.records = folder / "records", .threads = 1, .devices = {"cpu"}});
  ASSERT_TRUE(farm.ok()) << farm.status();
  cli::JobClient client(OpenChannel(farm->address(), {}).value(), farm->address());
  EXPECT_EQ(client.FindJobs("").status().code(), absl::StatusCode::kInvalidArgument);
  // Much longer than a call takes on a busy machine, and shorter than each loop below.
  cli::LocalDeviceMonitor device(client, {.failed_test = absl::Seconds(3), .quarantine = absl::Hours(1)});
  for (int i = 0; i < 80; ++i, absl::SleepFor(absl::Milliseconds(50))) {
    EXPECT_TRUE(device.Check().ok()) << "nothing was heard of any job";
  }
  v1::Job job;
  absl::Status status;
  for (int i = 0; i < 300 && status.ok(); ++i) {
    const char* others[] = {"the next call of local/cpu", "local/cpu, which is offline; wanted: architecture x86_64"};
    job.set_waiting_for(i % 2 == 0 ? "a device for architecture aarch64" : others[i / 2 % 2]);
    device.UpdateJob(job);
    status = i < 200 ? device.Check() : absl::CancelledError("long enough");
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << "it is not always absent: " << status;
  job.set_waiting_for("a device for architecture aarch64");
  status = absl::OkStatus();
  for (int i = 0; i < 300 && status.ok(); ++i) {
    device.UpdateJob(job);
    status = device.Check();
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(status.message()),
      ::testing::HasSubstr(
          "local/cpu cannot run the tuned kernels, which need a device for architecture aarch64; give a --target"));
}

// Reports of a job that had no device are void once a device has registered, even minutes later.
TEST(LocalFarmTest, ALateDeviceIsJudgedByItsOwnState) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string address = "unix:" + (folder / "nobody").string();  // never connected to
  cli::JobClient client(OpenChannel(address, {}).value(), address);
  cli::LocalDeviceMonitor device(client, {.failed_test = absl::Seconds(5), .quarantine = absl::Hours(1)});
  v1::Job job;
  job.set_waiting_for("a device for architecture opencl");
  device.UpdateJob(job);
  const absl::Time comes = SteadyNow() + absl::Minutes(2);
  EXPECT_TRUE(device.CheckAnswer({}, comes).ok());
  v1::ListDevicesResponse known;
  known.add_devices()->set_health(v1::DEVICE_HEALTH_GOOD);
  EXPECT_TRUE(device.CheckAnswer(known, comes + absl::Seconds(1)).ok()) << "it has just come";
  EXPECT_FALSE(device.CheckAnswer(known, comes + absl::Seconds(6)).ok());
}

// An agent that cannot start is not restarted again and again, and the error does not quote output of an earlier agent.
TEST(LocalFarmTest, AnAgentThatCannotStartIsReported) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  for (const char* kind : {"toaster", "kettle"}) {
    auto farm =
        cli::LocalFarm::Start({.records = folder / "records", .threads = 1, .devices = {kind}, .state = folder.path()});
    ASSERT_TRUE(farm.ok()) << farm.status();
    absl::Status status;
    for (int i = 0; i < 600 && status.ok(); ++i) {
      status = farm->Check();
      absl::SleepFor(absl::Milliseconds(50));
    }
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("after 2 restarts"));
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(std::string("'") + kind + "'"));
    if (kind == std::string("kettle")) {
      EXPECT_THAT(std::string(status.message()), ::testing::Not(::testing::HasSubstr("toaster")));
    }
  }
}

// A file size limit stands in for a full disk: neither records nor the log can be written.
TEST(LocalFarmTest, AnUnwritableLogIsReported) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none{0, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const auto farm = cli::LocalFarm::Start({.records = folder / "records", .threads = 1, .state = folder.path()});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(std::string(farm.status().message()), "the tracker ended with status 1; its log " +
                                                      (folder / "hone-tracker.log").string() +
                                                      " could not be written completely: File too large");
}

}  // namespace
}  // namespace hone::farm
