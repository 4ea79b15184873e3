// SPDX-License-Identifier: Apache-2.0
// Opening the tracker's state files: other versions, other processes that hold them, and damage.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "base/temporary_folder.h"
#include "storage/sqlite/connection.h"
#include "tests/farm/builders.h"
#include "tracker/audit_log.h"
#include "tracker/farm_state.h"
#include "tracker/register.h"

namespace hone::tracker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const absl::Time kStateTime = absl::FromUnixSeconds(1'800'000'000);

storage::Connection Raw(const std::filesystem::path& file) {
  return storage::Connection::Open(file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "").value();
}

// Makes a file as an earlier version of Hone wrote it.
void MakeOld(const std::filesystem::path& file, const std::string& golden) {
  std::ifstream sql(HONE_SOURCE_DIR "/tests/unit/tracker/" + golden);
  std::stringstream text;
  text << sql.rdbuf();
  ASSERT_FALSE(text.str().empty());
  ASSERT_EQ(Raw(file).Execute(text.str()), absl::OkStatus());
}

struct Kind {
  std::string name, golden;
  std::function<absl::Status(const std::filesystem::path&)> open;  // opens and closes the file
};

class StateFilesTest : public testing::Test {
 protected:
  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::vector<Kind> kinds_ = {
      {"jobs", "farm_state_1.sql", [](const auto& file) { return FarmState::Open(file, kStateTime).status(); }},
      {"register", "register_1.sql", [](const auto& file) { return Register::Open(file).status(); }},
      {"audit", "audit_log_1.sql", [](const auto& file) { return AuditLog::Open(file).status(); }},
  };
};

TEST_F(StateFilesTest, OnesFromBeforeVersionsAreBroughtUpToDate) {
  for (const Kind& kind : kinds_) {
    const auto old = folder_ / kind.name, fresh = folder_ / (kind.name + ".new");
    MakeOld(old, kind.golden);
    ASSERT_EQ(kind.open(old), absl::OkStatus());
    ASSERT_EQ(kind.open(fresh), absl::OkStatus());
    for (const char* what : {"PRAGMA application_id", "PRAGMA user_version"}) {
      EXPECT_GT(Raw(fresh).QueryInt(what).value(), 0) << what;
      EXPECT_EQ(Raw(old).QueryInt(what).value(), Raw(fresh).QueryInt(what).value()) << what;
    }
    const char* tables = "SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema ORDER BY name)";
    EXPECT_EQ(Raw(old).QueryText(tables).value(), Raw(fresh).QueryText(tables).value());
    EXPECT_EQ(kind.open(old), absl::OkStatus()) << "again";
  }
  EXPECT_EQ((*Register::Open(folder_ / "register").value()->Identities())[0].name(), "board");
  EXPECT_EQ((*AuditLog::Open(folder_ / "audit").value()->Newest(9))[0].object(), "j1");
}

TEST_F(StateFilesTest, ANewerOneIsRefusedAndLeftAlone) {
  for (const Kind& kind : kinds_) {
    const auto file = folder_ / kind.name;
    ASSERT_EQ(kind.open(file), absl::OkStatus());
    ASSERT_EQ(Raw(file).Execute("PRAGMA user_version = 99"), absl::OkStatus());
    const absl::Status status = kind.open(file);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(file.string()), HasSubstr("newer Hone (schema 99")));
    EXPECT_EQ(Raw(file).QueryInt("PRAGMA user_version").value(), 99);
  }
}

TEST_F(StateFilesTest, AnotherProgramsDatabaseIsLeftAlone) {
  for (const Kind& kind : kinds_) {
    const auto file = folder_ / kind.name;
    ASSERT_EQ(Raw(file).Execute("CREATE TABLE t(x)"), absl::OkStatus());
    EXPECT_THAT(std::string(kind.open(file).message()), HasSubstr("another program"));
    EXPECT_EQ(Raw(file).QueryInt("SELECT count(*) FROM sqlite_schema").value(), 1);
  }
}

