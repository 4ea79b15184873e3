// SPDX-License-Identifier: Apache-2.0
#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "compiler/ir/workload.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "records/jsonl.h"
#include "records/store.h"
#include "storage/open.h"
#include "storage/sqlite/connection.h"
#include "tests/unit/records/sample_records.h"

namespace hone::cli {
namespace {

using nlohmann::json;
using records::Record;
using records::SampleFailure;
using records::SampleTiming;
using ::testing::AllOf;
using ::testing::HasSubstr;

class RecordsCommandTest : public testing::Test {
 protected:
  RecordsCommandTest() {
    Append({SampleTiming(1, "slow", 4e-3), SampleTiming(2, "split oc 16", 1e-3),
            SampleFailure(3, "e", FailureKind::kCrashed)});
  }
  void Append(const std::vector<Record>& rows) const {
    const auto store = storage::OpenRecords(File(), records::OpenMode::kReadWrite);
    HONE_CHECK(store.ok() && (*store)->Append(rows)->appended == rows.size());
  }
  std::filesystem::path File() const { return folder_ / "records.db"; }

  // Runs `hone records ARGUMENTS --records FILE` and returns its exit code. Its output is then in out_ and error_.
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "records");
    arguments.insert(arguments.end(), {"--records", File().string()});
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes a vector in reverse order
    CLI::App app;
    result_ = absl::OkStatus();
    AddRecordsCommand(app, &result_);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int code = kSuccess;
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError&) {
      code = kWrongUsage;
    }
    out_ = testing::internal::GetCapturedStdout();
    if (code == kSuccess) code = FinishCommand(result_);
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  absl::Status result_;
  std::string out_;
  std::string error_;
};

TEST_F(RecordsCommandTest, StatsAsJsonIsTheContract) {
  ASSERT_EQ(Run({"stats", "--json"}), kSuccess) << error_;
  const json document = json::parse(out_);
  EXPECT_EQ(document["records"], 3);
  EXPECT_EQ(document["workloads"], 1);
  EXPECT_EQ(document["devices"], 1);
  EXPECT_EQ(document["failed"]["crashed"], 1);
  EXPECT_EQ(document["failed"]["wrong_output"], 0);
}

TEST_F(RecordsCommandTest, StatsForPeople) {
  ASSERT_EQ(Run({"stats"}), kSuccess);
  EXPECT_THAT(out_, AllOf(HasSubstr("3 records, 1 workloads, 1 devices"), HasSubstr("failed: 1 crashed")));
}

TEST_F(RecordsCommandTest, BestAsJson) {
  ASSERT_EQ(Run({"--json", "best"}), kSuccess) << error_;
  const json best = json::parse(out_)["best"];
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0]["workload"], "d1ge57");
  EXPECT_EQ(best[0]["schedule"], "split oc 16");
  EXPECT_DOUBLE_EQ(best[0]["median_ms"], 1.0);
  EXPECT_EQ(best[0]["records"], 3);
  EXPECT_EQ(best[0]["measured_at"], "2023-11-14T22:13:20Z");
  ASSERT_EQ(Run({"best", "--workload", "other", "--json"}), kSuccess);
  EXPECT_EQ(json::parse(out_)["best"], json::array());
}

TEST_F(RecordsCommandTest, BestForPeople) {
  ASSERT_EQ(Run({"best"}), kSuccess);
  EXPECT_THAT(out_, AllOf(HasSubstr("1.00 ms  250.0 GFLOP/s  best of 3 records"), HasSubstr("split oc 16")));
}

TEST_F(RecordsCommandTest, QueryFiltersByFailure) {
  ASSERT_EQ(Run({"query", "--failed", "any", "--json"}), kSuccess) << error_;
  const json rows = json::parse(out_)["records"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["failure"]["kind"], "crashed");
  EXPECT_EQ(rows[0]["row"], 3);
  ASSERT_EQ(Run({"query", "--failed", "wrong_output"}), kSuccess);
  EXPECT_EQ(out_, "");
  ASSERT_EQ(Run({"query", "--failed", "unlucky"}), kWrongUsage);
}

TEST_F(RecordsCommandTest, QueryAsJsonHasTheTextOfTheWorkload) {
  ASSERT_EQ(Run({"query", "--limit", "1", "--json"}), kSuccess) << error_;
  EXPECT_EQ(json::parse(out_)["records"][0]["workload"]["text"], "workload conv2d of d1ge57");
}

