#include "tracker/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/temporary_folder.h"
#include "tests/anomaly/tracker/session.h"
#include "tracker/audit_log.h"
#include "tracker/register.h"

namespace hone::tracker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
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
  int64_t Records() {
    return records::Store::Open(folder_ / "records.db", records::OpenMode::kReadOnly).value()->Summarize()->records;
  }
  // Of copies that were not finished.
  int Left() {
    int left = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename();
      left += name.find(".restored") != std::string::npos || name.find(".unfinished") != std::string::npos ? 1 : 0;
    }
    return left;
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
  const auto old = records::Store::Open(replaced_[0], records::OpenMode::kReadOnly);
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ((*old)->Summarize()->records, all) << "what was there before is kept";
  Store(10'000, 10'002);  // it goes on from there
}

TEST_F(BackupTest, ACopyNeverReplacesAnother) {
  Store(0, 1);
  ASSERT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(MakeBackup(files_, folder_ / "copy")));
  EXPECT_EQ(fs::status(folder_ / "copy").permissions(), fs::perms::owner_all) << "tokens are nobody's business";
}

TEST_F(BackupTest, WhatIsASecretIsClosedToOthersWhereverItGoes) {
  Store(0, 1);
  ASSERT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
  fs::permissions(folder_ / "state", fs::perms(0644));
  ASSERT_EQ(Restore(), absl::OkStatus());
  for (const fs::path& file : {folder_ / "copy/state.db", folder_ / "copy/register.db", folder_ / "copy/audit.db",
                               files_.state, files_.certificates / "register.db", replaced_[1]}) {
    EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write) << file;
  }
}

TEST_F(BackupTest, WithoutDatabasesThereIsNoCopy) {
  const absl::Status status = MakeBackup(files_, folder_ / "copy");
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_FALSE(fs::exists(folder_ / "copy"));
  EXPECT_EQ(Left(), 0);
}

// As a shell completes it.
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
  Damage(folder_ / "copy/state.db");
  const absl::Status status = Restore();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("copy/state.db is damaged"), Not(HasSubstr(".restored"))));
  EXPECT_TRUE(replaced_.empty());
  EXPECT_EQ(Left(), 0);
  EXPECT_EQ(Records(), 21 * kRowsOfStep);
  EXPECT_EQ(Jobs(), 21u);
}

TEST_F(BackupTest, ACopyOfANewerHoneIsRefused) {
  Store(0, 1);
  ASSERT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
  const auto raw = records::Connection::Open(folder_ / "copy/state.db", SQLITE_OPEN_READWRITE, "");
  ASSERT_EQ(raw->Execute("PRAGMA user_version = 99"), absl::OkStatus());
  EXPECT_THAT(std::string(Restore().message()), HasSubstr("newer Hone"));
  EXPECT_EQ(Jobs(), 1u);
  EXPECT_EQ(Left(), 0) << "of the records, which come first";
}

// A log that lies beside a file from elsewhere would be taken for its own.
TEST_F(BackupTest, TheLogOfTheReplacedFileGoesWithIt) {
  Store(0, 1);
  ASSERT_EQ(MakeBackup(files_, folder_ / "copy"), absl::OkStatus());
  const pid_t child = fork();
  if (child == 0) {  // dies without closing
    Store(1, 3);
    auto farm = OpenFarm::Open(folder_.path()).value();
    _exit(RunStep(*farm.commit, 3).first.ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(fs::exists(folder_ / "records.db-wal"));
  ASSERT_EQ(Restore(), absl::OkStatus());
  EXPECT_EQ(Records(), kRowsOfStep);
  EXPECT_EQ(Jobs(), 1u);
  EXPECT_EQ(records::Store::Open(replaced_[0], records::OpenMode::kReadOnly).value()->Summarize()->records,
            4 * kRowsOfStep);
}

}  // namespace
}  // namespace hone::tracker
