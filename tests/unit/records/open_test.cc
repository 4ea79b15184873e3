// SPDX-License-Identifier: Apache-2.0
// Opening a records file: everything that can be wrong with the file, its folder, its lock and its schema.
#include "storage/open.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "records/default_path.h"
#include "records/store.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/record_schema.h"
#include "tests/unit/records/sample_records.h"

namespace hone::records {
namespace {

using storage::Connection;
using storage::DatabaseKind;
using storage::IsConstraintError;
using storage::kApplicationId;
using storage::kRecordsFile;
using storage::Migrate;
using storage::OpenToWrite;
using ::testing::AllOf;
using ::testing::HasSubstr;

class OpenTest : public testing::Test {
 protected:
  std::filesystem::path File() const { return folder_ / "records.db"; }

  void Create(int records = 3) const {
    auto store = storage::OpenRecords(File(), OpenMode::kReadWrite);
    ASSERT_TRUE(store.ok()) << store.status();
    for (int i = 0; i < records; ++i) {
      ASSERT_TRUE((*store)->Append(std::vector<Record>{SampleTiming(i, "split oc 16", 1e-3)}).ok());
    }
  }
  // Runs SQL on the file as another program would.
  void Sql(const std::string& sql) const {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(File().c_str(), &handle), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(handle);
  }
  void Fill(std::string_view text) const { std::ofstream(File(), std::ios::binary) << text; }

  absl::Status TryOpen(OpenMode mode) const { return storage::OpenRecords(File(), mode).status(); }

  void ExpectBoth(absl::StatusCode code, const std::string& about) const {
    for (const OpenMode mode : {OpenMode::kReadOnly, OpenMode::kReadWrite}) {
      const absl::Status status = TryOpen(mode);
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(File().string()), HasSubstr(about)));
    }
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

// While it lives, the process does not have the rights of root, which would pass every check of permissions.
class AsNobody {
 public:
  AsNobody() : root_(geteuid() == 0) {
    if (root_) HONE_CHECK(setegid(65534) == 0 && seteuid(65534) == 0);
  }
  ~AsNobody() {
    if (root_) HONE_CHECK(seteuid(0) == 0 && setegid(0) == 0);
  }

 private:
  bool root_;
};

// A compilation asks for one workload after the other, and takes minutes.
TEST_F(OpenTest, ASnapshotOutlivesItsFile) {
  Create(3);
  const auto snapshot = storage::OpenRecords(File(), OpenMode::kSnapshot);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  {
    auto store = storage::OpenRecords(File(), OpenMode::kReadWrite);
    ASSERT_TRUE((*store)->Append(std::vector<Record>{SampleTiming(7, "split oc 16", 1e-3)}).ok());
  }
  EXPECT_EQ((*snapshot)->Summarize()->records, 3);
  EXPECT_EQ((*storage::OpenRecords(File(), OpenMode::kReadOnly))->Summarize()->records, 4);
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(File().string() + suffix);
  EXPECT_EQ((*snapshot)->Summarize()->records, 3);
  const auto winners = (*snapshot)->AllBest({});
  ASSERT_TRUE(winners.ok()) << winners.status();
  EXPECT_FALSE(winners->empty());
}

TEST_F(OpenTest, CreatesTheFileAndItsFolders) {
  const auto deep = folder_ / "a/b/records.db";
  ASSERT_TRUE(storage::OpenRecords(deep, OpenMode::kReadWrite).ok());
  EXPECT_TRUE(storage::OpenRecords(deep, OpenMode::kReadOnly).ok());
}

TEST_F(OpenTest, ReadingNeedsAFile) {
  const absl::Status status = TryOpen(OpenMode::kReadOnly);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(File().string()), HasSubstr("hone tune")));
  EXPECT_FALSE(std::filesystem::exists(File()));
}

TEST_F(OpenTest, AnEmptyPathIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(storage::OpenRecords("", OpenMode::kReadWrite).status()));
}

