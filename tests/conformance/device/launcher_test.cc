// SPDX-License-Identifier: Apache-2.0
// The files that a launcher keeps between the visits of a device with a driver.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <vector>

#include "base/kernel_interface.h"
#include "base/temporary_folder.h"
#include "device_agent/agent/launcher_process.h"
#include "hone/v1/measure.pb.h"
#include "tests/unit/device_agent/hand_made_kernels.h"

namespace hone::agent {
namespace {

v1::Batch BatchOfFakeDevice(const std::vector<std::string>& functions) {
  v1::Batch batch = HandMadeBatch(functions);
  batch.set_artifact("fake");
  const auto interface = [](const std::string& function) { return Print(HandMadeInterface(function, 1, 1)); };
  batch.mutable_reference()->set_interface(interface("reference"));
  for (v1::Candidate& candidate : *batch.mutable_candidates()) {
    candidate.mutable_kernel()->set_interface(interface(candidate.id()));
  }
  return batch;
}

// The batch leaves a file with which the device does not start.
TEST(LauncherTest, DriverCacheIsResetBetweenBatches) {
  const TemporaryFolder parent = TemporaryFolder::Create().value();
  const absl::StatusOr<std::string> folder = MakeLauncherFolder(parent);
  ASSERT_TRUE(folder.ok()) << folder.status();
  v1::Batch batch = BatchOfFakeDevice({"good", "breaks"});
  // The second launcher finds the files that the killed first one left.
  for (int launchers = 0; launchers < 2; ++launchers) {
    Launcher launcher({.device = "fake", .folder = *folder, .program = HONE_FAKE_LAUNCHER_BINARY});
    for (int visit = 0; visit < 3; ++visit) {
      // With a new seed every visit starts a child for the reference too.
      batch.set_fill_seed(batch.fill_seed() + 1);
      const v1::BatchResult result = launcher.Run(batch, std::stop_token());
      ASSERT_EQ(result.error(), "") << "visit " << visit << " of launcher " << launchers;
      ASSERT_EQ(result.outcomes_size(), 2);
      for (const v1::CandidateOutcome& outcome : result.outcomes()) EXPECT_TRUE(outcome.outcome().has_timing());
    }
  }
}

// A device idles as soon as a visit ends, and its clock falls, so sensors must be read before. This batch's kernel is
// only built beside a file that the first reading creates. Without a reading during the visit the kernel hangs.
TEST(LauncherTest, SensorsAreReadWhileTheDeviceWorks) {
  const TemporaryFolder parent = TemporaryFolder::Create().value();
  const absl::StatusOr<std::string> folder = MakeLauncherFolder(parent);
  ASSERT_TRUE(folder.ok()) << folder.status();
  int readings = 0;
  const auto read = [&]() -> Sensors {
    if (readings++ > 0) return {.temperature_c = 50, .clock_mhz = 210};
    std::ofstream(std::filesystem::path(*folder) / "building-another").put('x');
    return {.temperature_c = 61, .clock_mhz = 1755, .slowed_down = true};
  };
  Launcher launcher({.device = "fake",
                     .folder = *folder,
                     .program = HONE_FAKE_LAUNCHER_BINARY,
                     .sensors = read,
                     .reads_sensors_in_visits = true});
  const v1::BatchResult result = launcher.Run(BatchOfFakeDevice({"beside"}), std::stop_token());
  ASSERT_EQ(result.error(), "");
  ASSERT_EQ(result.outcomes_size(), 1);
  ASSERT_TRUE(result.outcomes(0).outcome().has_timing());
  EXPECT_EQ(result.outcomes(0).outcome().timing().temperature_c(), 61);
  EXPECT_EQ(result.outcomes(0).outcome().timing().clock_mhz(), 1755);
  EXPECT_TRUE(launcher.sensors().slowed_down);
}

}  // namespace
}  // namespace hone::agent
