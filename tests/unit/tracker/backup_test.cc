// SPDX-License-Identifier: Apache-2.0
#include "storage/backup.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/temporary_folder.h"
#include "pki/token.h"
#include "storage/open.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/record_schema.h"
#include "tests/anomaly/tracker/session.h"
#include "tracker/audit_log.h"
#include "tracker/register.h"

namespace {

int dies_at_move = 0;  // the process dies when it renames or links a file for this many-th time; 0: never

void CountMove() {
  if (dies_at_move > 0 && --dies_at_move == 0) raise(SIGKILL);
}

}  // namespace

// Functions of the program come before those of the C library.
extern "C" {

int rename(const char* from, const char* to) noexcept {
  CountMove();
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int link(const char* from, const char* to) noexcept {
  CountMove();
  return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

}  // extern "C"

namespace hone::tracker {
namespace {

namespace fs = std::filesystem;
using storage::MakeBackup;
using storage::RestoreBackup;
using storage::TrackerFiles;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class BackupTest : public testing::Test {
 protected:
  BackupTest() {
    fs::create_directory(folder_ / "pki");
    EXPECT_TRUE(Register::Open(folder_ / "pki/register.db").ok());
    EXPECT_TRUE(AuditLog::Open(folder_ / "pki/audit.db").ok());
  }
  void Store(int first, int last) {
    auto farm = OpenFarm::Open(folder_.path()).value();
    for (int step = first; step < last; ++step) {
      ASSERT_EQ(RunStep(*farm.commit, step), std::pair(absl::OkStatus(), absl::OkStatus()));
    }
  }
  // Stores rows in a process that dies without closing the files, so the newest rows are in the logs.
  void StoreAndDie(int first, int last) {
    const pid_t child = fork();
    if (child == 0) {
      auto farm = OpenFarm::Open(folder_.path()).value();
      bool stored = true;
      for (int step = first; step < last; ++step) stored = stored && RunStep(*farm.commit, step).first.ok();
      _exit(stored ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    ASSERT_TRUE(fs::exists(folder_ / "records.db-wal"));
  }
  int64_t Records(const std::string& name = "records.db") {
    return storage::OpenRecords(folder_ / name, records::OpenMode::kReadOnly).value()->Summarize()->records;
  }
  // Number of files that unfinished copies left behind.
  int Left() {
    int left = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename();
      left += name.find(".restored") != std::string::npos || name.find(".unfinished") != std::string::npos ? 1 : 0;
    }
    return left;
  }
  static void RemoveReplaced(const fs::path& folder) {
    const fs::directory_iterator entries(folder);
    const std::vector<fs::directory_entry> all(begin(entries), end(entries));
    for (const fs::directory_entry& entry : all) {
      if (entry.path().string().find(".replaced-") != std::string::npos) fs::remove(entry.path());
    }
  }
  void Damage(const fs::path& file) {
    std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekp(3 * 4096);
    bytes << std::string(4096, '\x5A');
  }
  size_t Jobs() { return FarmState::Open(folder_ / "state", absl::Now())->TakeJobs(absl::Now())->size(); }
  absl::Status Restore() {
    replaced_.clear();
    return RestoreBackup(folder_ / "copy", files_, &replaced_);
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const TrackerFiles files_{folder_ / "records.db", folder_ / "state", folder_ / "pki"};
  std::vector<fs::path> replaced_;
};

TEST_F(BackupTest, ACopyOfARunningTrackerIsPutBack) {
  Acknowledged acknowledged;
  {
    auto farm = OpenFarm::Open(folder_.path()).value();
    std::atomic<bool> stop = false;
    std::thread writer([&] {
      for (int step = 0; !stop; ++step) {
        ASSERT_EQ(RunStep(*farm.commit, step).first, absl::OkStatus());
        if (step != 5) continue;
        ASSERT_EQ(MakeBackup(files_, folder_ / "first"), absl::OkStatus());
      }
    });
    for (int step = 0; step < 5; ++step) acknowledged.results.insert(step);
    while (!fs::exists(folder_ / "first")) std::this_thread::yield();
    EXPECT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus()) << "while it writes";
    EXPECT_TRUE(absl::IsFailedPrecondition(Restore())) << "while it has the files";
    stop = true;
    writer.join();
  }
  const int64_t all = Records();
  ASSERT_EQ(Restore(), absl::OkStatus());
  EXPECT_EQ(replaced_.size(), 4u);
  EXPECT_LE(Records(), all);
  ExpectStored(folder_.path(), acknowledged);
  EXPECT_EQ(Records("records.db.replaced-1"), all) << "what was there before is kept";
  Store(10'000, 10'002);  // the farm continues from the copy
}

TEST_F(BackupTest, ACopyNeverReplacesAnother) {
  Store(0, 1);
  ASSERT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(MakeBackup(files_, folder_ / "copy")));
  EXPECT_EQ(fs::status(folder_ / "copy").permissions(), fs::perms::owner_all) << "tokens are nobody's business";
}

TEST_F(BackupTest, CopiesOfSecretFilesAreClosedToOthers) {
  Store(0, 1);
  ASSERT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
  fs::permissions(folder_ / "state", fs::perms(0644));
  ASSERT_EQ(Restore(), absl::OkStatus());
  for (const fs::path& file : {folder_ / "copy/state.db", folder_ / "copy/register.db", folder_ / "copy/audit.db",
                               files_.state, files_.certificates / "register.db", replaced_[0]}) {
    EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write) << file;
  }
}

TEST_F(BackupTest, WithoutDatabasesThereIsNoCopy) {
  const absl::Status status = MakeBackup(files_, folder_ / "copy");
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_FALSE(fs::exists(folder_ / "copy"));
  EXPECT_EQ(Left(), 0);
}

// Shells add the slash when they complete a folder's name.
TEST_F(BackupTest, TheFolderMayHaveASlashAtItsEnd) {
  Store(0, 1);
  ASSERT_EQ(MakeBackup(files_, folder_ / "new/copy/"), absl::OkStatus());
  EXPECT_TRUE(fs::exists(folder_ / "new/copy/state.db"));
  EXPECT_TRUE(absl::IsAlreadyExists(MakeBackup(files_, folder_ / "new/copy/")));
  EXPECT_EQ(Left(), 0);
  EXPECT_EQ(RestoreBackup(folder_ / "new/copy/", files_, &replaced_), absl::OkStatus());
}

TEST_F(BackupTest, ADamagedFileIsNamedAndNotItsCopy) {
  Store(0, 20);
  Damage(files_.state);
  const absl::Status status = MakeBackup(files_, folder_ / "copy");
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("/state is damaged"), Not(HasSubstr("unfinished"))));
  EXPECT_EQ(Left(), 0);
}

TEST_F(BackupTest, ADamagedCopyChangesNothing) {
  Store(0, 20);
  ASSERT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
  Store(20, 21);
  Damage(folder_ / "copy/records.db");
  const absl::Status status = Restore();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("copy/records.db is damaged"), Not(HasSubstr(".restored"))));
  EXPECT_TRUE(replaced_.empty());
  EXPECT_EQ(Left(), 0);
  EXPECT_EQ(Records(), 21 * kRowsOfStep);
  EXPECT_EQ(Jobs(), 21u);
}

