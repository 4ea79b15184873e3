// SPDX-License-Identifier: Apache-2.0
#include "base/control_groups.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "base/temporary_folder.h"

namespace hone {
namespace {

TEST(ControlGroups, CpuQuotaIsTheSmallestOfAllGroups) {
  constexpr double kAll = std::numeric_limits<double>::infinity();
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto put = [&](const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  };
  const auto cpus = [&] { return ProcessCpuQuota(folder / ""); };
  const std::string groups = "sys/fs/cgroup/";
  EXPECT_EQ(cpus(), kAll);
  put("proc/self/cgroup", "0::/service/hone-agent.service");
  put(groups + "service/hone-agent.service/cpu.max", "max 100000");
  EXPECT_EQ(cpus(), kAll);
  put(groups + "service/cpu.max", "250000 100000");
  EXPECT_EQ(cpus(), 2.5);
  put(groups + "service/hone-agent.service/cpu.max", "50000 100000");
  EXPECT_EQ(cpus(), 0.5);
  put("proc/self/cgroup", "5:cpu,cpuacct:/");
  put(groups + "cpu/cpu.cfs_quota_us", "-1");
  put(groups + "cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cpus(), kAll);
  put(groups + "cpu/cpu.cfs_quota_us", "300000");
  EXPECT_EQ(cpus(), 3);
}

TEST(ControlGroups, MemoryIsTheSmallestOfAllGroups) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string root = folder / "";
  const auto put = [&](const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  const std::string groups = "sys/fs/cgroup/";
  const int64_t installed = UsableMemory(root);
  EXPECT_GT(installed, 0);
  put("proc/self/cgroup", "0::/service/inner/hone-7-cpu\n");
  put(groups + "service/inner/hone-7-cpu/memory.max", "1000000\n");
  put(groups + "service/inner/memory.max", "max\n");
  EXPECT_EQ(UsableMemory(root), installed) << "a launcher's part is no limit of its agent's";
  put(groups + "service/memory.max", "50000000\n");
  EXPECT_EQ(UsableMemory(root), 50'000'000) << "of a group above";
  put(groups + "memory.max", "40000000\n");
  EXPECT_EQ(UsableMemory(root), 40'000'000) << "of a container";
  put("proc/self/cgroup", "9:cpuset:/docker/1\n4:memory:/docker/1\n");
  put(groups + "memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(UsableMemory(root), installed);
  put(groups + "memory/memory.limit_in_bytes", "30000000\n");
  EXPECT_EQ(UsableMemory(root), 30'000'000);
  put(groups + "memory/docker/1/memory.limit_in_bytes", "20000000\n");
  EXPECT_EQ(UsableMemory(root), 20'000'000);
}

}  // namespace
}  // namespace hone