TEST_F(OpenTest, APathInAFolderThatIsGone) {
  const std::filesystem::path before = std::filesystem::current_path(), gone = folder_ / "gone";
  std::filesystem::create_directory(gone);
  std::filesystem::current_path(gone);
  std::filesystem::remove(gone);
  const absl::Status status = storage::OpenRecords("records.db", OpenMode::kReadWrite).status();
  std::filesystem::current_path(before);
  EXPECT_THAT(std::string(status.message()), HasSubstr("records file records.db: the working folder does not exist"));
}

TEST_F(OpenTest, AnEmptyFileIsAFreshOne) {
  Fill("");
  EXPECT_TRUE(absl::IsNotFound(TryOpen(OpenMode::kReadOnly)));
  EXPECT_TRUE(TryOpen(OpenMode::kReadWrite).ok());
}

TEST_F(OpenTest, NotADatabase) {
  Fill(
      "this is a long enough text file, which nobody ever thought of as a database of any kind at all, "
      "and which must be left as it is whatever somebody passes as --records");
  ExpectBoth(absl::StatusCode::kFailedPrecondition, "not an SQLite database");
}

TEST_F(OpenTest, AFolder) {
  std::filesystem::create_directory(File());
  ExpectBoth(absl::StatusCode::kFailedPrecondition, "is a folder");
}

TEST_F(OpenTest, NotARegularFile) {
  ASSERT_EQ(mkfifo(File().c_str(), 0644), 0);
  ExpectBoth(absl::StatusCode::kFailedPrecondition, "not a regular file");
}

TEST_F(OpenTest, AnotherProgramsDatabaseIsLeftAlone) {
  Sql("CREATE TABLE t (x); PRAGMA user_version = 1;");
  ExpectBoth(absl::StatusCode::kFailedPrecondition, "another program");
  Sql("PRAGMA application_id = 7;");
  ExpectBoth(absl::StatusCode::kFailedPrecondition, "another program");
  std::ifstream file(File(), std::ios::binary);
  std::string header(20, '\0');
  file.read(header.data(), 20);
  EXPECT_EQ(header[18], 1) << "its journal mode was changed";
}

TEST_F(OpenTest, ANewerSchema) {
  Create();
  Sql("PRAGMA user_version = 99;");
  ExpectBoth(absl::StatusCode::kFailedPrecondition, "newer Hone (schema 99");
}

TEST_F(OpenTest, AFileCutShortIsReportedAsDamaged) {
  Create(400);
  std::filesystem::resize_file(File(), std::filesystem::file_size(File()) / 2);
  ExpectBoth(absl::StatusCode::kDataLoss, "damaged");
}

TEST_F(OpenTest, CommandsToPasteTakeThePathAsOneWord) {
  const std::filesystem::path file = folder_ / "of the lab.db";
  const auto connection = Connection::Open(file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "");
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_THAT(std::string(connection->Damaged("x").message()), HasSubstr("sqlite3 '" + file.string() + "' .dump"));
  ASSERT_EQ(Migrate(*connection, file, kRecordsFile, 2), absl::OkStatus());
  const absl::Status old = storage::OpenRecords(file, OpenMode::kReadOnly).status();
  EXPECT_THAT(std::string(old.message()), HasSubstr("--records '" + file.string() + "' /dev/null"));
}

TEST_F(OpenTest, AnOverwrittenPageIsReportedAsDamaged) {
  Create(400);
  std::fstream file(File(), std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(5 * 4096);
  file << std::string(4096, '\x5A');
  file.close();
  ExpectBoth(absl::StatusCode::kDataLoss, "damaged");
}

TEST_F(OpenTest, AReadOnlyFileInAReadOnlyFolder) {
  Create();
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0555));
  std::filesystem::permissions(File(), std::filesystem::perms(0444));
  {
    const AsNobody nobody;
    const absl::Status status = TryOpen(OpenMode::kReadWrite);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(File().string()), HasSubstr("writable")));
    const auto store = storage::OpenRecords(File(), OpenMode::kReadOnly);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->Summarize()->records, 3);
    const absl::Status fresh = storage::OpenRecords(folder_ / "new.db", OpenMode::kReadWrite).status();
    EXPECT_TRUE(absl::IsPermissionDenied(fresh)) << fresh;
    const absl::Status deeper = storage::OpenRecords(folder_ / "new/records.db", OpenMode::kReadWrite).status();
    EXPECT_TRUE(absl::IsPermissionDenied(deeper)) << deeper;
  }
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
}

