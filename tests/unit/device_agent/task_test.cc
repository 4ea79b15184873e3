// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/task.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/device_agent/hand_made_kernels.h"

namespace hone::agent {
namespace {

VisitBatch Batch() {
  VisitBatch batch;
  batch.workload_digest = "digest";
  batch.buffers = {{"x", BufferRole::kInput, "f32", 1000, 4000, -1, 2},
                   {"w", BufferRole::kConstant, "f32", 1000, 4000, -3, 4},
                   {"y", BufferRole::kOutput, "f32", 1000, 4000, 0, 0, true}};
  batch.reference = {HandMadeInterface("reference"), 0, 10};
  batch.candidates = {{"a", {HandMadeInterface("packed_double"), 10, 20}}, {"b", {HandMadeInterface("good"), 30, 40}}};
  batch.tolerance = {1e-5, 1e-6};
  batch.fill_seed = 7;
  batch.threads = 3;
  batch.policy.incumbent = 1;
  batch.policy.visit_seconds = 12;
  batch.final = true;
  batch.points = {{11, 22}, {128, 256}};
  return batch;
}

TEST(VisitTaskTest, UnpackReturnsWhatPackWrote) {
  const VisitTask task{SessionPurpose::kTiming, 1.5, 4096, {0, 1}, {{1, 10, 0.25}}};
  VisitTask back;
  VisitBatch batch;
  const std::string bytes = Pack(task, Batch());
  ASSERT_EQ(Unpack(bytes, back, batch), absl::OkStatus());
  EXPECT_EQ(Pack(back, batch), bytes);
  EXPECT_EQ(back.purpose, SessionPurpose::kTiming);
  EXPECT_EQ(back.deadline, 1.5);
  EXPECT_EQ(back.cold_bytes, 4096);
  EXPECT_EQ(back.to_verify, (std::vector<int>{0, 1}));
  ASSERT_EQ(back.verified.size(), 1u);
  EXPECT_EQ(back.verified[0].median_seconds, 0.25);
  EXPECT_EQ(batch.workload_digest, "digest");
  ASSERT_EQ(batch.buffers.size(), 3u);
  EXPECT_EQ(batch.buffers[1].name, "w");
  EXPECT_EQ(batch.buffers[1].high, 4);
  EXPECT_EQ(batch.buffers[2].role, BufferRole::kOutput);
  EXPECT_TRUE(batch.buffers[2].rounded);
  ASSERT_EQ(batch.candidates.size(), 2u);
  EXPECT_EQ(batch.candidates[0].kernel.interface, HandMadeInterface("packed_double"));
  EXPECT_EQ(batch.candidates[1].kernel.code_offset, 30);
  EXPECT_EQ(batch.reference.code_bytes, 10);
  EXPECT_EQ(batch.tolerance.atol, 1e-6);
  EXPECT_EQ(batch.fill_seed, 7u);
  EXPECT_EQ(batch.threads, 3);
  EXPECT_EQ(batch.points, (std::vector<std::vector<int64_t>>{{11, 22}, {128, 256}}));
  EXPECT_EQ(batch.policy.incumbent, 1);
  EXPECT_EQ(batch.policy.visit_seconds, 12);
  EXPECT_TRUE(batch.final);
}

TEST(VisitTaskTest, TruncatedBytesAreAnError) {
  const std::string bytes = Pack({}, Batch());
  for (size_t size = 0; size < bytes.size(); size += 7) {
    VisitTask task;
    VisitBatch batch;
    EXPECT_FALSE(Unpack(std::string_view(bytes).substr(0, size), task, batch).ok()) << size;
  }
}

}  // namespace
}  // namespace hone::agent
