// SPDX-License-Identifier: Apache-2.0
// What a launcher keeps between the visits of a device with a driver.
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

// The device does not start where the file is that the batch leaves.
TEST(LauncherTest, NothingThatABatchLeavesWithTheDriverMeetsTheNext) {
  const TemporaryFolder parent = TemporaryFolder::Create().value();
  const absl::StatusOr<std::string> folder = MakeLauncherFolder(parent);
  ASSERT_TRUE(folder.ok()) << folder.status();
  v1::Batch batch = BatchOfFakeDevice({"good", "breaks"});
  for (int launchers = 0; launchers < 2; ++launchers) {  // the second finds what the first was killed over
    Launcher launcher({.device = "fake", .folder = *folder, .program = HONE_FAKE_LAUNCHER_BINARY});
    for (int visit = 0; visit < 3; ++visit) {
      batch.set_fill_seed(batch.fill_seed() + 1);  // so that every visit has a child for the reference, too
      const v1::BatchResult result = launcher.Run(batch, std::stop_token());
      ASSERT_EQ(result.error(), "") << "visit " << visit << " of launcher " << launchers;
      ASSERT_EQ(result.outcomes_size(), 2);
      for (const v1::CandidateOutcome& outcome : result.outcomes()) EXPECT_TRUE(outcome.outcome().has_timing());
    }
  }
}

// A device idles, and its clock falls, as soon as a visit has ended. This one has a kernel that is built only beside a
// file, which the first reading leaves: without a reading before its end the visit finds it hanging.
TEST(LauncherTest, SensorsAreReadWhileTheDeviceWorks) {
  const TemporaryFolder parent = TemporaryFolder::Create().value();
  const absl::StatusOr<std::string> folder = MakeLauncherFolder(parent);
  ASSERT_TRUE(folder.ok()) << folder.status();
  int readings = 0;
  const auto read = [&]() -> Sensors {
    if (readings++ > 0) return {50, 210};
    std::ofstream(std::filesystem::path(*folder) / "building-another").put('x');
    return {61, 1755, true};
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
