// SPDX-License-Identifier: Apache-2.0
// Every implementation of records::Store must pass these tests. Another kind of database adds its row to kStores.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "records/store.h"
#include "storage/memory/record_store.h"
#include "storage/open.h"
#include "tests/unit/records/sample_records.h"

namespace hone::storage {
namespace {

using records::Confirmed;
using records::Filter;
using records::Key;
using records::OfDefault;
using records::Record;
using records::SampleFailure;
using records::SampleKey;
using records::SampleTiming;
using ::testing::ElementsAre;
using ::testing::SizeIs;

struct KindOfStore {
  std::string name;
  std::function<std::unique_ptr<records::Store>(const TemporaryFolder& folder)> open;  // opens an empty store
};

const KindOfStore kStores[] = {
    {"Sqlite",
     [](const TemporaryFolder& folder) {
       return OpenRecords(folder / "records.db", records::OpenMode::kReadWrite).value();
     }},
    {"Memory", [](const TemporaryFolder&) { return std::make_unique<MemoryStore>(); }},
};

class RecordsConformanceTest : public testing::TestWithParam<KindOfStore> {
 protected:
  void Add(const std::vector<Record>& records) {
    const auto report = store_->Append(records);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_EQ(report->appended, records.size());
  }
  static std::vector<int64_t> RowsOf(const std::vector<records::StoredRecord>& stored) {
    std::vector<int64_t> rows;
    for (const records::StoredRecord& each : stored) rows.push_back(each.row);
    return rows;
  }
  std::vector<int64_t> Query(const Filter& filter) const { return RowsOf(store_->Query(filter)->rows); }
  // Appends ten rows, nine timings and a failure, of two workloads on two devices.
  void AddTen() {
    Key other = SampleKey();
    other.workload_digest = "0ther";
    other.device_fingerprint = "another board";
    for (int i = 1; i <= 6; ++i) Add({SampleTiming(i, "s" + std::to_string(i), 1e-3 * i)});
    Add({SampleFailure(7, "s7", FailureKind::kCrashed)});
    for (int i = 8; i <= 10; ++i) Add({SampleTiming(i, "t" + std::to_string(i), 1e-3 * i, other)});
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::unique_ptr<records::Store> store_ = GetParam().open(folder_);
};

INSTANTIATE_TEST_SUITE_P(Kinds, RecordsConformanceTest, testing::ValuesIn(kStores),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(RecordsConformanceTest, EveryValueComesBack) {
  const Record timing = EveryValueSet(records::Timing{});
  Record failure = EveryValueSet(records::Failure{});
  failure.measurement_id = "another";
  Add({timing, failure});
  const auto page = store_->Query({.with_workload_text = true});
  ASSERT_THAT(page->rows, SizeIs(2));
  EXPECT_EQ(page->rows[0].record, timing);
  EXPECT_EQ(page->rows[1].record, failure);
  EXPECT_EQ(store_->Query({})->rows[0].record.workload_text, "");
  EXPECT_EQ(*store_->WorkloadText(timing.key.workload_digest), timing.workload_text);
  EXPECT_TRUE(absl::IsNotFound(store_->WorkloadText("unknown").status()));
}

TEST_P(RecordsConformanceTest, AMeasurementIsStoredOnceAndABadRowKeepsNoOtherOut) {
  Record bad = SampleTiming(2, "bad", 1e-3);
  bad.key.target = "";
  Record without_text = SampleTiming(3, "none", 1e-3);
  without_text.key.workload_digest = "never seen";
  without_text.workload_text = "";
  const Record good = SampleTiming(1, "good", 1e-3);
  const auto report = store_->Append(std::vector<Record>{good, bad, good, without_text});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->appended, 1u);
  EXPECT_EQ(report->duplicates, 1u);
  ASSERT_THAT(report->rejected, SizeIs(2));
  EXPECT_EQ(report->rejected[0].index, 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(report->rejected[0].why));
  EXPECT_EQ(report->rejected[1].index, 3u);
  EXPECT_TRUE(absl::IsFailedPrecondition(report->rejected[1].why));
}

TEST_P(RecordsConformanceTest, FiltersSelectRows) {
  AddTen();
  EXPECT_THAT(Query({.workload_digest = "0t"}), ElementsAre(8, 9, 10));
  EXPECT_THAT(Query({.operator_label = "nv2"}), SizeIs(10));
  EXPECT_THAT(Query({.operator_label = "pool"}), SizeIs(0));
  EXPECT_THAT(Query({.target = "none", .other_target = SampleKey().target}), SizeIs(10));
  EXPECT_THAT(Query({.target = "none"}), SizeIs(0));
  EXPECT_THAT(Query({.device_fingerprint = "another board"}), ElementsAre(8, 9, 10));
  EXPECT_THAT(Query({.outcomes = Filter::Outcomes::kFailed}), ElementsAre(7));
  EXPECT_THAT(Query({.outcomes = Filter::Outcomes::kTimed}), SizeIs(9));
  EXPECT_THAT(Query({.failure = FailureKind::kCrashed}), ElementsAre(7));
  EXPECT_THAT(Query({.failure = FailureKind::kLostDevice}), SizeIs(0));
  EXPECT_THAT(Query({.confirmed_only = true}), SizeIs(0));
  EXPECT_THAT(Query({.after_row = 7}), ElementsAre(8, 9, 10));
  Record of_net = SampleTiming(11, "u", 1e-3);
  of_net.model = "net.onnx";
  Add({of_net});
  EXPECT_THAT(Query({.model = "net.onnx"}), ElementsAre(11));
  EXPECT_THAT(Query({.model = "other.onnx"}), SizeIs(0));
}

TEST_P(RecordsConformanceTest, PagesEndAtTheirLimitsAndSaySo) {
  AddTen();
  const auto first = store_->Query({.limit = 4});
  EXPECT_THAT(RowsOf(first->rows), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(first->more);
  const auto last = store_->Query({.after_row = 6, .limit = 4});
  EXPECT_THAT(RowsOf(last->rows), ElementsAre(7, 8, 9, 10));
  EXPECT_FALSE(last->more);
  EXPECT_THAT(store_->Query({.byte_limit = 1})->rows, SizeIs(1)) << "a page holds one row at least";
  EXPECT_THAT(RowsOf(store_->Newest({.limit = 2}, 9)->rows), ElementsAre(8, 7));
  int64_t seen = 0;
  EXPECT_EQ(*store_->Visit({.limit = 7}, [&](const auto&) { return ++seen, absl::OkStatus(); }), 0);
  EXPECT_EQ(seen, 7);
  EXPECT_THAT(RowsOf(*store_->Sample({}, 4)), ElementsAre(1, 4, 7, 10));
  EXPECT_THAT(RowsOf(*store_->Sample({.workload_digest = "0ther"}, 9)), ElementsAre(8, 9, 10));
  EXPECT_THAT(*store_->Sample({}, 4, "board-9"), SizeIs(0));
}

TEST_P(RecordsConformanceTest, TheWinnerIsFoundByKeyAndByFilter) {
  AddTen();
  EXPECT_EQ((*store_->Best(SampleKey()))->stored.record.schedule, "s1");
  EXPECT_EQ((*store_->Best(SampleKey()))->records, 7);
  Add({OfDefault(SampleTiming(11, "default", 5e-4)), SampleFailure(12, "s1", FailureKind::kWrongOutput)});
  EXPECT_EQ((*store_->Best(SampleKey()))->stored.record.schedule, "default");
  Key elsewhere = SampleKey();
  elsewhere.device_fingerprint = "a third board";
  EXPECT_FALSE(store_->Best(elsewhere)->has_value());
  EXPECT_EQ((*store_->BestAnyDevice(elsewhere))->closeness, records::Closeness::kOtherDevice);
  EXPECT_THAT(*store_->AllBest({}), SizeIs(2));
  EXPECT_THAT(*store_->AllBest({.limit = 1}), SizeIs(1));
  const auto of_other = store_->BestPageAfter({.workload_digest = "0ther"}, {});
  ASSERT_THAT(of_other->best, SizeIs(1));
  EXPECT_EQ(of_other->best[0].stored.record.schedule, "t8");
  EXPECT_FALSE(of_other->next.has_value());
}

TEST_P(RecordsConformanceTest, CountsAreThoseOfTheRows) {
  AddTen();
  const auto stats = store_->Summarize();
  EXPECT_EQ(stats->records, 10);
  EXPECT_EQ(stats->workloads, 2);
  EXPECT_EQ(stats->devices, 2);
  EXPECT_EQ(stats->failed.at(FailureKind::kCrashed), 1);
  EXPECT_EQ(stats->failed.at(FailureKind::kLostDevice), 0);
}

TEST_P(RecordsConformanceTest, PruningKeepsWinnersAndGivesNoNumberTwice) {
  AddTen();
  const auto counted = store_->Prune({}, {.keep_best = 1}, false);
  EXPECT_EQ(counted->rows, 10);
  EXPECT_GT(counted->prunable, 0);
  EXPECT_EQ(store_->Summarize()->records, 10);
  const auto pruned = store_->Prune({}, {.keep_best = 1}, true);
  EXPECT_EQ(pruned->prunable, counted->prunable);
  EXPECT_EQ(store_->Summarize()->records, 10 - pruned->prunable);
  EXPECT_EQ((*store_->Best(SampleKey()))->stored.record.schedule, "s1");
  Add({SampleTiming(11, "new", 1)});
  EXPECT_EQ(store_->Newest({.limit = 1})->rows[0].row, 11);
  Add({SampleTiming(5, "s5", 1)});  // its measurement was pruned, so it is new again
  EXPECT_TRUE(store_->CheckIntegrity().ok());
  int64_t rows = 0;
  EXPECT_TRUE(store_->ForEachRow([&](const auto& row) { rows += row.ok(); }).ok());
  EXPECT_EQ(rows, store_->Summarize()->records);
}

}  // namespace
}  // namespace hone::storage