TEST_F(RecordsCommandTest, ATargetIsFoundAsStoredAndInTheWordsOfToday) {
  const std::string stored = "x86_64 -mcpu=znver4 -threads=2";
  const std::string today = target::Print(target::ParseTarget(stored).value());
  ASSERT_NE(today, stored) << "an earlier Hone knew no caches";
  records::Key key = records::SampleKey();
  key.target = stored;
  Append({SampleTiming(8, "then", 1e-3, key)});
  key.target = today;
  Append({SampleTiming(9, "today", 1e-3, key)});
  ASSERT_EQ(Run({"best", "--target", stored, "--json"}), kSuccess) << error_;
  EXPECT_EQ(json::parse(out_)["best"].size(), 2u);
  ASSERT_EQ(Run({"best", "--target", "x86_64 -mcpu=znver4", "--threads", "2", "--json"}), kSuccess) << error_;
  ASSERT_EQ(json::parse(out_)["best"].size(), 1u);
  EXPECT_EQ(json::parse(out_)["best"][0]["schedule"], "today");
  ASSERT_EQ(Run({"query", "--target", "of another Hone", "--json"}), kSuccess) << error_;
}

TEST_F(RecordsCommandTest, OptionsOfAModelNeedAModel) {
  for (const char* verb : {"best", "query", "why"}) {
    EXPECT_EQ(Run({verb, "--threads", "2"}), kWrongUsage) << verb;
    EXPECT_EQ(Run({verb, "--shape", "x=1"}), kWrongUsage) << verb;
    EXPECT_EQ(Run({verb, "--bind", "x=1"}), kWrongUsage) << verb;
    EXPECT_EQ(Run({verb, "--target", "of another Hone", "--threads", "2"}), kWrongUsage) << verb;
  }
}

TEST_F(RecordsCommandTest, QueryForPeopleSaysWhereItStopped) {
  ASSERT_EQ(Run({"query", "--limit", "2"}), kSuccess);
  EXPECT_THAT(error_, HasSubstr("--after 2 shows the next"));
  EXPECT_THAT(out_, HasSubstr("4.00 ms"));
  ASSERT_EQ(Run({"query", "--after", "2"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("crashed: block oc: 7 does not fit"));
}

TEST_F(RecordsCommandTest, ExportAndImportRoundTrip) {
  const std::string lines = (folder_ / "lines.jsonl").string();
  ASSERT_EQ(Run({"export"}), kSuccess);
  const std::string exported = out_;
  ASSERT_EQ(Run({"export", "-o", lines, "--json"}), kSuccess) << error_;
  EXPECT_EQ(json::parse(out_)["records"], 3);
  std::ifstream file(lines);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), exported);
  std::filesystem::remove(File());
  ASSERT_EQ(Run({"import", lines}), kSuccess) << error_;
  EXPECT_EQ(out_, "3 lines: 3 records added, 0 existed already\n");
  ASSERT_EQ(Run({"import", lines, "--json"}), kSuccess) << error_;
  EXPECT_EQ(json::parse(out_)["duplicates"], 3);
  EXPECT_EQ(json::parse(out_)["to_come"], 0);
}

TEST_F(RecordsCommandTest, ExportTakesNoNameThatSomebodyElseHas) {
  const std::filesystem::path lines = folder_ / "lines.jsonl", other = folder_ / "other";
  std::ofstream(other) << "of somebody else";
  std::filesystem::create_symlink(other, lines.string() + ".partial");
  ASSERT_EQ(Run({"export", "-o", lines.string()}), kSuccess) << error_;
  EXPECT_EQ(std::filesystem::file_size(other), 16u);
  EXPECT_TRUE(std::filesystem::is_symlink(lines.string() + ".partial"));
}

TEST_F(RecordsCommandTest, AnExportThatLacksRecordsFails) {
  const std::string lines = (folder_ / "lines.jsonl").string();
  ASSERT_TRUE(storage::Connection::Open(File(), SQLITE_OPEN_READWRITE, "")
                  ->Execute("UPDATE measurements SET seconds = '[1,x]' WHERE id = 2")
                  .ok());
  EXPECT_EQ(Run({"export", "-o", lines}), kWorkFailed);
  EXPECT_THAT(error_,
              HasSubstr(fmt::format("1 records of {} cannot be read; the export has the other 2", File().string())));
  EXPECT_THAT(out_, HasSubstr("wrote 2 records"));
  EXPECT_TRUE(std::filesystem::exists(lines));
  EXPECT_EQ(Run({"export"}), kWorkFailed);
}

TEST_F(RecordsCommandTest, ImportNamesTheDamagedLineAndFails) {
  const std::string lines = (folder_ / "lines.jsonl").string();
  std::ofstream(lines) << "{\n" << records::RecordToJson(SampleTiming(7, "new", 1e-4)) << "\n";
  EXPECT_EQ(Run({"import", lines}), kWorkFailed);
  EXPECT_THAT(error_, AllOf(HasSubstr("1 of 2 lines"), HasSubstr("line 1: not JSON: ")));
  EXPECT_THAT(out_, HasSubstr("1 records added"));
  EXPECT_EQ(Run({"import", lines, "--json"}), kWorkFailed);
  EXPECT_EQ(json::parse(out_)["first_rejected"][0]["line"], 1);
}

