#include "base/machine_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(MachineFiles, AMissingFileIsEmpty) { EXPECT_EQ(FirstLine("/no/such/file"), ""); }

}  // namespace
}  // namespace hone
