// SPDX-License-Identifier: Apache-2.0
// Each disk operation of a session fails once, in turn. Afterwards every acknowledged row must be there, batches must
// be whole and the file must be sound. After a power cut only synced data and a random part of the rest survive.
#include <map>
#include <memory>
#include <set>

#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "records/store.h"
#include "storage/open.h"
#include "tests/anomaly/records/fault_vfs.h"
#include "tests/unit/records/sample_records.h"

namespace hone::records {
namespace {

constexpr int kFaultBatchRows = 4;
constexpr int kFaultBatches = 4;

std::vector<Record> Batch(int number) {
  std::vector<Record> batch;
  for (int i = 0; i < kFaultBatchRows; ++i) {
    Record record = SampleTiming(number * kFaultBatchRows + i, "split oc 16", 1e-3);
    record.batch_id = fmt::format("batch-{}", number);
    // Large enough that a batch takes several database pages.
    record.decisions = std::string(3000, static_cast<char>('a' + number));
    batch.push_back(record);
  }
  return batch;
}

// A client's session: opens the file, appends half of the batches, closes it, opens it again, and appends the rest.
// With `retry` a failed step is tried once more; without it the session ends there.
struct Session {
  std::filesystem::path file;
  bool retry = false;
  std::set<int> acknowledged;
  std::vector<absl::Status> errors;
  bool failed_twice = false;

  std::unique_ptr<Store> Open() {
    for (int attempt = 0; attempt < (retry ? 2 : 1); ++attempt) {
      auto store = storage::OpenRecords(file, OpenMode::kReadWrite);
      if (store.ok()) return *std::move(store);
      errors.push_back(store.status());
    }
    failed_twice = retry;
    return nullptr;
  }

  bool Append(Store& store, int number) {
    for (int attempt = 0; attempt < (retry ? 2 : 1); ++attempt) {
      const auto report = store.Append(Batch(number));
      if (report.ok()) {
        EXPECT_EQ(report->appended + report->duplicates, static_cast<size_t>(kFaultBatchRows));
        acknowledged.insert(number);
        return true;
      }
      errors.push_back(report.status());
    }
    failed_twice = retry;
    return false;
  }

  void Run() {
    for (int half = 0; half < 2; ++half) {
      const std::unique_ptr<Store> store = Open();
      if (store == nullptr) return;
      for (int i = 0; i < kFaultBatches / 2; ++i) {
        if (!Append(*store, half * kFaultBatches / 2 + i)) return;
      }
    }
  }
};

// Opens the file on a working disk and checks its contents.
void ExpectConsistent(const Session& session) {
  auto store = storage::OpenRecords(session.file, OpenMode::kReadWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->CheckIntegrity().ok());
  const auto page = (*store)->Query({.with_workload_text = true});
  ASSERT_TRUE(page.ok()) << page.status();
  std::map<std::string, std::vector<Record>> batches;
  for (const StoredRecord& row : page->rows) batches[row.record.batch_id].push_back(row.record);
  for (int number = 0; number < kFaultBatches; ++number) {
    const auto found = batches.find(fmt::format("batch-{}", number));
    if (found == batches.end()) {
      EXPECT_EQ(session.acknowledged.count(number), 0u) << "acknowledged batch " << number << " is lost";
    } else {
      EXPECT_EQ(found->second, Batch(number));
    }
  }
  ASSERT_TRUE((*store)->Append(Batch(kFaultBatches)).ok());
}

class FaultTest : public testing::TestWithParam<Fault> {};

TEST_P(FaultTest, NoSingleFaultLosesWhatWasAcknowledged) {
  const bool power_cut = GetParam() == Fault::kPowerCut;
  bool hit = true;
  int n = 0;
  for (n = 1; hit; ++n) {
    const TemporaryFolder folder = TemporaryFolder::Create().value();
    Session session{.file = folder / "records.db", .retry = !power_cut};
    {
      FaultVfs vfs;
      vfs.Arm(GetParam(), n);
      session.Run();
      hit = vfs.hit();
      if (power_cut && hit) vfs.LosePower(static_cast<uint64_t>(n));
    }
    EXPECT_FALSE(session.failed_twice) << "fault " << n << " was passing, but: " << session.errors.back();
    for (const absl::Status& error : session.errors) {
      EXPECT_THAT(std::string(error.message()), testing::HasSubstr(session.file.string())) << "fault " << n;
      EXPECT_EQ(error.code(),
                GetParam() == Fault::kDiskFull ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable)
          << error;
    }
    ExpectConsistent(session);
    if (testing::Test::HasFailure()) FAIL() << "at fault " << n;
    EXPECT_TRUE(hit || session.acknowledged.size() == static_cast<size_t>(kFaultBatches));
  }
  const bool rare = GetParam() == Fault::kTruncateError || GetParam() == Fault::kDeleteError;
  EXPECT_GT(n, rare ? 1 : 10) << "the disk saw too little";
}

INSTANTIATE_TEST_SUITE_P(AllFaults, FaultTest,
                         testing::Values(Fault::kWriteError, Fault::kShortWrite, Fault::kSyncError,
                                         Fault::kTruncateError, Fault::kDeleteError, Fault::kDiskFull,
                                         Fault::kPowerCut),
                         [](const testing::TestParamInfo<Fault>& fault) {
                           switch (fault.param) {
                             case Fault::kWriteError:
                               return "WriteError";
                             case Fault::kShortWrite:
                               return "ShortWrite";
                             case Fault::kTruncateError:
                               return "TruncateError";
                             case Fault::kDeleteError:
                               return "DeleteError";
                             case Fault::kSyncError:
                               return "SyncError";
                             case Fault::kDiskFull:
                               return "DiskFull";
                             case Fault::kPowerCut:
                               return "PowerCut";
                           }
                           return "";
                         });

}  // namespace
}  // namespace hone::records