TEST_F(BackupTest, ACopyOfANewerHoneIsRefused) {
  Store(0, 1);
  ASSERT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
  const auto raw = storage::Connection::Open(folder_ / "copy/records.db", SQLITE_OPEN_READWRITE, "");
  ASSERT_EQ(raw->Execute("PRAGMA user_version = 99"), absl::OkStatus());
  EXPECT_THAT(std::string(Restore().message()), HasSubstr("newer Hone"));
  EXPECT_EQ(Jobs(), 1u);
  EXPECT_EQ(Left(), 0) << "of the state, which comes first";
}

// SQLite would apply a log beside the file even if the file came from elsewhere.
TEST_F(BackupTest, TheLogOfTheReplacedFileGoesWithIt) {
  Store(0, 1);
  ASSERT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
  StoreAndDie(1, 4);
  ASSERT_EQ(Restore(), absl::OkStatus());
  EXPECT_EQ(Records(), kRowsOfStep);
  EXPECT_EQ(Jobs(), 1u);
  EXPECT_EQ(Records("records.db.replaced-1"), 4 * kRowsOfStep);
}

TEST_F(BackupTest, ADatabaseThatIsReadIsInUse) {
  Store(0, 1);
  ASSERT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
  StoreAndDie(1, 2);
  const auto reader = storage::OpenToRead(files_.records, storage::kRecordsFile, "").value();
  {
    const auto transaction = storage::Transaction::BeginRead(reader).value();
    ASSERT_TRUE(reader.QueryInt("SELECT count(*) FROM sqlite_schema").ok());
    const absl::Status refused = Restore();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("another program is reading the records file"));
    EXPECT_EQ(Records(), 2 * kRowsOfStep);
    EXPECT_EQ(Left(), 0);
  }
  ASSERT_EQ(Restore(), absl::OkStatus()) << "its connection is open, and asks nothing";
  EXPECT_EQ(Records(), kRowsOfStep);
  EXPECT_EQ(Records("records.db.replaced-1"), 2 * kRowsOfStep);
}