TEST_F(OpenTest, AFileThatMayNotBeRead) {
  Create();
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(File(), std::filesystem::perms(0000));
  const AsNobody nobody;
  ExpectBoth(absl::StatusCode::kPermissionDenied, "cannot read");
}

TEST_F(OpenTest, ASecretThatCannotBeClosedToOthersIsNotOpened) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has files that another user may not close";
  Create();
  std::filesystem::remove(File().string() + ".lock");
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0777));
  std::filesystem::permissions(File(), std::filesystem::perms(0666));
  DatabaseKind secret = kRecordsFile;
  secret.secret = true;
  const AsNobody nobody;
  const absl::Status status = OpenToWrite(File(), secret).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("chmod go= " + File().string()));
}

TEST_F(OpenTest, FilesLeftByAReaderOfAnotherUserAreNamed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has files that another user may not write";
  Create();
  std::filesystem::remove(File().string() + ".lock");
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0777));
  std::filesystem::permissions(File(), std::filesystem::perms(0666));
  std::ofstream(File().string() + "-shm") << "an index";
  const AsNobody nobody;
  const absl::Status status = TryOpen(OpenMode::kReadWrite);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(fmt::format("cannot write {}-shm", File().string())), HasSubstr("remove it")));
}

TEST_F(OpenTest, AUserWhoMayWriteTheFileMayLockIt) {
  Create();
  const std::filesystem::path lock = File().string() + ".lock";
  std::filesystem::permissions(lock, std::filesystem::perms(0600));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0777));
  std::filesystem::permissions(File(), std::filesystem::perms(0666));
  if (geteuid() == 0) {
    const AsNobody nobody;
    const absl::Status status = TryOpen(OpenMode::kReadWrite);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(fmt::format("cannot write the lock {}", lock.string())));
  }
  ASSERT_TRUE(TryOpen(OpenMode::kReadWrite).ok());
  EXPECT_EQ(std::filesystem::status(lock).permissions(), std::filesystem::perms(0666));
  const AsNobody nobody;
  EXPECT_EQ(TryOpen(OpenMode::kReadWrite), absl::OkStatus());
}

TEST_F(OpenTest, AFileInThePlaceOfTheLockIsKept) {
  Create();
  const std::filesystem::path lock = File().string() + ".lock";
  std::ofstream(lock) << "schedules";
  std::filesystem::permissions(lock, std::filesystem::perms(0600));
  const absl::Status status = TryOpen(OpenMode::kReadWrite);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(lock.string()), HasSubstr("move it away")));
  std::stringstream text;
  text << std::ifstream(lock).rdbuf();
  EXPECT_EQ(text.str(), "schedules");
  EXPECT_EQ(std::filesystem::status(lock).permissions(), std::filesystem::perms(0600));
  EXPECT_TRUE(TryOpen(OpenMode::kReadOnly).ok());
}

TEST_F(OpenTest, ACopyWithItsLogInAFolderThatMayNotBeWritten) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has folders that another user may not write";
  Create();
  const std::string log = File().string() + "-wal";
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  std::ofstream(log).close();
  {
    const AsNobody nobody;
    const auto store = storage::OpenRecords(File(), OpenMode::kReadOnly);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->Summarize()->records, 3);
  }
  std::ofstream(log) << "rows that only a log has";
  const AsNobody nobody;
  const absl::Status status = TryOpen(OpenMode::kReadOnly);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("records.db-shm is missing and cannot be created"));
}

// The file is also opened through links. One of them was made before the file.
TEST_F(OpenTest, ASecondWriterIsToldWhoWrites) {
  std::filesystem::create_symlink("records.db", folder_ / "older.db");
  const auto first = storage::OpenRecords(folder_ / "older.db", OpenMode::kReadWrite);
  ASSERT_TRUE(first.ok());
  std::filesystem::create_symlink(File(), folder_ / "alias.db");
  for (const auto& name : {File(), folder_ / "alias.db", folder_ / "older.db"}) {
    const absl::Status status = storage::OpenRecords(name, OpenMode::kReadWrite).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(File().string()), HasSubstr(fmt::format("process {}", getpid())), HasSubstr("wait")));
  }
  EXPECT_TRUE(TryOpen(OpenMode::kReadOnly).ok());
}

