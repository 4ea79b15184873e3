// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/result_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "device_agent/launcher/reference_cache.h"
#include "tests/unit/device_agent/hand_made_kernels.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;

class ResultMemoryTest : public testing::Test {
 protected:
  ResultMemoryTest() {
    batch_.buffers = {{"x", BufferRole::kInput, "f32", 1000, 4000, -1, 1},
                      {"w", BufferRole::kConstant, "f32", 1000, 4000, -1, 1},
                      {"y", BufferRole::kOutput, "f32", 1000, 4000}};
    batch_.reference = {HandMadeInterface("reference")};
    batch_.candidates = {{"packed_double", {HandMadeInterface("packed_double")}}};
    batch_.tolerance = {1e-5, 1e-6};
  }
  const KernelInterface& reference() const { return batch_.reference.interface; }

  VisitBatch batch_;
  const std::string zone_ = std::string(64, kGuardPattern);
  const GuardZones intact_{{zone_.data(), 64}, {zone_.data(), 64}};
};

TEST_F(ResultMemoryTest, MissingOrSmallZonesAreAFailure) {
  ResultMemory result_memory = ResultMemory::Create(batch_).value();
  result_memory.ClearGuards();
  EXPECT_THAT(result_memory.CheckGuards(reference()).value().text, HasSubstr("tampered"));
  result_memory.StoreGuards("output 'y'", intact_);
  EXPECT_FALSE(result_memory.CheckGuards(reference()).has_value());
  EXPECT_TRUE(result_memory.CheckGuards(batch_.candidates[0].kernel.interface).has_value())
      << "it has a packed buffer too";
  result_memory.ClearGuards();
  result_memory.StoreGuards("output 'y'", {{zone_.data(), 1}, {zone_.data(), 64}});
  EXPECT_THAT(result_memory.CheckGuards(reference()).value().text, HasSubstr("tampered"));
}

TEST_F(ResultMemoryTest, ChangedBytesAreFoundOnBothSides) {
  ResultMemory result_memory = ResultMemory::Create(batch_).value();
  std::string changed = zone_;
  changed[60] = 0;
  result_memory.ClearGuards();
  result_memory.StoreGuards("output 'y'", {{changed.data(), 64}, {zone_.data(), 64}});
  EXPECT_EQ(result_memory.CheckGuards(reference()).value().text, "wrote 4 bytes before output 'y'");
  result_memory.ClearGuards();
  result_memory.StoreGuards("output 'y'", {{zone_.data(), 64}, {changed.data(), 64}});
  EXPECT_EQ(result_memory.CheckGuards(reference()).value().text, "wrote 61 bytes past the end of output 'y'");
}

TEST_F(ResultMemoryTest, OutputsAreErasedAfterComparison) {
  ResultMemory result_memory = ResultMemory::Create(batch_).value();
  const std::vector<float> y(1000, 2.5F);
  const char* const bytes = reinterpret_cast<const char*>(y.data());
  double max_error = 0;
  memcpy(result_memory.OutputBytes(2).data(), bytes, 4000);
  EXPECT_FALSE(result_memory.CompareOutputs(bytes, max_error).has_value());
  EXPECT_THAT(result_memory.CompareOutputs(bytes, max_error).value().text, HasSubstr("element 0 is nan"));
  memcpy(result_memory.OutputBytes(2).data(), bytes, 4000);
  std::vector<float> taken(1008);  // blocks end at multiples of HONE_BUFFER_ALIGNMENT
  result_memory.MoveOutputs(reinterpret_cast<char*>(taken.data()));
  taken.resize(1000);
  EXPECT_EQ(taken, y);
  EXPECT_TRUE(result_memory.CompareOutputs(bytes, max_error).has_value()) << "a later child could show the reference's";
}

TEST_F(ResultMemoryTest, ChildrenDoNotInheritReferenceOutputs) {
  const ReferenceData data = ReferenceCache::Prepare(batch_).value();
  memset(data.outputs.data(), 1, 4000);
  const pid_t pid = fork();
  constexpr int kRead = 42;  // exit status; a crash has another, and with a sanitizer that of a crash
  if (pid == 0) _exit(*const_cast<const volatile char*>(data.outputs.data()) == 1 ? kRead : 0);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(!WIFEXITED(status) || WEXITSTATUS(status) != kRead) << "it read them";
}

TEST_F(ResultMemoryTest, CacheLimitsOpenFiles) {
  const auto open_files = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = open_files();
  ReferenceCache cache(1 << 30);
  for (VisitBuffer& buffer : batch_.buffers) {
    buffer.elements = 16;
    buffer.bytes = 64;
  }
  for (int i = 0; i < 2000; ++i) {
    batch_.workload_digest = std::to_string(i);
    absl::StatusOr<ReferenceData> data = ReferenceCache::Prepare(batch_);
    ASSERT_TRUE(data.ok()) << data.status();
    cache.Add(batch_, *std::move(data));
  }
  EXPECT_LE(open_files(), before + 256);
  EXPECT_NE(cache.Find(ReferenceCache::KeyOf(batch_)), nullptr);
  batch_.workload_digest = "0";
  EXPECT_EQ(cache.Find(ReferenceCache::KeyOf(batch_)), nullptr);
}

TEST_F(ResultMemoryTest, InputsAreSealed) {
  const ReferenceData data = ReferenceCache::Prepare(batch_).value();
  EXPECT_EQ(pwrite(data.inputs.descriptor(), "x", 1, 0), -1);
  EXPECT_EQ(ftruncate(data.inputs.descriptor(), 1), -1);
  EXPECT_FALSE(data.inputs.Map(MemoryFile::Access::kReadAndWrite).ok());
  EXPECT_TRUE(data.inputs.Map(MemoryFile::Access::kRead).ok());
}

TEST_F(ResultMemoryTest, AChildMapsTheFileAndCannotShrinkIt) {
  ResultMemory result_memory = ResultMemory::Create(batch_).value();
  EXPECT_EQ(ftruncate(result_memory.file().descriptor(), 1), -1) << "the launcher would crash";
  const std::vector<float> y(1000, 2.5F);
  const char* const bytes = reinterpret_cast<const char*>(y.data());
  memcpy(ResultMemory::Open(batch_, MemoryFile(dup(result_memory.file().descriptor()))).value().OutputBytes(2).data(),
         bytes, 4000);
  double max_error = 0;
  EXPECT_FALSE(result_memory.CompareOutputs(bytes, max_error).has_value());
  EXPECT_FALSE(ResultMemory::Open(batch_, MemoryFile::Create("short", 10).value()).ok());
}

}  // namespace
}  // namespace hone::agent
