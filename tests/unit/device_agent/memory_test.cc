// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "base/kernel_abi.h"
#include "device_agent/visit/guarded_memory.h"

namespace hone::agent {
namespace {

class GuardedMemoryTest : public testing::TestWithParam<int64_t> {
 protected:
  RegionTable table_;
};

TEST_P(GuardedMemoryTest, WholeBufferIsUsableAndSurroundingsAreWatched) {
  const int64_t bytes = GetParam();
  GuardedBuffer buffer = *GuardedBuffer::Create(table_, "b", bytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
  std::memset(buffer.data(), 1, bytes);
  EXPECT_FALSE(FindOverwrittenByte(buffer.guards()).has_value());
  const char saved = buffer.data()[bytes];
  buffer.data()[bytes] = 0;
  EXPECT_EQ(FindOverwrittenByte(buffer.guards()), 0);
  buffer.data()[bytes] = saved;
  buffer.data()[-1] = 0;
  EXPECT_EQ(FindOverwrittenByte(buffer.guards()), -1);
}

TEST_P(GuardedMemoryTest, PlacesAreLocated) {
  const int64_t bytes = GetParam();
  const GuardedBuffer buffer = *GuardedBuffer::Create(table_, "b", bytes);
  const GuardedBuffer other = *GuardedBuffer::Create(table_, "other", 10);
  const auto after = table_.Locate(buffer.data() + bytes + 5);
  ASSERT_TRUE(after.has_value());
  EXPECT_STREQ(after->region->name, "b");
  EXPECT_EQ(after->place, Place::kAfter);
  EXPECT_EQ(after->distance, 5);
  EXPECT_EQ(table_.Locate(buffer.data() - 3)->place, Place::kBefore);
  if (bytes > 0) {
    EXPECT_EQ(table_.Locate(buffer.data())->place, Place::kInside);
  }
  EXPECT_STREQ(table_.Locate(other.data() + 1)->region->name, "other");
  EXPECT_FALSE(table_.Locate(nullptr).has_value());
}

TEST_P(GuardedMemoryTest, LiesOnWholePagesWhereTheyAreLarge) {
  GuardedBuffer buffer = *GuardedBuffer::Create(table_, "b", GetParam(), kPageBytesMax);
  EXPECT_EQ((buffer.region().body_end - buffer.region().body) % kPageBytesMax, 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.region().body) % kPageBytesMax, 0U);
  EXPECT_FALSE(FindOverwrittenByte(buffer.guards()).has_value());
  EXPECT_TRUE(buffer.OpenGuards().ok());
}

INSTANTIATE_TEST_SUITE_P(Sizes, GuardedMemoryTest, testing::Values(0, 1, 63, 64, 4000, 4096, 100'000, 3 << 20));

TEST(GuardedMemoryDeathTest, GuardsAndReadOnlyBuffersFault) {
  RegionTable table;
  GuardedBuffer buffer = *GuardedBuffer::Create(table, "b", 4096);
  EXPECT_DEATH(buffer.data()[4096 + 8192] = 1, "");
  EXPECT_DEATH(buffer.data()[-8192] = 1, "");
  ASSERT_TRUE(buffer.Protect().ok());
  EXPECT_DEATH(buffer.data()[0] = 1, "");
}

TEST(GuardedMemoryDeathTest, GuardsCanBeReadWhileTheyAreOpen) {
  RegionTable table;
  for (const int64_t bytes : {int64_t{4096}, int64_t{3} << 20}) {
    GuardedBuffer buffer = *GuardedBuffer::Create(table, "b", bytes);
    const auto read = [&](int64_t at) { return *static_cast<volatile const char*>(buffer.data() + at); };
    const int64_t front = -HONE_REACH_BYTES, back = bytes + HONE_REACH_BYTES - 1;
    EXPECT_DEATH(read(front), "");
    ASSERT_TRUE(buffer.OpenGuards().ok());
    EXPECT_EQ(read(front) + read(back), 0);
    EXPECT_DEATH(buffer.data()[front] = 1, "");
  }
}

TEST(GuardedMemory, ImpossibleSizeIsAnError) {
  RegionTable table;
  EXPECT_EQ(GuardedBuffer::Create(table, "b", int64_t{1} << 60).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(GuardedMemory, DestroyedBufferIsForgotten) {
  RegionTable table;
  const char* address = nullptr;
  {
    const GuardedBuffer buffer = *GuardedBuffer::Create(table, "b", 100);
    address = buffer.data();
    EXPECT_TRUE(table.Locate(address).has_value());
  }
  EXPECT_FALSE(table.Locate(address).has_value());
}

}  // namespace
}  // namespace hone::agent
