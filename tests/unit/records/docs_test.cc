// SPDX-License-Identifier: Apache-2.0
// Runs every SQL example of docs/RECORDS.md, and checks that the page names what the file has.
#include <sqlite3.h>

#include <fstream>
#include <sstream>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "records/store.h"
#include "storage/open.h"
#include "tests/unit/records/sample_records.h"

namespace hone::records {
namespace {

using ::testing::HasSubstr;

std::string TextOfPage() {
  std::ifstream file(HONE_SOURCE_DIR "/docs/RECORDS.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> SqlExamples(const std::string& page) {
  std::vector<std::string> examples;
  const std::string fence = "```sql\n";
  for (size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at + 1)) {
    const size_t begin = at + fence.size();
    examples.push_back(page.substr(begin, page.find("```", begin) - begin));
  }
  return examples;
}

class DocsTest : public testing::Test {
 protected:
  DocsTest() {
    Key elsewhere = SampleKey();
    elsewhere.device_fingerprint = "board";
    Record of_net = SampleTiming(4, "c", 3e-3, elsewhere);
    of_net.model = "net.onnx";
    of_net.job_id = "j1";
    of_net.title = "conv2d 8x8x4";
    of_net.nodes = "conv1, relu1";
    const auto store = storage::OpenRecords(folder_ / "records.db", OpenMode::kReadWrite);
    HONE_CHECK(store.ok());
    HONE_CHECK((*store)
                   ->Append(std::vector<Record>{OfDefault(Confirmed(SampleTiming(1, "a", 4e-3))),
                                                Confirmed(SampleTiming(2, "b", 1e-3)), SampleTiming(3, "c", 2e-3),
                                                of_net, SampleFailure(5, "e", FailureKind::kCrashed, elsewhere)})
                   .ok());
    HONE_CHECK(sqlite3_open_v2((folder_ / "records.db").c_str(), &handle_, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
  }
  ~DocsTest() override { sqlite3_close(handle_); }

  // Rows as "a|b|c".
  std::vector<std::string> Run(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(handle_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sqlite3_errmsg(handle_) << " in " << sql;
    std::vector<std::string> rows;
    while (statement != nullptr && sqlite3_step(statement) == SQLITE_ROW) {
      std::string& row = rows.emplace_back();
      for (int column = 0; column < sqlite3_column_count(statement); ++column) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
        row += fmt::format("{}{}", column == 0 ? "" : "|", text == nullptr ? "NULL" : text);
      }
    }
    sqlite3_finalize(statement);
    return rows;
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  sqlite3* handle_ = nullptr;
};

TEST_F(DocsTest, EveryExampleRunsAndFindsWhatItSays) {
  const std::vector<std::string> examples = SqlExamples(TextOfPage());
  ASSERT_EQ(examples.size(), 7u);
  EXPECT_THAT(Run(examples[0]), testing::ElementsAre("j1|board|1700000000|1|1"));
  EXPECT_THAT(Run(examples[1]), testing::ElementsAre("conv1, relu1|conv2d 8x8x4|board|3.0"));
  EXPECT_THAT(Run(examples[2]), testing::ElementsAre("conv2d|a|1.0", "conv2d|b|4.0"));
  EXPECT_THAT(Run(examples[3]), testing::ElementsAre("board|crashed|1"));
  EXPECT_THAT(Run(examples[4]), testing::UnorderedElementsAre("board|3.0", SampleKey().device_fingerprint + "|3.0"));
  EXPECT_THAT(Run(examples[5]), testing::ElementsAre("1|4.0|4.0", "2|1.0|1.0", "3|2.0|1.0", "4|3.0|1.0"));
  EXPECT_THAT(Run(examples[6]), testing::ElementsAre("conv2d|board|3.0|" + SampleKey().device_fingerprint + "|2.0"));
}

TEST_F(DocsTest, ThePageNamesEveryColumnAndFailureKind) {
  const std::string page = TextOfPage();
  for (const Column& column : kColumns) {
    EXPECT_THAT(page, HasSubstr(fmt::format("`{}`", column.name)));
    EXPECT_THAT(page, HasSubstr(fmt::format("`{}`", column.json)));
  }
  for (const char* table : {"workloads", "texts", "records"}) {
    for (const std::string& name : Run(fmt::format("SELECT name FROM pragma_table_info('{}')", table))) {
      EXPECT_THAT(page, HasSubstr("`" + name + "`")) << "column of " << table;
    }
  }
  for (const FailureKind kind : kAllFailureKinds) {
    EXPECT_THAT(page, HasSubstr(fmt::format("`{}`", FailureKindName(kind))));
  }
}

}  // namespace
}  // namespace hone::records
