// SPDX-License-Identifier: Apache-2.0
// A writer to one file is killed (SIGKILL) at random moments, many times. Every acknowledged row must stay.
#include <unistd.h>

#include <chrono>

#include "base/random.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "records/store.h"
#include "storage/open.h"
#include "tests/anomaly/records/killed_writer.h"
#include "tests/unit/records/sample_records.h"

namespace hone::records {
namespace {

constexpr int kRounds = 50;
constexpr int kBatchRows = 3;

// Runs in the child: appends batches without end and writes the number of each acknowledged batch to `pipe`.
[[noreturn]] void AppendForEver(const std::filesystem::path& file, int first, int pipe) {
  auto store = storage::OpenRecords(file, OpenMode::kReadWrite);
  if (!store.ok()) _exit(2);
  for (int number = first;; ++number) {
    std::vector<Record> batch;
    for (int i = 0; i < kBatchRows; ++i) batch.push_back(SampleTiming(number * kBatchRows + i, "s", 1e-3));
    if (!(*store)->Append(batch).ok()) _exit(3);
    if (write(pipe, &number, sizeof number) != sizeof number) _exit(4);
  }
}

// Returns the number of batches acknowledged before the kill; they are first, first + 1, ...
int KillOneWriter(const std::filesystem::path& file, int first, LifeFrom from, std::chrono::microseconds life) {
  int acknowledged = 0;
  KillWriter<int>([&](int pipe) { AppendForEver(file, first, pipe); }, from, life,
                  [&](int number) {
                    EXPECT_EQ(number, first + acknowledged);
                    ++acknowledged;
                  });
  return acknowledged;
}

TEST(CrashTest, EveryAcknowledgedRowSurvivesAKill) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto file = folder / "records.db";
  Random random(2024);
  int total = 0;  // batches in the file: all acknowledged ones, and at most one more per kill
  for (int round = 0; round < kRounds; ++round) {
    const std::chrono::microseconds life(random.Below(50'000));
    const LifeFrom from = round % 2 == 0 ? LifeFrom::kStart : LifeFrom::kFirstReport;
    const int acknowledged = KillOneWriter(file, total, from, life);
    if (HasFailure()) FAIL() << "in round " << round;
    // The file is opened for reading first, because a reader must cope with the log that the dead writer left.
    const auto reader = storage::OpenRecords(file, OpenMode::kReadOnly);
    if (!reader.ok()) {
      ASSERT_TRUE(absl::IsNotFound(reader.status())) << reader.status();
      ASSERT_EQ(total + acknowledged, 0);
      continue;
    }
    const int64_t rows = (*reader)->Summarize()->records;
    ASSERT_EQ(rows % kBatchRows, 0) << "half a batch";
    ASSERT_GE(rows, int64_t{kBatchRows} * (total + acknowledged)) << "acknowledged rows are lost in round " << round;
    ASSERT_LE(rows, int64_t{kBatchRows} * (total + acknowledged + 1));
    total = static_cast<int>(rows) / kBatchRows;
    if (round % 10 == 9) {
      ASSERT_TRUE((*reader)->CheckIntegrity().ok());
    }
  }
  EXPECT_GT(total, kRounds) << "the writers hardly came to write";
  const auto store = storage::OpenRecords(file, OpenMode::kReadWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->CheckIntegrity().ok());
  const std::vector<StoredRecord> rows = (*store)->Query({.limit = 100'000, .byte_limit = SIZE_MAX})->rows;
  ASSERT_EQ(rows.size(), static_cast<size_t>(total * kBatchRows));
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].record.measurement_id, fmt::format("batch-7/{}", i));
  }
}

}  // namespace
}  // namespace hone::records
