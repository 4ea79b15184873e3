// SPDX-License-Identifier: Apache-2.0
#include "records/store.h"

#include <sqlite3.h>

#include <atomic>
#include <thread>

#include "base/digest.h"
#include "base/random.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "records/winner.h"
#include "storage/open.h"
#include "storage/sqlite/connection.h"
#include "tests/unit/records/sample_records.h"

namespace hone::records {
namespace {

using storage::Connection;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class StoreTest : public testing::Test {
 protected:
  StoreTest() : store_(OpenOrDie(OpenMode::kReadWrite)) {}

  std::unique_ptr<Store> OpenOrDie(OpenMode mode) const {
    auto store = storage::OpenRecords(folder_ / "records.db", mode);
    HONE_CHECK(store.ok());
    return *std::move(store);
  }
  // Appends the rows, each of which must be valid and new.
  void Add(const std::vector<Record>& records) {
    const auto report = store_->Append(records);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_EQ(report->appended, records.size());
  }
  std::string BestSchedule(const Key& key = SampleKey()) const {
    const auto best = store_->Best(key);
    HONE_CHECK(best.ok());
    return best->has_value() ? (*best)->stored.record.schedule : "(none)";
  }
  static std::vector<std::string> Ids(const std::vector<StoredRecord>& rows) {
    std::vector<std::string> ids;
    for (const StoredRecord& row : rows) ids.push_back(row.record.measurement_id);
    return ids;
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, EveryFieldComesBackAfterReopening) {
  const Record timing = Confirmed(SampleTiming(1, "split oc 16", 1.1e-3));
  const Record failure = SampleFailure(2, "", FailureKind::kWrongOutput);
  Record bare = SampleTiming(3, "x", 0.1);
  bare.outcome = Timing{.seconds = {0.1 + 0.2, 1e-9}};
  bare.batch_id.clear();
  const Record full = EveryValueSet(Timing());
  Record full_failure = EveryValueSet(Failure());
  full_failure.measurement_id += "!";
  full_failure.workload_text = full.workload_text;
  Add({timing, failure, bare, full, full_failure});
  store_.reset();
  const auto page = OpenOrDie(OpenMode::kReadOnly)->Query({.with_workload_text = true});
  ASSERT_TRUE(page.ok()) << page.status();
  const std::vector<StoredRecord>& rows = page->rows;
  ASSERT_THAT(rows, SizeIs(5));
  EXPECT_EQ(rows[3].record, full);
  EXPECT_EQ(rows[4].record, full_failure);
  EXPECT_EQ(rows[0].record, timing);
  EXPECT_EQ(rows[1].record, failure);
  EXPECT_EQ(rows[2].record, bare);
}

TEST_F(StoreTest, AMeasurementIsStoredOnce) {
  const Record first = SampleTiming(1, "a", 1e-3);
  Add({first});
  Record changed = SampleTiming(1, "b", 1e-6);
  const auto report = store_->Append(std::vector<Record>{changed, SampleTiming(2, "c", 2e-3), changed});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->appended, 1u);
  EXPECT_EQ(report->duplicates, 2u);
  EXPECT_EQ(BestSchedule(), "a");
}

TEST_F(StoreTest, ABadRowDoesNotBlockTheRest) {
  Record no_target = SampleTiming(1, "a", 1e-3);
  no_target.key.target.clear();
  Record other_text = SampleTiming(3, "c", 1e-3);
  other_text.workload_text = "another workload under the same digest";
  Record no_text = SampleTiming(4, "d", 1e-3);
  no_text.key.workload_digest = "unseen";
  no_text.workload_text.clear();
  const auto report = store_->Append(
      std::vector<Record>{no_target, SampleTiming(2, "b", 1e-3), other_text, no_text, SampleTiming(5, "e", 2e-3)});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->appended, 2u);
  ASSERT_THAT(report->rejected, SizeIs(3));
  EXPECT_EQ(report->rejected[0].index, 0u);
  EXPECT_THAT(report->rejected[0].why.ToString(), HasSubstr("target is empty"));
  EXPECT_EQ(report->rejected[1].index, 2u);
  EXPECT_THAT(report->rejected[1].why.ToString(), HasSubstr("stored with another text"));
  EXPECT_EQ(report->rejected[2].index, 3u);
  EXPECT_THAT(report->rejected[2].why.ToString(), HasSubstr("not stored yet"));
  EXPECT_EQ(store_->Summarize()->records, 2);
  EXPECT_EQ(store_->Summarize()->workloads, 1);
}

TEST_F(StoreTest, ASampleIsSpreadOverAllRowsThatFit) {
  std::vector<Record> records;
  for (int i = 1; i <= 101; ++i) records.push_back(SampleTiming(i, "s", 1e-3));
  for (int i = 102; i <= 110; ++i) records.push_back(SampleFailure(i, "", FailureKind::kCrashed));
  ASSERT_TRUE(store_->Append(records).ok());
  const auto rows = [this](size_t limit) {
    std::vector<int64_t> numbers;
    const auto sampled = store_->Sample({.outcomes = Filter::Outcomes::kTimed}, limit);
    EXPECT_TRUE(sampled.ok()) << sampled.status();
    for (const StoredRecord& row : *sampled) numbers.push_back(row.row);
    return numbers;
  };
  EXPECT_THAT(rows(5), ElementsAre(1, 26, 51, 76, 101));
  EXPECT_THAT(rows(1), ElementsAre(1));
  EXPECT_THAT(rows(0), IsEmpty());
  EXPECT_EQ(rows(1000).size(), 101u);
  EXPECT_THAT(*store_->Sample({.target = "none"}, 5), IsEmpty());
}

TEST_F(StoreTest, ASampleOfOneBoardIsSpreadOverItsRows) {
  std::vector<Record> records;
  for (int i = 1; i <= 101; ++i) {
    records.push_back(SampleTiming(i, "s", 1e-3));
    records.back().measured_by = i % 10 == 1 ? "a/cpu" : "b/cpu";
  }
  Add(records);
  const auto sampled = store_->Sample({}, 6, "a/cpu");
  ASSERT_TRUE(sampled.ok()) << sampled.status();
  std::vector<int64_t> numbers;
  for (const StoredRecord& row : *sampled) numbers.push_back(row.row);
  EXPECT_THAT(numbers, ElementsAre(1, 21, 41, 61, 81, 101));
  EXPECT_THAT(*store_->Sample({}, 6, "nobody"), IsEmpty());
}

TEST_F(StoreTest, TheTextOfAKnownWorkloadNeedNotBeSentAgain) {
  Add({SampleTiming(1, "a", 1e-3)});
  Record again = SampleTiming(2, "b", 2e-3);
  again.workload_text.clear();
  Add({again});
  EXPECT_EQ(*store_->WorkloadText("d1ge57"), "workload conv2d of d1ge57");
  EXPECT_TRUE(absl::IsNotFound(store_->WorkloadText("never seen").status()));
}

TEST_F(StoreTest, TheTextThatTheDigestWasMadeOfReplacesAnother) {
  const std::string text = "workload matmul";
  Key key = SampleKey();
  key.workload_digest = Sha256Hex(text);
  Record strange = SampleTiming(1, "a", 1e-3, key);
  strange.operator_label = "none";
  Record real = SampleTiming(2, "b", 2e-3, key);
  real.workload_text = text;
  Add({strange});
  EXPECT_NE(*store_->WorkloadText(key.workload_digest), text);
  Add({real});
  EXPECT_EQ(*store_->WorkloadText(key.workload_digest), text);
  EXPECT_EQ(store_->Query({})->rows.front().record.operator_label, real.operator_label);
  strange.measurement_id = "m/3";
  const auto report = store_->Append(std::vector<Record>{strange, SampleTiming(4, "c", 3e-3)});
  ASSERT_THAT(report->rejected, SizeIs(1));
  EXPECT_THAT(report->rejected[0].why.ToString(), HasSubstr("does not have this digest"));
  EXPECT_EQ(*store_->WorkloadText(key.workload_digest), text);
  EXPECT_EQ(store_->Summarize()->records, 3);
  EXPECT_EQ(store_->Summarize()->workloads, 2);
}

TEST_F(StoreTest, FailureTextIsMadeReadable) {
  Record failure = SampleFailure(1, "a", FailureKind::kCrashed);
  failure.outcome = Failure{FailureKind::kCrashed, "signal 11 \xFF" + std::string(100'000, 'x')};
  Add({failure});
  const auto rows = store_->Query({});
  const std::string text = std::get<Failure>(rows->rows.at(0).record.outcome).text;
  EXPECT_EQ(text.size(), 16u * 1024);
  EXPECT_THAT(text, HasSubstr("signal 11 \xEF\xBF\xBDx"));
}

TEST_F(StoreTest, AReadOnlyStoreRefusesToAppend) {
  const auto report = OpenOrDie(OpenMode::kReadOnly)->Append(std::vector<Record>{SampleTiming(1, "a", 1e-3)});
  EXPECT_TRUE(absl::IsFailedPrecondition(report.status()));
}

TEST_F(StoreTest, BestIsTheLowestMedianNotTheLowestRepeat) {
  Record lucky = SampleTiming(1, "lucky", 2e-3);
  lucky.outcome = Timing{.seconds = {1e-6, 2e-3, 2e-3}, .verified = true};
  Add({lucky, SampleTiming(2, "steady", 1e-3), SampleTiming(3, "slow", 3e-3)});
  const auto best = store_->Best(SampleKey());
  ASSERT_TRUE(best.ok() && best->has_value());
  EXPECT_EQ((*best)->stored.record.schedule, "steady");
  EXPECT_DOUBLE_EQ((*best)->median_seconds, 1e-3);
  EXPECT_EQ((*best)->records, 3);
}

TEST_F(StoreTest, AConfirmedWinnerBeatsAFasterRace) {
  Add({SampleTiming(1, "raced", 0.9e-3), SampleTiming(2, "finalist", 1e-3)});
  EXPECT_EQ(BestSchedule(), "raced");
  Add({Confirmed(SampleTiming(3, "finalist", 1.1e-3)), Confirmed(SampleTiming(4, "incumbent", 1.2e-3))});
  EXPECT_EQ(BestSchedule(), "finalist");
}

TEST_F(StoreTest, ANewerMeasurementOfScheduleReplacesItsLuckyOne) {
  Add({Confirmed(SampleTiming(1, "lucky once", 0.5e-3)), Confirmed(SampleTiming(2, "other", 1e-3))});
  EXPECT_EQ(BestSchedule(), "lucky once");
  Add({Confirmed(SampleTiming(3, "lucky once", 1.3e-3))});
  EXPECT_EQ(BestSchedule(), "other");
}

TEST_F(StoreTest, TheNewestConfirmationCountsAndTheDefaultMayWinIt) {
  Record yesterday = Confirmed(SampleTiming(1, "a", 0.5e-3));
  yesterday.batch_id = "yesterday";
  Add({yesterday, Confirmed(SampleTiming(2, "a", 1.1e-3)), OfDefault(Confirmed(SampleTiming(3, "plain", 1e-3)))});
  const auto best = store_->Best(SampleKey());
  ASSERT_TRUE(best.ok() && best->has_value());
  EXPECT_EQ((*best)->stored.record.schedule, "plain");
  EXPECT_EQ((*best)->default_seconds, 1e-3);
  EXPECT_TRUE((*best)->confirmed);
}

// The store reads only some rows of each key, and must find the same winner as FindWinner does from all of them.
TEST_F(StoreTest, TheWinnerOfEveryKeyIsThatOfAllItsRows) {
  Random random(7);
  std::vector<Record> rows;
  for (int i = 0; i < 6000; ++i) {
    Key key = SampleKey();
    key.device_fingerprint = fmt::format("board {}", random.Below(4));
    const auto schedule = fmt::format("schedule {}", random.Below(40));
    Record row = random.Below(8) == 0
                     ? SampleFailure(i, schedule, kAllFailureKinds[random.Below(kAllFailureKinds.size())], key)
                     : SampleTiming(i, schedule, 1e-3 * (1 + random.Uniform()), key);
    row.batch_id = fmt::format("batch {}", i / 50);
    row.is_default = schedule == "schedule 0";
    // Board 3 has no confirmation.
    const bool confirmed = i / 50 % 7 == 0 && key.device_fingerprint != "board 3";
    if (auto* timing = std::get_if<Timing>(&row.outcome)) timing->confirmed = confirmed;
    rows.push_back(std::move(row));
  }
  Add(rows);
  const std::vector<StoredRecord> all = store_->Query({.limit = 10'000})->rows;
  ASSERT_THAT(all, SizeIs(6000));
  const std::vector<BestRecord> winners = *store_->AllBest({});
  ASSERT_THAT(winners, SizeIs(4));
  for (const BestRecord& best : winners) {
    std::vector<Contender> contenders;
    for (const StoredRecord& row : all) {
      if (row.record.key == best.stored.record.key) contenders.push_back(ContenderOf(row));
    }
    const std::optional<Winner> winner = FindWinner(contenders);
    ASSERT_TRUE(winner.has_value());
    EXPECT_GT(contenders.size(), 1000u);
    EXPECT_EQ(best.records, static_cast<int64_t>(contenders.size()));
    EXPECT_EQ(best.stored.row, contenders[winner->index].row);
    EXPECT_EQ(best.median_seconds, winner->seconds);
    EXPECT_EQ(best.default_seconds, winner->default_seconds);
    EXPECT_EQ(best.confirmed, best.stored.record.key.device_fingerprint != "board 3");
    EXPECT_EQ((*store_->Best(best.stored.record.key))->stored.row, best.stored.row);
  }
}

TEST_F(StoreTest, AnUnverifiedTimingIsNeverBest) {
  Record unverified = SampleTiming(1, "fast", 1e-6);
  std::get<Timing>(unverified.outcome).verified = false;
  Add({unverified});
  EXPECT_EQ(BestSchedule(), "(none)");
  Add({SampleTiming(2, "slow", 1e-2)});
  EXPECT_EQ(BestSchedule(), "slow");
}

TEST_F(StoreTest, AScheduleThatProvedWrongLaterIsOut) {
  for (const FailureKind kind : {FailureKind::kWrongOutput, FailureKind::kOutOfBoundsWrite, FailureKind::kCrashed,
                                 FailureKind::kLostDevice, FailureKind::kForbiddenCall, FailureKind::kImpossibleTime}) {
    Key key = SampleKey();
    key.device_fingerprint = FailureKindName(kind);
    const int number = 10 * static_cast<int>(kind) + 1000;
    Add({SampleTiming(number, "a", 1e-3, key), SampleTiming(number + 1, "b", 2e-3, key),
         SampleFailure(number + 2, "a", kind, key)});
    // A lost device says nothing about the schedule.
    EXPECT_EQ(BestSchedule(key), kind == FailureKind::kLostDevice ? "a" : "b") << FailureKindName(kind);
    Add({Confirmed(SampleTiming(number + 3, "a", 1e-3, key))});
    EXPECT_EQ(BestSchedule(key), "a") << "a newer verified run rehabilitates it";
  }
}

TEST_F(StoreTest, BestNeverMixesKeys) {
  Add({SampleTiming(1, "a", 1e-3)});
  for (std::string Key::* part :
       {&Key::workload_digest, &Key::target, &Key::device_fingerprint, &Key::compiler_version}) {
    Key key = SampleKey();
    key.*part += "x";
    EXPECT_EQ(BestSchedule(key), "(none)");
  }
}

TEST_F(StoreTest, NearestPrefersTheDeviceThenSimilarOnes) {
  Key wanted = SampleKey();
  Key old_compiler = wanted;
  old_compiler.compiler_version = "hone 0.0.9";
  Key sibling = wanted;
  sibling.device_fingerprint = "x86_64 AMD EPYC 9R14 4 cores avx512f";
  Key stranger = wanted;
  stranger.device_fingerprint = "x86_64 Intel Xeon 8488C";
  Key other_target = wanted;
  other_target.target = "cpu -mcpu=skylake";
  EXPECT_FALSE(store_->BestAnyDevice(wanted)->has_value());
  const auto expect = [&](const char* schedule, Closeness closeness) {
    const auto nearest = store_->BestAnyDevice(wanted);
    ASSERT_TRUE(nearest.ok() && nearest->has_value());
    EXPECT_EQ((*nearest)->best.stored.record.schedule, schedule);
    EXPECT_EQ((*nearest)->closeness, closeness);
    EXPECT_EQ((*nearest)->device_similarity == 1, closeness != Closeness::kOtherDevice);
  };
  Add({SampleTiming(1, "other target", 1e-6, other_target)});
  EXPECT_FALSE(store_->BestAnyDevice(wanted)->has_value());
  Add({SampleTiming(2, "stranger", 1e-5, stranger)});
  expect("stranger", Closeness::kOtherDevice);
  Add({SampleTiming(3, "sibling", 1e-3, sibling)});
  expect("sibling", Closeness::kOtherDevice);
  Add({SampleTiming(4, "old compiler", 1e-3, old_compiler)});
  expect("old compiler", Closeness::kSameDeviceOtherCompiler);
  Add({SampleTiming(5, "exact", 1e-2, wanted)});
  expect("exact", Closeness::kExact);
}

TEST_F(StoreTest, AllBestHasOneRowPerKey) {
  Key other = SampleKey();
  other.workload_digest = "0ther";
  Add({SampleTiming(1, "a", 2e-3), SampleTiming(2, "b", 1e-3), SampleTiming(3, "c", 1e-3, other),
       SampleFailure(4, "d", FailureKind::kCrashed, other)});
  EXPECT_THAT(*store_->AllBest({}), SizeIs(2));
  const auto winners = store_->AllBest({.workload_digest = "d1"});
  ASSERT_THAT(*winners, SizeIs(1));
  EXPECT_EQ(winners->front().stored.record.schedule, "b");
  EXPECT_THAT(*store_->AllBest({.limit = 1}), SizeIs(1));
  EXPECT_THAT(*store_->AllBest({.operator_label = "gemm"}), IsEmpty());
}

TEST_F(StoreTest, QueryFiltersPagesAndLimits) {
  Key other = SampleKey();
  other.workload_digest = "0ther";
  other.device_fingerprint = "board";
  Add({SampleTiming(1, "a", 2e-3), SampleFailure(2, "b", FailureKind::kCrashed),
       SampleFailure(3, "c", FailureKind::kRunTimeout, other), Confirmed(SampleTiming(4, "d", 1e-3, other))});
  const auto ids = [&](const Filter& filter) { return Ids(store_->Query(filter)->rows); };
  EXPECT_THAT(ids({.workload_digest = "d1"}), ElementsAre("batch-7/1", "batch-7/2"));
  EXPECT_THAT(ids({.workload_digest = "d1ge57x"}), IsEmpty());
  EXPECT_THAT(ids({.operator_label = "conv"}), SizeIs(4));
  EXPECT_THAT(ids({.operator_label = "conv", .after_row = 1, .limit = 2}), ElementsAre("batch-7/2", "batch-7/3"));
  EXPECT_THAT(ids({.operator_label = "conv", .after_row = INT64_MAX}), IsEmpty());
  EXPECT_THAT(ids({.device_fingerprint = "board"}), ElementsAre("batch-7/3", "batch-7/4"));
  EXPECT_THAT(ids({.compiler_version = "hone 9"}), IsEmpty());
  EXPECT_THAT(ids({.outcomes = Filter::Outcomes::kTimed}), ElementsAre("batch-7/1", "batch-7/4"));
  EXPECT_THAT(ids({.outcomes = Filter::Outcomes::kFailed}), ElementsAre("batch-7/2", "batch-7/3"));
  EXPECT_THAT(ids({.failure = FailureKind::kCrashed}), ElementsAre("batch-7/2"));
  EXPECT_THAT(ids({.confirmed_only = true}), ElementsAre("batch-7/4"));
  EXPECT_THAT(ids({.after_row = 1, .limit = 2}), ElementsAre("batch-7/2", "batch-7/3"));
  EXPECT_THAT(ids({.limit = 0}), IsEmpty());
  EXPECT_EQ(store_->Query({})->rows.front().record.workload_text, "");
}

TEST_F(StoreTest, APageIsBoundedInRowsAndBytesAndIsContinued) {
  std::vector<Record> rows;
  for (int i = 0; i < 10; ++i) {
    rows.push_back(SampleTiming(i, "s", 1e-3));
    rows.back().decisions = std::string(10'000, 'd');
  }
  Add(rows);
  EXPECT_FALSE(store_->Query({})->more);
  EXPECT_FALSE(store_->Query({.limit = 10})->more) << "nothing follows";
  EXPECT_TRUE(store_->Query({.limit = 9})->more);
  Filter filter{.byte_limit = 25'000};
  std::vector<std::string> seen;
  for (int pages = 1;; ++pages) {
    const Page page = store_->Query(filter).value();
    ASSERT_LE(page.rows.size(), 3u);
    for (const std::string& id : Ids(page.rows)) seen.push_back(id);
    if (!page.more) {
      EXPECT_EQ(pages, 4);
      break;
    }
    filter.after_row = page.rows.back().row;
  }
  EXPECT_EQ(seen, Ids(store_->Query({})->rows));
  EXPECT_THAT(store_->Query({.byte_limit = 1})->rows, SizeIs(1)) << "one row always fits";
}

// A write waits up to five seconds for the lock of another program. Queries are answered during that time.
TEST_F(StoreTest, AQueryDoesNotWaitForAWrite) {
  Add({SampleTiming(1, "a", 2e-3)});
  const auto other = Connection::Open(store_->path(), SQLITE_OPEN_READWRITE, "");
  ASSERT_EQ(other->Execute("BEGIN IMMEDIATE"), absl::OkStatus());
  std::atomic<bool> begun = false, ended = false;
  std::thread writer([&] {
    begun = true;
    EXPECT_TRUE(absl::IsUnavailable(store_->Append(std::vector<Record>{SampleTiming(2, "b", 1e-3)}).status()));
    ended = true;
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // so that the write is probably waiting
  EXPECT_THAT(store_->Query({})->rows, SizeIs(1));
  EXPECT_EQ(store_->Summarize()->records, 1);
  EXPECT_FALSE(ended) << "the question waited for the write";
  writer.join();
}

// Twenty threads are more than the store's eight connections for queries.
TEST_F(StoreTest, ManyAskAtOnce) {
  Add({SampleTiming(1, "a", 2e-3), SampleTiming(2, "b", 1e-3)});
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) EXPECT_THAT(store_->Query({})->rows, SizeIs(2));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(StoreTest, TheNewestRowsComeFirstAndThoseBeforeThemNext) {
  Key elsewhere = SampleKey();
  elsewhere.target = "arm64";
  Key other = SampleKey();
  other.workload_digest = "0ther";
  Add({SampleTiming(1, "a", 2e-3), SampleFailure(2, "b", FailureKind::kCrashed, elsewhere),
       SampleTiming(3, "c", 1e-3, other)});
  const Filter of_workload{.workload_digest = "d1ge57"};
  EXPECT_THAT(Ids(store_->Newest(of_workload)->rows), ElementsAre("batch-7/2", "batch-7/1"));
  EXPECT_FALSE(store_->Newest(of_workload)->more);
  const Filter one{.workload_digest = "d1ge57", .limit = 1};
  const Page newest = *store_->Newest(one);
  EXPECT_THAT(Ids(newest.rows), ElementsAre("batch-7/2"));
  EXPECT_TRUE(newest.more);
  const Page before = *store_->Newest(one, newest.rows.back().row);
  EXPECT_THAT(Ids(before.rows), ElementsAre("batch-7/1"));
  EXPECT_FALSE(before.more);
  EXPECT_THAT(Ids(store_->Newest({.outcomes = Filter::Outcomes::kTimed, .limit = 1})->rows), ElementsAre("batch-7/3"));
  EXPECT_THAT(Ids(store_->Newest({.target = "arm64"})->rows), ElementsAre("batch-7/2"));
}

TEST_F(StoreTest, StatsCountByKind) {
  const Stats none = *store_->Summarize();
  EXPECT_EQ(none.records, 0);
  EXPECT_THAT(none.failed, SizeIs(kAllFailureKinds.size()));
  Key other = SampleKey();
  other.workload_digest = "0ther";
  other.device_fingerprint = "board";
  Add({SampleTiming(1, "a", 2e-3), SampleFailure(2, "b", FailureKind::kCrashed),
       SampleFailure(3, "c", FailureKind::kCrashed, other), SampleFailure(4, "d", FailureKind::kLostDevice)});
  const Stats stats = *store_->Summarize();
  EXPECT_EQ(stats.records, 4);
  EXPECT_EQ(stats.workloads, 2);
  EXPECT_EQ(stats.devices, 2);
  EXPECT_EQ(stats.failed.at(FailureKind::kCrashed), 2);
  EXPECT_EQ(stats.failed.at(FailureKind::kLostDevice), 1);
  EXPECT_EQ(stats.failed.at(FailureKind::kWrongOutput), 0);
}

TEST_F(StoreTest, ReadersSeeWholeBatchesWhileAWriterAppends) {
  constexpr int kBatches = 40;
  constexpr int kBatchRows = 5;
  std::atomic<bool> done = false;
  std::atomic<int> looks = 0;
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&] {
      const std::unique_ptr<Store> reader = OpenOrDie(OpenMode::kReadOnly);
      int64_t last = 0;
      while (!done) {
        const auto stats = reader->Summarize();
        ASSERT_TRUE(stats.ok()) << stats.status();
        EXPECT_EQ(stats->records % kBatchRows, 0);
        EXPECT_GE(stats->records, last);
        last = stats->records;
        EXPECT_TRUE(reader->Best(SampleKey()).ok());
        ++looks;
      }
    });
  }
  for (int b = 0; b < kBatches; ++b) {
    std::vector<Record> batch;
    for (int i = 0; i < kBatchRows; ++i) batch.push_back(SampleTiming(b * kBatchRows + i, "s", 1e-3));
    Add(batch);
  }
  while (looks == 0) std::this_thread::yield();
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(store_->Summarize()->records, kBatches * kBatchRows);
  EXPECT_TRUE(store_->CheckIntegrity().ok());
}

// A client that asks for rows after the last one it has seen would miss a row that reuses an earlier number.
TEST_F(StoreTest, NoNumberIsGivenAgainAfterPruning) {
  Add({SampleTiming(1, "fast", 1e-3), SampleTiming(2, "slow", 2e-3), SampleTiming(3, "slower", 3e-3)});
  const auto report = store_->Prune({}, {.keep_best = 0}, true);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->shrunk, absl::OkStatus());
  EXPECT_EQ(report->prunable, 1);
  Add({SampleTiming(4, "later", 4e-3)});
  const auto page = store_->Query({.after_row = 3});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(Ids(page->rows), ElementsAre("batch-7/4"));
}

TEST_F(StoreTest, EitherTextOfATargetPasses) {
  Key later = SampleKey();
  later.target += " -l1=32768";
  Add({SampleTiming(1, "a", 1e-3), SampleTiming(2, "b", 1e-3, later)});
  Add({SampleTiming(3, "c", 1e-3, {"d1ge57", "another", "board", "hone 0.1.0"})});
  const Filter filter = {.target = later.target, .other_target = SampleKey().target};
  const auto page = store_->Query(filter);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(Ids(page->rows), ElementsAre("batch-7/1", "batch-7/2"));
  EXPECT_THAT(*store_->AllBest(filter), SizeIs(2));
}

// How often statements sorted rows, on all watched connections since the test began.
int sorted = 0;

int CountSorts(unsigned, void*, void* statement, void*) {
  sorted += sqlite3_stmt_status(static_cast<sqlite3_stmt*>(statement), SQLITE_STMTSTATUS_SORT, 0);
  return 0;
}

int WatchSorts(sqlite3* connection, const char**, const sqlite3_api_routines*) {
  return sqlite3_trace_v2(connection, SQLITE_TRACE_PROFILE, CountSorts, nullptr);
}

// A key may have a million rows. If each page sorted all of them, reading all pages would take quadratic time.
TEST_F(StoreTest, RowsOfAKeyComeInOrderWithoutSorting) {
  Add({SampleTiming(1, "a", 1e-3), SampleTiming(2, "b", 1e-3)});
  const auto watch = reinterpret_cast<void (*)()>(WatchSorts);
  ASSERT_EQ(sqlite3_auto_extension(watch), SQLITE_OK);
  const std::unique_ptr<Store> watched = OpenOrDie(OpenMode::kReadOnly);
  sorted = 0;
  for (const size_t digits : {size_t{2}, SampleKey().workload_digest.size()}) {
    const Filter filter = {.workload_digest = SampleKey().workload_digest.substr(0, digits),
                           .target = SampleKey().target,
                           .device_fingerprint = SampleKey().device_fingerprint,
                           .compiler_version = SampleKey().compiler_version,
                           .limit = 1};
    const auto page = watched->Query(filter);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_THAT(Ids(page->rows), ElementsAre("batch-7/1"));
  }
  sqlite3_cancel_auto_extension(watch);
  EXPECT_EQ(sorted, 0);
}

}  // namespace
}  // namespace hone::records