TEST_F(OpenTest, TheLockOfADeadWriterIsNoObstacle) {
  const pid_t child = fork();
  if (child == 0) {
    const auto store = storage::OpenRecords(File(), OpenMode::kReadWrite);
    _exit(store.ok() ? 0 : 1);  // the store is not closed
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(TryOpen(OpenMode::kReadWrite).ok());
}

TEST_F(OpenTest, AnotherProgramsLockIsNamed) {
  Create();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(File().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  {
    const auto connection = Connection::Open(File(), SQLITE_OPEN_READWRITE, "");  // does not wait 5 s, unlike the store
    ASSERT_TRUE(connection.ok());
    const absl::Status status = connection->Execute("BEGIN IMMEDIATE");
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(File().string()), HasSubstr("locked by another")));
  }
  sqlite3_close(other);
}

TEST_F(OpenTest, OddCharactersInThePathAreOnlyCharacters) {
  const auto odd = folder_ / "a?mode=memory#50%.db";
  ASSERT_TRUE(storage::OpenRecords(odd, OpenMode::kReadWrite).ok());
  EXPECT_TRUE(std::filesystem::exists(odd));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0555));
  {
    const AsNobody nobody;
    EXPECT_TRUE(storage::OpenRecords(odd, OpenMode::kReadOnly).ok());
  }
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
}

std::string ReleasedSchema(int64_t version) {
  std::ifstream file(fmt::format(HONE_SOURCE_DIR "/tests/unit/records/schema_{}.sql", version));
  std::stringstream sql;
  sql << file.rdbuf();
  return sql.str();
}

std::string SchemaOf(const Connection& connection) {
  return connection.QueryText("SELECT group_concat(sql, ';' || char(10)) FROM sqlite_schema").value() + "\n";
}

// The schema in the order of names, which does not depend on the order in which the tables were made.
std::string SortedSchemaOf(const std::filesystem::path& path) {
  const auto connection = Connection::Open(path, SQLITE_OPEN_READONLY, "");
  return connection->QueryText("SELECT group_concat(sql) FROM (SELECT sql FROM sqlite_schema ORDER BY name)").value();
}

std::string SortedSchemaOfToday() {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  HONE_CHECK(storage::OpenRecords(folder / "records.db", OpenMode::kReadWrite).ok());
  return SortedSchemaOf(folder / "records.db");
}