TEST_F(StateFilesTest, OthersOfTheMachineMayNotReadThem) {
  const auto rights = [](const std::string& file) { return std::filesystem::status(file).permissions(); };
  const auto own = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  for (const Kind& kind : kinds_) {
    const auto file = folder_ / kind.name;
    ASSERT_EQ(kind.open(file), absl::OkStatus());
    EXPECT_EQ(rights(file), own) << kind.name;
    std::filesystem::permissions(file, std::filesystem::perms(0644));
    const storage::Connection other = Raw(file);  // the connection's log lies beside the file and has its permissions
    ASSERT_EQ(other.Execute("CREATE TABLE t(x)"), absl::OkStatus());
    ASSERT_EQ(rights(file.string() + "-wal"), std::filesystem::perms(0644));
    ASSERT_EQ(kind.open(file), absl::OkStatus());
    for (const char* suffix : {"", "-wal", "-shm"}) EXPECT_EQ(rights(file.string() + suffix), own) << file << suffix;
  }
}

TEST_F(StateFilesTest, NoneIsSharedByTwoTrackers) {
  const auto state = FarmState::Open(folder_ / "jobs", kStateTime).value();
  const auto members = Register::Open(folder_ / "register").value();
  const auto audit = AuditLog::Open(folder_ / "audit").value();
  for (const Kind& kind : kinds_) {
    const auto alias = folder_ / (kind.name + ".alias");
    std::filesystem::create_symlink(folder_ / kind.name, alias);
    for (const std::filesystem::path& file : {folder_ / kind.name, alias}) {
      const absl::Status status = kind.open(file);
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << file << status;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(fmt::format("process {}", getpid())), HasSubstr("two")));
    }
  }
}

TEST_F(StateFilesTest, ADamagedPageIsReported) {
  const auto file = folder_ / "jobs";
  ASSERT_EQ(FarmState::Open(file, kStateTime).status(), absl::OkStatus());
  const int64_t page = Raw(file).QueryInt("SELECT rootpage FROM sqlite_schema WHERE name = 'jobs'").value();
  std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
  bytes.seekp(4096 * (page - 1));
  bytes << std::string(4096, '\x5A');
  bytes.close();
  const absl::Status status = FarmState::Open(file, kStateTime).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("restore a backup"));
}