// The workload has no winner, and its text is checked all the same.
TEST_F(RecordsCommandTest, VerifyFindsATextWithOtherNamesUnderTheDigest) {
  const std::string renamed =
      "workload \"twice\"\ninput x: f32[1000] in [-1, 1]\nt: f32[1000] over a:1000 = x[a] + x[a]\noutput t\n";
  const ir::Workload workload = ir::ParseWorkload(renamed).value();
  Record row = SampleFailure(1, "", FailureKind::kCrashed);
  row.key.workload_digest = ir::WorkloadDigest(workload);
  row.workload_text = renamed;
  std::filesystem::remove(File());
  Append({row});
  EXPECT_EQ(Run({"verify"}), kWorkFailed);
  EXPECT_THAT(error_,
              HasSubstr(fmt::format("workload {:.12}: its text does not have this digest", row.key.workload_digest)));
  row.measurement_id = "m/2";
  row.workload_text = ir::Print(ir::Canonicalize(workload));
  Append({row});
  EXPECT_EQ(Run({"verify"}), kSuccess) << error_;
}

TEST_F(RecordsCommandTest, VerifyEndsWhateverTheNumbersOfRows) {
  for (const char* id : {"4611686018427387904", "-7"}) {
    std::filesystem::remove(File());
    Append({SampleFailure(1, "e", FailureKind::kCrashed)});
    ASSERT_TRUE(storage::Connection::Open(File(), SQLITE_OPEN_READWRITE, "")
                    ->Execute(fmt::format("UPDATE measurements SET id = {}", id))
                    .ok());
    Run({"verify", "--json"});
    EXPECT_EQ(json::parse(out_)["rows"], 1) << id;
  }
}

TEST_F(RecordsCommandTest, PruneMakesNoFile) {
  std::filesystem::remove(File());
  EXPECT_EQ(Run({"prune", "--older-than", "1", "--yes"}), kWorkFailed);
  EXPECT_THAT(error_, HasSubstr("there is no records file"));
  EXPECT_FALSE(std::filesystem::exists(File()));
}

TEST_F(RecordsCommandTest, TablesHaveTheNamesOfTheirColumns) {
  ASSERT_EQ(Run({"query", "--csv", "--limit", "0"}), kSuccess);
  std::string names = "id";
  for (const records::Column& column : records::kColumns) {
    if (column.name != "text") names += fmt::format(",{}", column.name);
  }
  EXPECT_EQ(out_, names + ",median_ms\r\n");
  ASSERT_EQ(Run({"best", "--csv"}), kSuccess);
  const std::string best = out_;
  ASSERT_EQ(Run({"best", "--csv", "--workload", "other"}), kSuccess);
  EXPECT_THAT(out_, AllOf(testing::StartsWith("workload,operator,target,"),
                          testing::EndsWith(",measurement,sizes,title,model,nodes\r\n")));
  EXPECT_THAT(best, testing::StartsWith(out_)) << "the same names without a row";
}

TEST_F(RecordsCommandTest, RowsOfAModelHaveNoNextPage) {
  EXPECT_EQ(Run({"query", "--model", "m.onnx", "--after", "2"}), kWrongUsage);
  EXPECT_THAT(error_, HasSubstr("--after cannot be used with --model"));
}

TEST_F(RecordsCommandTest, ErrorsSayWhatAndWhere) {
  EXPECT_EQ(Run({"import", (folder_ / "none.jsonl").string()}), kWorkFailed);
  EXPECT_THAT(error_, AllOf(HasSubstr("hone: cannot read"), HasSubstr("none.jsonl")));
  EXPECT_EQ(Run({"import", "/proc/self/mem"}), kWorkFailed);
  EXPECT_THAT(error_, HasSubstr("import of /proc/self/mem: line 1 cannot be read: Input/output error"));
  EXPECT_EQ(Run({"import", folder_.path().string()}), kWorkFailed);
  EXPECT_THAT(error_, HasSubstr("is a folder"));
  EXPECT_EQ(Run({"export", "-o", (folder_ / "none/lines").string()}), kWorkFailed);
  EXPECT_THAT(error_, HasSubstr("cannot create a file beside"));
  EXPECT_EQ(Run({"export", "-o", File().string()}), kWrongUsage);
  EXPECT_THAT(error_, HasSubstr("is also an input of this command"));
  EXPECT_EQ(Run({"export", "--json"}), kWrongUsage);
  EXPECT_EQ(Run({}), kWrongUsage);
  EXPECT_EQ(Run({"forget"}), kWrongUsage);
  std::filesystem::remove(File());
  EXPECT_EQ(Run({"stats"}), kWorkFailed);
  EXPECT_THAT(error_, HasSubstr("there is no records file"));
}

}  // namespace
}  // namespace hone::cli