// A released schema must not change, because existing files have it. A later schema only adds to it.
TEST_F(OpenTest, TheSchemaIsTheReleasedOne) {
  const auto connection = Connection::Open(File(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "");
  ASSERT_TRUE(connection.ok());
  ASSERT_EQ(Migrate(*connection, File(), kRecordsFile, 2), absl::OkStatus());
  EXPECT_EQ(SchemaOf(*connection), ReleasedSchema(2));
}

TEST_F(OpenTest, AFileOfTheFirstSchemaIsBroughtUpToDateWithAllItsRows) {
  Sql(ReleasedSchema(1) + fmt::format(R"sql(;
PRAGMA application_id = {};
PRAGMA user_version = 1;
INSERT INTO workloads VALUES (4, 'd1ge57', 'conv2d', 2.5e8, 'workload conv2d');
INSERT INTO records VALUES
  (7, 'm/1', 'b', 4, 'cpu', 'board', 'hone 0.1.0', 'split', 'oc=4', '[0.002,0.001]', 0.0015, 1, 1, 1e-4, 3e-5, NULL,
   NULL, 61.5, 3.7e9, 'agent-3', 1700000000000, -1),
  (9, 'm/2', '', 4, 'cpu', 'board', 'hone 0.1.0', '', '', NULL, NULL, 0, 0, NULL, NULL, 'crashed', 'signal 11', NULL,
   NULL, 'agent-3', 1700000000001, 5);)sql",
                                      kApplicationId));
  EXPECT_TRUE(absl::IsFailedPrecondition(TryOpen(OpenMode::kReadOnly)));  // a reader may not write
  Record timing;
  timing.key = {"d1ge57", "cpu", "board", "hone 0.1.0"};
  timing.measurement_id = "m/1";
  timing.batch_id = "b";
  timing.schedule = "split";
  timing.decisions = "oc=4";
  timing.outcome = Timing{.seconds = {2e-3, 1e-3},
                          .confirmed = true,
                          .verified = true,
                          .tolerance = 1e-4,
                          .reference_seconds = 3e-5,
                          .temperature_celsius = 61.5,
                          .clock_hertz = 3.7e9};
  timing.operator_label = "conv2d";
  timing.flops = 2.5e8;
  timing.measured_by = "agent-3";
  timing.measured_at = Instant(std::chrono::milliseconds(1'700'000'000'000));
  timing.seed = ~uint64_t{0};
  const auto store = storage::OpenRecords(File(), OpenMode::kReadWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto page = (*store)->Query({});
  ASSERT_TRUE(page.ok() && page->rows.size() == 2) << page.status();
  const std::vector<StoredRecord>& rows = page->rows;
  EXPECT_EQ(rows[0].row, 7);
  EXPECT_EQ(rows[0].record, timing);
  EXPECT_EQ(rows[1].row, 9);
  EXPECT_EQ(rows[1].record.outcome, Outcome(Failure{FailureKind::kCrashed, "signal 11"}));
  EXPECT_EQ(rows[1].record.seed, 5u);
  EXPECT_EQ((*(*store)->Best(timing.key))->stored.row, 7);
  EXPECT_TRUE((*store)->CheckIntegrity().ok());
  EXPECT_EQ(SortedSchemaOf(File()), SortedSchemaOfToday());
}

// A copy of a file of schema 3 can be opened, and stores today's kinds of failure next to its own.
TEST_F(OpenTest, ABackupOfTheThirdSchemaTakesTheKindsOfFailureThatCameLater) {
  const std::filesystem::path written = folder_ / "written.db";
  {
    const auto connection = Connection::Open(written, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "");
    ASSERT_TRUE(connection.ok());
    ASSERT_EQ(Migrate(*connection, written, kRecordsFile, 3), absl::OkStatus());
    ASSERT_EQ(connection->Execute(R"sql(
INSERT INTO workloads VALUES (4, 'd1ge57', 'conv2d', 2.5e8, 'workload conv2d of d1ge57');
INSERT INTO texts VALUES (1, 'cpu'), (2, 'board'), (3, 'hone 0.1.0'), (4, ''), (5, 'agent-3');
INSERT INTO measurements (id, workload_id, measurement, batch, target_id, device_id, compiler_id, schedule, decisions,
  is_default, failure, failure_text, environment_id, measured_by_id, measured_at_ms, seed) VALUES
  (7, 4, 'm/1', 'b', 1, 2, 3, 'split', 'oc=4', 0, 'crashed', 'signal 11', 4, 5, 1700000000000, -1);
INSERT INTO measurements (id, workload_id, measurement, batch, target_id, device_id, compiler_id, schedule, decisions,
  is_default, seconds, first_interleaved, calls_per_repeat, confirmed, verified, drift, environment_id, measured_by_id,
  measured_at_ms, seed, median_seconds) VALUES
  (9, 4, 'm/2', 'b', 1, 2, 3, 'fuse', 'oc=8', 0, '[0.002,0.001]', 0, 3, 1, 1, 0.25, 4, 5, 1700000000001, 5, 0.0015);
)sql"),
              absl::OkStatus());
    EXPECT_TRUE(
        IsConstraintError(connection->Execute("UPDATE measurements SET failure = 'forbidden_call' WHERE id = 7")));
    ASSERT_EQ(connection->CopyTo(File()), absl::OkStatus());
  }
  const Key key = {"d1ge57", "cpu", "board", "hone 0.1.0"};
  const auto store = storage::OpenRecords(File(), OpenMode::kReadWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*(*store)->Best(key))->stored.row, 9);
  const auto report =
      (*store)->Append(std::vector<Record>{SampleFailure(1, "split", FailureKind::kForbiddenCall, key),
                                           SampleFailure(2, "fuse", FailureKind::kImpossibleTime, key)});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->appended, 2u);
  const auto page = (*store)->Query({});
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->rows.size(), 4u);
  EXPECT_EQ(page->rows[0].row, 7);
  EXPECT_EQ(page->rows[0].record.outcome, Outcome(Failure{FailureKind::kCrashed, "signal 11"}));
  EXPECT_EQ(page->rows[0].record.seed, ~uint64_t{0});
  EXPECT_EQ(page->rows[1].row, 9);
  EXPECT_EQ(page->rows[1].record.measured_by, "agent-3");
  EXPECT_EQ(std::get<Timing>(page->rows[1].record.outcome).seconds, (std::vector<double>{2e-3, 1e-3}));
  EXPECT_EQ(std::get<Timing>(page->rows[1].record.outcome).drift, 0.25);
  EXPECT_EQ(std::get<Failure>(page->rows[2].record.outcome).kind, FailureKind::kForbiddenCall);
  EXPECT_EQ(std::get<Failure>(page->rows[3].record.outcome).kind, FailureKind::kImpossibleTime);
  EXPECT_TRUE((*store)->CheckIntegrity().ok());
  EXPECT_EQ(SortedSchemaOf(File()), SortedSchemaOfToday());
}

