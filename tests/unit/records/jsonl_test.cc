// SPDX-License-Identifier: Apache-2.0
#include "records/jsonl.h"

#include <sqlite3.h>

#include <sstream>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "records/store.h"
#include "storage/open.h"
#include "storage/sqlite/connection.h"
#include "tests/unit/records/sample_records.h"

namespace hone::records {
namespace {

using storage::Connection;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A `write` function for Export, which appends to `lines`.
auto Into(std::stringstream& lines) {
  return [&lines](const std::string& more) {
    lines << more;
    return absl::OkStatus();
  };
}

std::unique_ptr<Store> OpenOrDie(const std::filesystem::path& path) {
  auto store = storage::OpenRecords(path, OpenMode::kReadWrite);
  HONE_CHECK(store.ok());
  return *std::move(store);
}

TEST(JsonLineTest, EveryFieldReadsBack) {
  Record record = Confirmed(SampleTiming(1, "split \"oc\" \n µ", 0.1 + 0.2));
  EXPECT_EQ(*RecordFromJson(RecordToJson(record)), record);
  EXPECT_EQ(RecordToJson(record).find('\n'), std::string::npos);
  for (const Outcome& outcome : {Outcome(Timing()), Outcome(Failure())}) {
    const Record full = EveryValueSet(outcome);
    EXPECT_EQ(*RecordFromJson(RecordToJson(full)), full);
  }
  const Record failure = SampleFailure(2, "", FailureKind::kCompileTimeout);
  EXPECT_EQ(*RecordFromJson(RecordToJson(failure)), failure);
}

TEST(JsonLineTest, SaysWhichFieldIsWrong) {
  const std::string good = RecordToJson(SampleTiming(1, "a", 1e-3));
  const auto expect = [&](std::string_view old_text, std::string_view new_text, const char* about) {
    std::string line = good;
    const size_t at = line.find(old_text);
    ASSERT_NE(at, std::string::npos) << old_text;
    line.replace(at, old_text.size(), new_text);
    const absl::Status status = RecordFromJson(line).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << line;
    EXPECT_THAT(std::string(status.message()), HasSubstr(about));
  };
  expect("{", "", "not JSON: ");
  expect("\"hone_record\":1", "\"hone_record\":2", "format 1");
  expect("\"hone_record\":1,", "", "format 1");
  expect("\"target\"", "\"goal\"", "field target is missing");
  expect("\"digest\"", "\"hash\"", "field workload.digest is missing");
  expect("\"timing\"", "\"time\"", "exactly one of");
  expect("\"timing\"", "\"failure\":{\"kind\":\"crashed\"},\"timing\"", "exactly one of");
  expect("\"seconds\":[", "\"seconds\":[\"fast\",", "field timing.seconds must be a list of numbers");
  expect("\"verified\":true", "\"verified\":1", "field timing.verified must be true or false");
  expect("\"clock_hertz\":", "\"clock_hertz\":\"x\",\"was\":", "field timing.clock_hertz must be a number");
  expect("\"seed\":", "\"seed\":-1,\"was\":", "field seed must be an integer of 0 or more");
  expect("\"first_interleaved\":", "\"first_interleaved\":9223372036854775808,\"was\":",
         "field timing.first_interleaved is 9223372036854775808; the largest allowed value is 9223372036854775807");
  expect("\"first_interleaved\":", "\"first_interleaved\":4294967296,\"was\":", "there are only 3 repeats");
  expect("\"measured_at_ms\":", "\"measured_at_ms\":-9007199254740993,\"was\":",
         "measured_at_ms is -9007199254740993; it must be");
  expect("\"measured_at_ms\":", "\"measured_at_ms\":9223372036855,\"was\":",
         "is 9223372036855; the largest allowed value is 9223372036854");
  expect("\"flops\":", "\"flops\":1e999,\"was\":", "number overflow parsing '1e999'");
  expect("\"schedule\":\"a\"", "\"schedule\":\"\xff\"", "ill-formed UTF-8 byte");
  EXPECT_THAT(std::string(RecordFromJson("[1]").status().message()), HasSubstr("not a JSON object"));
  std::string failure = RecordToJson(SampleFailure(1, "a", FailureKind::kCrashed));
  failure.replace(failure.find("crashed"), 7, "unlucky");
  EXPECT_THAT(std::string(RecordFromJson(failure).status().message()), HasSubstr("'unlucky' is not known"));
}

TEST(JsonLineTest, UnknownFieldsAreIgnored) {
  const Record record = SampleTiming(1, "a", 1e-3);
  std::string line = RecordToJson(record);
  line.insert(1, "\"colour\":[1,{}],");
  EXPECT_EQ(*RecordFromJson(line), record);
}

TEST(ExportImportTest, CarriesAllRecordsAndMergesTwice) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto from = OpenOrDie(folder / "from.db");
  std::vector<Record> records;
  for (int i = 0; i < 2500; ++i) {  // several pages and batches
    records.push_back(i % 3 == 0 ? SampleFailure(i, "a", FailureKind::kCrashed) : SampleTiming(i, "a", 1e-3));
  }
  ASSERT_EQ(from->Append(records)->appended, 2500u);
  std::stringstream lines;
  EXPECT_EQ(Export(*from, {}, Into(lines))->records, 2500);

  const auto to = OpenOrDie(folder / "to.db");
  ASSERT_TRUE(to->Append(std::vector<Record>{records[0], SampleTiming(9999, "own", 1)}).ok());
  std::stringstream first(lines.str());
  const auto report = Import(*to, first, Instant::max());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->lines, 2500u);
  EXPECT_EQ(report->appended, 2499u);
  EXPECT_EQ(report->duplicates, 1u);
  std::stringstream second(lines.str());
  EXPECT_EQ(Import(*to, second, Instant::max())->duplicates, 2500u);
  EXPECT_EQ(to->Summarize()->records, 2501);
  const auto rows = to->Query({.after_row = 2, .limit = 3000, .with_workload_text = true});
  ASSERT_THAT(rows->rows, SizeIs(2499));
  for (size_t i = 0; i < rows->rows.size(); ++i) ASSERT_EQ(rows->rows[i].record, records[i + 1]);
}

