// SPDX-License-Identifier: Apache-2.0
#include "base/machine_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_folder.h"

namespace hone {
namespace {

TEST(MachineFiles, ListsOfCpus) {
  EXPECT_THAT(ParseCpuList("0-3,8"), testing::ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(ParseCpuList(" 5"), testing::ElementsAre(5));
  EXPECT_THAT(ParseCpuList(""), testing::IsEmpty());
  EXPECT_THAT(ParseCpuList("none,2"), testing::ElementsAre(2));
}

TEST(MachineFiles, Sizes) {
  EXPECT_EQ(ParseSize("512"), 512);
  EXPECT_EQ(ParseSize("48K"), 48 << 10);
  EXPECT_EQ(ParseSize("2M"), 2 << 20);
  EXPECT_EQ(ParseSize(""), 0);
}

TEST(MachineFiles, CpuinfoIsFieldsOfEachCpu) {
  const TemporaryFolder root = TemporaryFolder::Create().value();
  EXPECT_THAT(ReadCpuinfo(root / ""), testing::IsEmpty());
  std::filesystem::create_directory(root / "proc");
  std::ofstream(root / "proc/cpuinfo")
      << "processor\t: 0\nmodel name\t: A: B\nflags\t\t: sse fma sse\npower management:\n\n"
         "processor\t: 3\nCPU part\t: 0xd08\nFeatures\t: fp asimd\n";
  const std::vector<CpuinfoEntry> entries = ReadCpuinfo(root / "");
  ASSERT_THAT(entries, testing::SizeIs(2));
  EXPECT_EQ(entries[0].cpu, 0);
  EXPECT_EQ(entries[0]["model name"], "A: B");
  EXPECT_EQ(entries[0]["power management"], "");
  EXPECT_EQ(entries[0]["CPU part"], "");
  EXPECT_THAT(entries[0].Features(), testing::ElementsAre("fma", "sse"));
  EXPECT_EQ(entries[1].cpu, 3);
  EXPECT_EQ(entries[1]["CPU part"], "0xd08");
  EXPECT_THAT(entries[1].Features(), testing::ElementsAre("asimd", "fp"));
}

TEST(MachineFiles, AMissingFileIsEmpty) { EXPECT_EQ(FirstLine("/no/such/file"), ""); }

}  // namespace
}  // namespace hone