TEST_F(OpenTest, TheTablesRefuseWhatIsNoRecord) {
  Create();
  const auto connection = Connection::Open(File(), SQLITE_OPEN_READWRITE, "");
  ASSERT_TRUE(connection.ok());
  for (const char* change : {"failure = 'unlucky'", "failure = 'crashed'", "seconds = NULL", "seconds = '[]'",
                             "seconds = 'fast'", "median_seconds = 0", "median_seconds = 'fast'", "target_id = NULL",
                             "measurement = ''", "verified = 2", "drift = -1", "measurement = 'batch-7/2'"}) {
    const absl::Status status =
        connection->Execute(fmt::format("UPDATE measurements SET {} WHERE measurement = 'batch-7/1'", change));
    EXPECT_TRUE(IsConstraintError(status)) << change << ": " << status;
  }
}

TEST_F(OpenTest, RowsThatCannotBeReadHideNoneOfTheRest) {
  Create();
  const auto connection = Connection::Open(File(), SQLITE_OPEN_READWRITE, "");
  ASSERT_TRUE(connection.ok());
  auto store = storage::OpenRecords(File(), OpenMode::kReadOnly);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto all = (*store)->Query({});
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->rows.size(), 3u);
  const int64_t last = all->rows.back().row;
  // The CHECK of the table does not see that x is not a number.
  ASSERT_TRUE(
      connection
          ->Execute(fmt::format("UPDATE measurements SET seconds = '[1,x]', median_seconds = 1, failure = NULL, "
                                "failure_text = NULL WHERE id < {}",
                                last))
          .ok());
  const auto page = (*store)->Query({.limit = 1});
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->rows.size(), 1u);
  EXPECT_EQ(page->rows[0].row, last);
  EXPECT_FALSE(page->more);
}

TEST(DefaultRecordsPathTest, FollowsTheXdgSpecification) {
  ASSERT_EQ(setenv("HOME", "/somewhere", 1), 0);
  ASSERT_EQ(setenv("XDG_DATA_HOME", "/data", 1), 0);
  EXPECT_EQ(*DefaultRecordsPath(), "/data/hone/records.db");
  ASSERT_EQ(setenv("XDG_DATA_HOME", "relative", 1), 0);
  EXPECT_EQ(*DefaultRecordsPath(), "/somewhere/.local/share/hone/records.db");
  ASSERT_EQ(unsetenv("XDG_DATA_HOME"), 0);
  EXPECT_EQ(*DefaultRecordsPath(), "/somewhere/.local/share/hone/records.db");
  ASSERT_EQ(unsetenv("HOME"), 0);
  EXPECT_TRUE(DefaultRecordsPath().ok());
}

}  // namespace
}  // namespace hone::records
