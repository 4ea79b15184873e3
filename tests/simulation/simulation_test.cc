// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "base/temporary_folder.h"
#include "device_agent/agent/outbox.h"
#include "device_agent/agent/sync_loop.h"
#include "tests/simulation/world.h"

namespace hone::simulation {
namespace {

// Returns the digest, the number of leases and all notes of a simulation, as text.
std::string Simulated(uint64_t seed, const std::filesystem::path& folder) {
  const Verdict verdict = Simulate(seed, folder, false);
  return fmt::format("{:016x} {} leases\n{}\n", verdict.digest, verdict.leases, fmt::join(verdict.notes, "\n"));
}

TEST(SeedTest, OneSeedDecidesEverything) {
  const TemporaryFolder here = TemporaryFolder::Create().value(), there = TemporaryFolder::Create().value();
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const std::string first = Simulated(seed, here / "farm");
    EXPECT_EQ(first, Simulated(seed, there / "farm")) << "seed " << seed;
    EXPECT_EQ(first.find(" 0 leases"), std::string::npos) << "seed " << seed;
  }
  constexpr size_t kDigest = 16;  // characters in front
  EXPECT_NE(Simulated(1, here / "farm").substr(0, kDigest), Simulated(2, here / "farm").substr(0, kDigest));
}

using ::testing::HasSubstr;

// Runs `body` as a program of a world. Returns the violation, "" if there was none.
std::string ViolationOf(uint64_t seed, const std::function<void(World&)>& body) {
  World world(seed);
  world.Spawn(std::make_shared<Process>(Process{.name = "program"}), [&] { body(world); });
  world.Run();
  return world.violation();
}

TEST(WorldTest, TimePassesForSimulatedThreadsOnly) {
  const auto begun = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration slept{};
  EXPECT_EQ(ViolationOf(1,
                        [&](World&) {
                          const auto before = std::chrono::steady_clock::now();
                          std::thread([] { std::this_thread::sleep_for(std::chrono::hours(10)); }).join();
                          slept = std::chrono::steady_clock::now() - before;
                        }),
            "");
  EXPECT_GE(slept, std::chrono::hours(10));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::hours(1));
}

TEST(WorldTest, EarlierSeedsDoNotChangeARun) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::once_flag once;
    std::mutex mutex;
    const auto lock_often = [&] {
      for (int i = 0; i < 10; ++i) const std::lock_guard lock(mutex);
    };
    const auto run = [&] {
      World world(seed);
      const auto process = std::make_shared<Process>(Process{.name = "program"});
      for (int i = 0; i < 2; ++i) {
        world.Spawn(process, [&] {
          std::call_once(once, lock_often);
          lock_often();
        });
      }
      world.Run();
      EXPECT_EQ(world.violation(), "");
      return world.digest();
    };
    const uint64_t first = run();
    EXPECT_EQ(run(), first) << "seed " << seed;
  }
}

TEST(WorldTest, ThreadsThatWaitForEachOtherAreFound) {
  std::mutex mutex;
  std::condition_variable never;
  EXPECT_THAT(ViolationOf(1,
                          [&](World&) {
                            std::unique_lock lock(mutex);
                            never.wait(lock, [] { return false; });
                          }),
              HasSubstr("wait for each other"));
}

// The check happens before the lock, as in a lost wake-up: in some seeds the other thread runs in between.
TEST(WorldTest, EveryOrderOfTwoThreadsOccurs) {
  int first = 0, second = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    std::mutex mutex;
    std::string order;
    ViolationOf(seed, [&](World&) {
      const auto write = [&](char who) {
        const std::lock_guard lock(mutex);
        order += who;
      };
      std::thread a([&] { write('a'); }), b([&] { write('b'); });
      a.join();
      b.join();
    });
    ++(order == "ab" ? first : second);
  }
  EXPECT_GT(first, 20);
  EXPECT_GT(second, 20);
}

// The tracker measures an agent's silence from the time of its answer, so the agent must not start at the answer's
// arrival.
TEST(SimulationTest, ADelayedAnswerDoesNotProlongTheFence) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  absl::Duration given, stopped;
  const auto play = [&](World& world) {
    agent::SyncLoop* running = nullptr;
    agent::ServedDevice device;
    device.state.set_device_id("d0");
    device.measure = [&](const v1::Batch&, const std::stop_token& stop) {
      while (!stop.stop_requested()) world.Sleep(absl::Milliseconds(1));
      stopped = world.now();
      running->Stop();
      return v1::BatchResult();
    };
    int calls = 0;
    const auto synchronize = [&](const v1::SynchronizeRequest& request,
                                 const std::stop_token&) -> absl::StatusOr<v1::SynchronizeResponse> {
      v1::SynchronizeResponse response;
      response.set_epoch(1);
      response.mutable_fence_after()->set_seconds(15);
      if (++calls == 1 || request.leaving()) return response;
      if (calls > 2) {
        world.Sleep(absl::Seconds(60));
        return absl::UnavailableError("the line is cut");
      }
      world.Sleep(absl::Seconds(18));
      given = world.now();
      response.mutable_held()->set_seconds(18);
      v1::Lease& lease = *response.add_leases();
      lease.mutable_reference()->set_lease_id("lease");
      lease.mutable_reference()->set_epoch(1);
      lease.set_device_id("d0");
      world.Sleep(absl::Seconds(10));
      return response;
    };
    std::vector<agent::ServedDevice> devices;
    devices.push_back(std::move(device));
    agent::SyncLoop loop({"agent", "boot", "version"}, synchronize, std::move(devices),
                         agent::Outbox::Open(folder / "outbox").value());
    running = &loop;
    EXPECT_EQ(loop.Run(), absl::OkStatus());
  };
  EXPECT_EQ(ViolationOf(1, play), "");
  EXPECT_GT(stopped, given + absl::Seconds(10));
  EXPECT_LE(stopped, given + absl::Seconds(15) + absl::Milliseconds(10));
}

}  // namespace
}  // namespace hone::simulation
