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

}  // namespace
}  // namespace hone