TEST(ExportImportTest, ExportFollowsTheFilter) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto store = OpenOrDie(folder / "records.db");
  ASSERT_TRUE(
      store->Append(std::vector<Record>{SampleTiming(1, "a", 1), SampleFailure(2, "b", FailureKind::kCrashed)}).ok());
  std::stringstream lines;
  EXPECT_EQ(Export(*store, {.outcomes = Filter::Outcomes::kFailed}, Into(lines))->records, 1);
  EXPECT_THAT(lines.str(), HasSubstr("\"kind\":\"crashed\""));
}

TEST(ExportImportTest, AnOutputThatFailsIsAnError) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto store = OpenOrDie(folder / "records.db");
  ASSERT_TRUE(store->Append(std::vector<Record>{SampleTiming(1, "a", 1)}).ok());
  const auto full = [](const std::string&) { return absl::ResourceExhaustedError("full"); };
  EXPECT_TRUE(absl::IsResourceExhausted(Export(*store, {}, full).status()));
}

TEST(ExportImportTest, UnreadableRowsAreCounted) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto store = OpenOrDie(folder / "records.db");
  std::vector<Record> records;
  for (int i = 0; i < 1500; ++i) records.push_back(SampleTiming(i, "a", 1e-3));  // several pages
  ASSERT_TRUE(store->Append(records).ok());
  ASSERT_TRUE(Connection::Open(store->path(), SQLITE_OPEN_READWRITE, "")
                  ->Execute("UPDATE measurements SET seconds = '[1,x]' WHERE id IN (1, 1000, 1001, 1500)")
                  .ok());
  std::stringstream lines;
  const auto report = Export(*store, {}, Into(lines));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->records, 1496);
  EXPECT_EQ(report->unreadable, 4);
}

// The buffer of a file whose disk fails after the given text.
class BreakingOff : public std::stringbuf {
 public:
  using std::stringbuf::stringbuf;

 protected:
  int_type underflow() override {
    const int_type next = std::stringbuf::underflow();
    if (next == traits_type::eof()) throw std::ios_base::failure("the disk failed");
    return next;
  }
};

TEST(ExportImportTest, AStreamThatFailsIsAnErrorThatNamesTheLine) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto store = OpenOrDie(folder / "records.db");
  BreakingOff buffer(RecordToJson(SampleTiming(1, "a", 1e-3)) + "\n{\"hone_rec");
  std::istream in(&buffer);
  const absl::Status status = Import(*store, in, Instant::max()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("line 2 cannot be read"));
  EXPECT_EQ(store->Summarize()->records, 1);
}

// A failure dated in the year 2100 would rule out every timing of its schedule until then.
TEST(ExportImportTest, FutureTimesAreLowered) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto store = OpenOrDie(folder / "records.db");
  const Instant now(std::chrono::milliseconds(1'800'000'000'000));
  Record before = SampleTiming(1, "a", 1e-3), ahead = SampleTiming(2, "a", 1e-3);
  before.measured_at = now + std::chrono::minutes(4);
  ahead.measured_at = Instant(std::chrono::milliseconds(4'100'000'000'000));
  std::stringstream lines(RecordToJson(before) + "\n" + RecordToJson(ahead) + "\n");
  const ImportReport report = Import(*store, lines, MeasuredAtMax(now)).value();
  EXPECT_EQ(report.appended, 2u);
  EXPECT_EQ(report.future_dated, 1u);
  const auto rows = store->Query({});
  ASSERT_TRUE(rows.ok() && rows->rows.size() == 2) << rows.status();
  EXPECT_EQ(rows->rows[0].record.measured_at, before.measured_at);
  EXPECT_EQ(rows->rows[1].record.measured_at, now + std::chrono::minutes(5));
}

TEST(ExportImportTest, DamagedLinesAreNamedAndTheRestIsImported) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto store = OpenOrDie(folder / "records.db");
  Record refused = SampleTiming(3, "c", 1e-3);
  refused.workload_text = "another text";
  std::stringstream lines;
  lines << RecordToJson(SampleTiming(1, "a", 1e-3)) << "\n\n"               // 1, and an empty line
        << RecordToJson(SampleTiming(2, "b", 1e-3)).substr(0, 100) << "\n"  // 3: cut short
        << RecordToJson(refused) << "\r\n"                                  // 4: refused by the store
        << std::string((64 << 20) + 10, 'x') << "\n"                        // 5: far too long
        << std::string("\0\xFF{}", 4) << "\n"                               // 6: not text
        << RecordToJson(SampleTiming(4, "d", 1e-3));                        // 7, without a line end
  const auto report = Import(*store, lines, Instant::max());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->lines, 6u);
  EXPECT_EQ(report->appended, 2u);
  EXPECT_EQ(report->rejected, 4u);
  ASSERT_THAT(report->first_rejected, SizeIs(4));
  EXPECT_EQ(report->first_rejected[0].line, 3u);
  EXPECT_EQ(report->first_rejected[1].line, 4u);
  EXPECT_THAT(report->first_rejected[1].why, HasSubstr("another text"));
  EXPECT_EQ(report->first_rejected[2].line, 5u);
  EXPECT_THAT(report->first_rejected[2].why, HasSubstr("bytes"));
  EXPECT_EQ(report->first_rejected[3].line, 6u);
}

}  // namespace
}  // namespace hone::records