TEST_F(StateFilesTest, JobsOfAnOldFileAreThereAndDamagedOnesAreSetAside) {
  const auto file = folder_ / "jobs";
  MakeOld(file, "farm_state_1.sql");
  for (const int start : {1, 2}) {
    FarmState state = FarmState::Open(file, kStateTime).value();
    EXPECT_EQ(state.farm_id(), "00112233aabbccdd");
    EXPECT_EQ(state.incarnation(), 30'000'000u + static_cast<unsigned>(start) - 1);
    EXPECT_EQ(state.Drained()->size(), 1u);
    const auto jobs = state.TakeJobs(kStateTime);
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    ASSERT_EQ(jobs->size(), 4u);
    EXPECT_EQ((*jobs)[0].id(), "j1");
    EXPECT_EQ((*jobs)[0].state(), v1::JOB_STATE_RUNNING);
    EXPECT_EQ((*jobs)[0].progress().trials(), 7);
    EXPECT_EQ((*jobs)[0].spec().submitted_by(), "ann");
    EXPECT_EQ((*jobs)[0].spec().submitter(), "hone://farm/client/ann") << "of an earlier version";
    EXPECT_EQ((*jobs)[0].attempts(), 2);
    for (const size_t damaged : {1u, 2u}) {
      EXPECT_EQ((*jobs)[damaged].id(), fmt::format("j{}", damaged + 1));
      EXPECT_EQ((*jobs)[damaged].state(), v1::JOB_STATE_FAILED);
      EXPECT_THAT((*jobs)[damaged].error(), HasSubstr("damaged"));
    }
    EXPECT_EQ((*jobs)[3].ended().seconds(), 1'700'000'200);
  }
  EXPECT_EQ(Raw(file).QueryInt("SELECT count(*) FROM damaged_jobs").value(), 2) << "set aside once";
  EXPECT_EQ(Raw(file).QueryText("SELECT CAST(spec AS TEXT) FROM damaged_jobs WHERE id = 'j3'").value(),
            "not hexadecimal");
}

// Damage to one job's bytes must leave the other jobs readable.
TEST_F(StateFilesTest, NoDamageOfOneJobHidesAnother) {
  const char* damages[] = {
      "UPDATE job_states SET state = x'ff' WHERE number = 1",
      "UPDATE job_states SET state = x'' WHERE number = 1",
      "DELETE FROM job_states WHERE number = 1",
      "UPDATE jobs SET spec = x'0a' WHERE number = 1",
      "UPDATE jobs SET spec = x'' WHERE number = 1",
      "UPDATE job_states SET state = (SELECT state FROM job_states WHERE number = 2) WHERE number = 1"};
  for (const char* damage : damages) {
    const auto file = folder_ / "jobs";
    std::filesystem::remove(file);
    {
      FarmState state = FarmState::Open(file, kStateTime).value();
      StateChanges changes;
      for (const char* id : {"a", "b"}) {
        v1::Job job;
        job.set_id(id);
        *job.mutable_spec() = SpecOf(id);
        job.set_state(v1::JOB_STATE_QUEUED);
        changes.jobs[id] = ToStored(job, true);
      }
      ASSERT_EQ(state.Save(changes), absl::OkStatus());
    }
    ASSERT_EQ(Raw(file).Execute(damage), absl::OkStatus());
    FarmState state = FarmState::Open(file, kStateTime).value();
    const auto jobs = state.TakeJobs(kStateTime);
    ASSERT_TRUE(jobs.ok()) << damage << jobs.status();
    ASSERT_EQ(jobs->size(), 2u) << damage;
    EXPECT_EQ((*jobs)[0].state(), v1::JOB_STATE_FAILED) << damage;
    EXPECT_EQ((*jobs)[0].id(), "a");
    EXPECT_EQ((*jobs)[1].state(), v1::JOB_STATE_QUEUED) << damage;
    EXPECT_EQ((*jobs)[1].spec().name(), "b");
  }
}

// Waiting changes are merged: a later change replaces only the fields that it contains.
TEST_F(StateFilesTest, LaterChangesAreLaidOverEarlierOnes) {
  StateChanges changes{.jobs = {{"a", StoredJob{"asked", "queued"}}, {"b", StoredJob{"asked", "queued"}}},
                       .drained = {{"x", "hot"}, {"y", "hot"}}};
  changes.Add({.jobs = {{"a", StoredJob{"", "running"}}, {"b", std::nullopt}, {"c", StoredJob{"asked", "queued"}}},
               .drained = {{"x", std::nullopt}}});
  ASSERT_EQ(changes.jobs.size(), 3u);
  EXPECT_EQ(changes.jobs["a"]->spec, "asked");
  EXPECT_EQ(changes.jobs["a"]->state, "running");
  EXPECT_FALSE(changes.jobs["b"].has_value());
  EXPECT_FALSE(changes.drained["x"].has_value());
  EXPECT_EQ(changes.drained["y"], "hot");
}

// A tracker that cannot run is restarted many times within a minute. That must not look like a clock that was set back.
TEST_F(StateFilesTest, TheLatestStartIsATimeHoweverManyStartsThereWere) {
  const auto start = [&](absl::Time now) { return FarmState::Open(folder_ / "jobs", now)->latest_start(); };
  for (int i = 0; i < 20; ++i) {
    const absl::Time now = kStateTime + absl::Seconds(i);
    EXPECT_EQ(start(now), now);
  }
  EXPECT_EQ(start(kStateTime - absl::Hours(1)), kStateTime + absl::Seconds(19)) << "but that would be one";
  EXPECT_EQ(Raw(folder_ / "jobs").QueryInt("SELECT count(*) FROM starts").value(), 1);
}

TEST_F(StateFilesTest, ProgressIsWrittenWithoutWhatTheJobAsksFor) {
  FarmState state = FarmState::Open(folder_ / "jobs", kStateTime).value();
  v1::Job job;
  job.set_id("a");
  *job.mutable_spec() = SpecOf("a");
  job.set_state(v1::JOB_STATE_QUEUED);
  ASSERT_EQ(state.Save({.jobs = {{"a", ToStored(job, true)}}}), absl::OkStatus());
  job.mutable_progress()->set_trials(5);
  const StoredJob progress = ToStored(job, false);
  EXPECT_EQ(progress.spec, "");
  EXPECT_LT(progress.state.size(), 20u);
  ASSERT_EQ(state.Save({.jobs = {{"a", progress}}}), absl::OkStatus());
  auto jobs = state.TakeJobs(kStateTime);
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ((*jobs)[0].SerializeAsString(), job.SerializeAsString());
  ASSERT_EQ(state.Save({.jobs = {{"a", std::nullopt}}}), absl::OkStatus());
  EXPECT_TRUE(state.TakeJobs(kStateTime)->empty());
}

}  // namespace
}  // namespace hone::tracker