TEST_F(BackupTest, KilledAtAnyMoveARestoreLeavesEveryDatabaseWhole) {
  Store(0, 1);
  ASSERT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
  int moves = 0;
  for (bool killed = true; killed; ++moves) {
    StoreAndDie(1, 4);
    const pid_t child = fork();
    if (child == 0) {
      dies_at_move = moves + 1;
      _exit(Restore().ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    killed = WIFSIGNALED(status);
    EXPECT_TRUE(killed || status == 0);
    ASSERT_TRUE(fs::exists(files_.records) && fs::exists(files_.state)) << "at move " << moves;
    const int64_t records = Records();
    EXPECT_THAT(records, AnyOf(kRowsOfStep, 4 * kRowsOfStep)) << "at move " << moves;
    EXPECT_TRUE(records != kRowsOfStep || Records("records.db.replaced-1") == 4 * kRowsOfStep) << "at move " << moves;
    EXPECT_THAT(Jobs(), AnyOf(1u, 4u)) << "at move " << moves;
    ASSERT_EQ(Restore(), absl::OkStatus());
    EXPECT_EQ(Records(), kRowsOfStep);
    EXPECT_EQ(Jobs(), 1u);
    EXPECT_EQ(Left(), 0);
    for (const fs::path& folder : {folder_.path(), files_.certificates}) RemoveReplaced(folder);
  }
  EXPECT_EQ(moves, 2 * 4 + 1) << "each of four files is linked, and another one renamed to it";
}

// Enough records that jobs end while they are copied.
TEST_F(BackupTest, AJobThatHasEndedInACopyHasItsResultsThere) {
  constexpr int kStoredBefore = 1000;
  {
    auto farm = OpenFarm::Open(folder_.path()).value();
    std::vector<records::Record> rows;
    for (int step = 0; step < kStoredBefore; ++step) {
      for (records::Record& row : RowsOfStep(step)) rows.push_back(std::move(row));
    }
    ASSERT_TRUE(farm.store->Append(rows).ok());
    int step = kStoredBefore;
    const auto run = [&] { ASSERT_EQ(RunStep(*farm.commit, step++).first, absl::OkStatus()); };
    for (int i = 0; i < 3; ++i) run();
    std::atomic<bool> stop = false;
    std::thread writer([&] {
      while (!stop) run();
    });
    EXPECT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
    stop = true;
    writer.join();
  }
  ASSERT_EQ(Restore(), absl::OkStatus());
  Acknowledged ended;
  const auto jobs = FarmState::Open(files_.state, absl::Now())->TakeJobs(absl::Now());
  for (const v1::Job& job : *jobs) {
    if (job.state() == v1::JOB_STATE_SUCCEEDED) ended.results.insert(std::stoi(job.id().substr(1)));
  }
  EXPECT_GE(ended.results.size(), 2u);
  ExpectStored(folder_.path(), ended);
}

// A token may have been spent or revoked after the copy was made, as this one was.
TEST_F(BackupTest, NoTokenOfTheCopyIsGood) {
  Store(0, 1);
  const absl::Time now = absl::Now();
  const auto authority = pki::Authority::Make({now, now + absl::Hours(1)}).value();
  const Register::Sign sign = [&](const FarmIdentity& identity) {
    return authority.SignMember(pki::MakeRequest(pki::MakeKey()).value(), identity, {now, now + absl::Hours(1)});
  };
  const auto members = [&] { return Register::Open(files_.certificates / "register.db").value(); };
  const auto add = [&](const std::string& secret) {
    return members()->AddToken({secret, Role::kAgent, "", 1, now + absl::Hours(1), "ann"}, now).status();
  };
  const std::string spent = pki::RandomSecret(), later = pki::RandomSecret();
  ASSERT_EQ(add(spent), absl::OkStatus());
  ASSERT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
  ASSERT_TRUE(members()->Enrol({spent, "agent", "board", "host"}, sign, now).ok());
  ASSERT_EQ(Restore(), absl::OkStatus());
  EXPECT_EQ(Left(), 0);
  EXPECT_THAT(std::string(members()->CheckToken(spent, now).message()), HasSubstr("was revoked"));
  ASSERT_EQ(add(later), absl::OkStatus());
  EXPECT_TRUE(members()->Enrol({later, "agent", "board", "host"}, sign, now).ok());
}

}  // namespace
}  // namespace hone::tracker
