// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/temporary_folder.h"
#include "base/thread_pool.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CpuCoresTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  void PutOfCpu(int cpu, const std::string& file, const std::string& text) {
    Put("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + file, text);
  }
  std::vector<CoreGroup> Find(int cpus) {
    std::vector<int> usable;
    for (int cpu = 0; cpu < cpus; ++cpu) usable.push_back(cpu);
    return FindCoreGroups(usable, root_);
  }
  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::string root_ = folder_ / "";
};

TEST_F(CpuCoresTest, CoresWithoutSpeedsAreOneGroup) {
  ASSERT_EQ(Find(4).size(), 1u);
  EXPECT_THAT(Find(4)[0].cores, ElementsAre(0, 1, 2, 3));
  PutOfCpu(0, "cpu_capacity", "1024");
  PutOfCpu(1, "cpu_capacity", "200");
  EXPECT_EQ(Find(4).size(), 1u) << "of two CPUs nothing is known";
  EXPECT_THAT(FindCoreGroups({}, root_), IsEmpty());
}

TEST_F(CpuCoresTest, CapacityTellsFastCoresFromSlowOnes) {
  const char* capacities[] = {"414", "414", "1024", "871", "1024", "250"};
  for (int cpu = 0; cpu < 6; ++cpu) PutOfCpu(cpu, "cpu_capacity", capacities[cpu]);
  for (int cpu = 0; cpu < 6; ++cpu) PutOfCpu(cpu, "cpufreq/cpuinfo_max_freq", "1800000");
  const std::vector<CoreGroup> groups = Find(6);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_THAT(groups[0].cores, ElementsAre(2, 3, 4)) << "what is nearly as fast goes with the fastest";
  EXPECT_THAT(groups[1].cores, ElementsAre(0, 1));
  EXPECT_THAT(groups[2].cores, ElementsAre(5));
  EXPECT_THAT(FindCoreGroups({0, 1, 5}, root_)[0].cores, ElementsAre(0, 1)) << "only what may be used counts";
}

TEST_F(CpuCoresTest, FallsBackToHighestClock) {
  for (int cpu = 0; cpu < 4; ++cpu) PutOfCpu(cpu, "cpufreq/cpuinfo_max_freq", cpu < 2 ? "1400000" : "2400000");
  const std::vector<CoreGroup> groups = Find(4);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].cores, ElementsAre(2, 3));
}

TEST_F(CpuCoresTest, AHybridProcessorNamesItsKinds) {
  Put("sys/devices/cpu_core/cpus", "0-3");
  Put("sys/devices/cpu_atom/cpus", "4-5");
  for (int cpu = 0; cpu < 6; ++cpu) PutOfCpu(cpu, "cpufreq/cpuinfo_max_freq", cpu < 4 ? "4700000" : "4600000");
  for (int cpu = 0; cpu < 4; ++cpu) PutOfCpu(cpu, "topology/thread_siblings_list", cpu < 2 ? "0-1" : "2-3");
  const std::vector<CoreGroup> groups = Find(6);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].cores, ElementsAre(0, 2)) << "two threads of a core are one core";
  EXPECT_THAT(groups[0].siblings, ElementsAre(1, 3));
  EXPECT_THAT(groups[0].Cpus(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(groups[1].cores, ElementsAre(4, 5));
  EXPECT_THAT(FindCoreGroups({1, 3}, root_)[0].cores, ElementsAre(1, 3)) << "whose first threads may not be used";
}

TEST(ScopedCpuAffinity, RestrictsTheThreadUntilDestruction) {
  std::thread([] {
    const std::vector<int> before = UsableCpus();
    if (before.size() < 2) GTEST_SKIP() << "needs two CPUs";
    {
      const ScopedCpuAffinity last({before.back()});
      EXPECT_THAT(UsableCpus(), ElementsAre(before.back()));
      EXPECT_EQ(ThreadPool(0).threads(), 1);
    }
    EXPECT_EQ(UsableCpus(), before);
    {
      const ScopedCpuAffinity any({});
    }
    EXPECT_EQ(UsableCpus(), before);
    SetCpuAffinity({before.front()});
    EXPECT_THAT(UsableCpus(), ElementsAre(before.front()));
  }).join();
}

}  // namespace
}  // namespace hone
