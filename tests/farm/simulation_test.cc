// SPDX-License-Identifier: Apache-2.0
#include "tests/farm/simulation.h"

#include <gtest/gtest.h>

namespace hone::tracker {
namespace {

class FarmSimulationTest : public testing::TestWithParam<uint64_t> {
 protected:
  static void Check(const Simulation& simulation, const SimulationOptions& options) {
    EXPECT_EQ(simulation.violation, "") << "seed " << options.seed;
    EXPECT_EQ(simulation.jobs_ended, options.jobs) << "seed " << options.seed;
    // A whole batch is leased 3 times, then halved until the killer is isolated. All halves together need no more
    // leases than this.
    EXPECT_LE(simulation.batch_leases_max, 3 * BatchOptions{}.losses_max) << "seed " << options.seed;
  }
};

TEST_P(FarmSimulationTest, CalmFarmMeasuresEverythingOnce) {
  SimulationOptions options;
  options.seed = GetParam();
  Simulation simulation(options);
  simulation.Run();
  Check(simulation, options);
  EXPECT_EQ(simulation.accepted, options.jobs * options.batches_per_job * options.candidates);
  EXPECT_EQ(simulation.lost_candidates, 0);
  EXPECT_EQ(simulation.counters.results_stale(), 0);
  EXPECT_EQ(simulation.batch_leases_max, 1);
}

TEST_P(FarmSimulationTest, BadNetwork) {
  SimulationOptions options;
  options.seed = GetParam();
  options.lose_call = 0.2;
  options.double_call = 0.3;
  options.freeze_agent = 0.02;
  Simulation simulation(options);
  simulation.Run();
  Check(simulation, options);
  EXPECT_EQ(simulation.accepted, options.jobs * options.batches_per_job * options.candidates);
}

TEST_P(FarmSimulationTest, DyingAgentsAndTuners) {
  SimulationOptions options;
  options.seed = GetParam();
  options.lose_call = 0.05;
  options.kill_agent = 0.1;
  options.kill_tuner = 0.005;
  Simulation simulation(options);
  simulation.Run();
  Check(simulation, options);
  EXPECT_LE(simulation.wrongly_lost, simulation.accepted / 20);
}

TEST_P(FarmSimulationTest, KillersAreFoundAndTheOthersAreMeasured) {
  SimulationOptions options;
  options.seed = GetParam();
  options.killer_candidate = 0.01;
  Simulation simulation(options);
  simulation.Run();
  Check(simulation, options);
  EXPECT_EQ(simulation.wrongly_lost, 0);
}

TEST_P(FarmSimulationTest, RestartedTrackerAndJumpingClock) {
  SimulationOptions options;
  options.seed = GetParam();
  options.restart_tracker = 0.0005;
  options.clock_jump = 0.0005;
  options.lose_call = 0.05;
  Simulation simulation(options);
  simulation.Run();
  EXPECT_EQ(simulation.violation, "") << "seed " << options.seed;
  EXPECT_EQ(simulation.jobs_ended, options.jobs) << "seed " << options.seed;
  EXPECT_GT(simulation.restarts, 0);
}

TEST_P(FarmSimulationTest, AgentsThatFailEverythingLoseNoBatch) {
  SimulationOptions options;
  options.seed = GetParam();
  options.agents = 20;
  options.holes = 2;
  options.batches_per_job = 60;
  options.lose_call = 0.05;
  Simulation simulation(options);
  simulation.Run();
  Check(simulation, options);
  EXPECT_EQ(simulation.accepted, options.jobs * options.batches_per_job * options.candidates);
  EXPECT_EQ(simulation.quarantined, options.holes) << "seed " << options.seed;
}

TEST_P(FarmSimulationTest, JobsEndWithRunsOfTheirModels) {
  SimulationOptions options;
  options.seed = GetParam();
  options.agents = 20;
  options.models = true;
  options.lose_call = 0.05;
  options.kill_agent = 0.05;
  options.kill_tuner = 0.02;
  options.restart_tracker = 0.0005;
  Simulation simulation(options);
  simulation.Run();
  EXPECT_EQ(simulation.violation, "") << "seed " << options.seed;
  EXPECT_EQ(simulation.jobs_ended, options.jobs) << "seed " << options.seed;
  EXPECT_GE(simulation.models_run, options.jobs - 1) << "seed " << options.seed << ": one may be given up";
}

TEST_P(FarmSimulationTest, AStandstillOfTheTrackerLosesNoDevice) {
  SimulationOptions options;
  options.seed = GetParam();
  options.stall = 0.002;
  Simulation simulation(options);
  simulation.Run();
  Check(simulation, options);
  EXPECT_EQ(simulation.accepted, options.jobs * options.batches_per_job * options.candidates);
  EXPECT_EQ(simulation.counters.leases_lost(), 0) << "seed " << options.seed;
  EXPECT_EQ(simulation.quarantined, 0) << "seed " << options.seed;
}

INSTANTIATE_TEST_SUITE_P(Seeds, FarmSimulationTest, testing::Range<uint64_t>(1, 6));

TEST(FarmSimulation, ThousandAgents) {
  SimulationOptions options;
  options.agents = 1000;
  options.jobs = 8;
  options.lose_call = 0.02;
  options.kill_agent = 0.02;
  Simulation simulation(options);
  simulation.Run();
  EXPECT_EQ(simulation.violation, "");
  EXPECT_EQ(simulation.jobs_ended, options.jobs);
}

TEST(FarmSimulation, SameSeedSameHistory) {
  SimulationOptions options;
  options.lose_call = 0.1;
  options.kill_agent = 0.05;
  Simulation first(options), second(options);
  first.Run();
  second.Run();
  EXPECT_EQ(first.counters.DebugString(), second.counters.DebugString());
}

}  // namespace
}  // namespace hone::tracker
