// SPDX-License-Identifier: Apache-2.0
#include "tracker/farm_state.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/status.h"
#include "tracker/queue/jobs.h"
#include "tracker/queue/times.h"

namespace hone::tracker {
namespace {

// Files from before versions have these tables already. Each job was one text: its message in hexadecimal digits.
constexpr char kStateVersion1[] = R"(
CREATE TABLE IF NOT EXISTS jobs(id TEXT PRIMARY KEY, job TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS drained(agent_id TEXT PRIMARY KEY, reason TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS starts(number INTEGER PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS farm(id TEXT NOT NULL) STRICT;
INSERT INTO farm SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM farm);
)";

// A job's specification may be large and never changes; where it stands is written every few seconds.
constexpr char kStateVersion2[] = R"(
ALTER TABLE jobs RENAME TO jobs_1;
CREATE TABLE jobs(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, spec BLOB NOT NULL) STRICT;
CREATE TABLE job_states(number INTEGER PRIMARY KEY REFERENCES jobs(number) ON DELETE CASCADE, state BLOB NOT NULL)
  STRICT;
CREATE TABLE damaged_jobs(id TEXT NOT NULL, why TEXT NOT NULL, at_ms INTEGER NOT NULL, spec BLOB NOT NULL,
  state BLOB NOT NULL) STRICT;
CREATE TABLE health(device TEXT PRIMARY KEY, record BLOB NOT NULL) STRICT;
CREATE TABLE receipt_key(key TEXT NOT NULL) STRICT;
INSERT INTO receipt_key VALUES(lower(hex(randomblob(32))));
)";

// What a start is told by grows with every start, and is no time.
constexpr char kStateVersion3[] = "ALTER TABLE starts ADD COLUMN at_ms INTEGER NOT NULL DEFAULT 0";

// Empty where it is no hexadecimal text.
std::string FromHex(const std::string& hex) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  if (hex.size() % 2 != 0) return "";
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit(hex[i]), low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return "";
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

// The statements that write jobs. Lives no longer than its connection.
class JobWriter {
 public:
  static absl::StatusOr<JobWriter> Prepare(const records::Connection& connection) {
    HONE_ASSIGN_OR_RETURN(records::Statement spec,
                          connection.Prepare("INSERT INTO jobs(id, spec) VALUES(?1, ?2) ON CONFLICT(id) DO UPDATE SET "
                                             "spec = excluded.spec"));
    HONE_ASSIGN_OR_RETURN(
        records::Statement state,
        connection.Prepare("INSERT INTO job_states(number, state) SELECT number, ?2 FROM jobs WHERE id = ?1 "
                           "ON CONFLICT(number) DO UPDATE SET state = excluded.state"));
    HONE_ASSIGN_OR_RETURN(records::Statement forget, connection.Prepare("DELETE FROM jobs WHERE id = ?1"));
    return JobWriter(std::move(spec), std::move(state), std::move(forget));
  }

  absl::Status Spec(const std::string& id, const std::string& spec) { return Run(spec_, id, &spec); }
  absl::Status State(const std::string& id, const std::string& state) { return Run(state_, id, &state); }
  absl::Status Forget(const std::string& id) { return Run(forget_, id, nullptr); }

 private:
  JobWriter(records::Statement spec, records::Statement state, records::Statement forget)
      : spec_(std::move(spec)), state_(std::move(state)), forget_(std::move(forget)) {}

  static absl::Status Run(records::Statement& statement, const std::string& id, const std::string* bytes) {
    statement.Bind(1, id);
    if (bytes != nullptr) statement.BindBytes(2, *bytes);
    const absl::Status status = statement.Run();
    statement.Reset();
    return status;
  }

  records::Statement spec_, state_, forget_;
};

absl::StatusOr<int64_t> UpgradeState(const records::Connection& connection, int64_t version) {
  if (version == 0) {
    HONE_RETURN_IF_ERROR(connection.Execute(kStateVersion1));
    return 1;
  }
  if (version == 2) {
    HONE_RETURN_IF_ERROR(connection.Execute(kStateVersion3));
    return 3;
  }
  HONE_RETURN_IF_ERROR(connection.Execute(kStateVersion2));
  {
    HONE_ASSIGN_OR_RETURN(JobWriter writer, JobWriter::Prepare(connection));
    HONE_ASSIGN_OR_RETURN(records::Statement select, connection.Prepare("SELECT id, job FROM jobs_1 ORDER BY rowid"));
    while (true) {
      HONE_ASSIGN_OR_RETURN(const bool more, select.Step());
      if (!more) break;
      v1::Job job;
      const std::string stored = select.Text(1), bytes = FromHex(stored);
      // What cannot be read goes over as it is, and is found when the jobs are read.
      const bool read = !bytes.empty() && job.ParseFromString(bytes);
      const StoredJob row = read ? ToStored(job, true) : StoredJob{stored, stored};
      HONE_RETURN_IF_ERROR(writer.Spec(select.Text(0), row.spec));
      HONE_RETURN_IF_ERROR(writer.State(select.Text(0), row.state));
    }
  }
  HONE_RETURN_IF_ERROR(connection.Execute("DROP TABLE jobs_1"));
  return 2;
}

// "" for a job that was read, else what is wrong with it.
std::string ReadJob(const std::string& id, const std::string& spec, const std::string& state, v1::Job* job) {
  v1::JobSpec parsed;
  if (!job->ParseFromString(state) || job->id() != id) return "where it stands cannot be read";
  if (!parsed.ParseFromString(spec)) return "what it asks for cannot be read";
  if (!v1::JobState_IsValid(job->state()) || job->state() == v1::JOB_STATE_UNSPECIFIED) return "it has no known state";
  if (parsed.workloads().empty() && !JobBook::Ended(*job)) return "it asks for nothing";
  *job->mutable_spec() = std::move(parsed);
  return "";
}

v1::Job Damaged(const std::string& id, const std::string& why, absl::Time now) {
  v1::Job job;
  job.set_id(id);
  job.set_state(v1::JOB_STATE_FAILED);
  job.set_error(
      fmt::format("it is damaged in the tracker's state file: {}; submit it again, and check the tracker's disk", why));
  *job.mutable_created() = ToProto(now);
  *job.mutable_ended() = ToProto(now);
  return job;
}

}  // namespace

constinit const records::DatabaseKind kFarmStateFile = {
    .what = "state file",
    .when_held = "two trackers cannot share one: stop the other, or name another file with --state",
    .when_newer = "restore the backup from before the update",
    .application_id = 0x484F4E46,  // "HONF"
    .version = 3,
    .unmarked_table = "starts",
    .upgrade = UpgradeState,
    .secret = true,
};

StoredJob ToStored(const v1::Job& job, bool with_spec) {
  v1::Job state;
  state.set_id(job.id());
  state.set_state(job.state());
  *state.mutable_progress() = job.progress();
  state.set_error(job.error());
  if (job.has_created()) *state.mutable_created() = job.created();
  if (job.has_started()) *state.mutable_started() = job.started();
  if (job.has_ended()) *state.mutable_ended() = job.ended();
  state.set_attempts(job.attempts());
  state.set_fruitless(job.fruitless());
  if (job.has_needs()) *state.mutable_needs() = job.needs();
  if (job.has_notice()) *state.mutable_notice() = job.notice();
  return {with_spec ? job.spec().SerializeAsString() : "", state.SerializeAsString()};
}

void StateChanges::Add(StateChanges later) {
  for (auto& [id, job] : later.jobs) {
    std::optional<StoredJob>& mine = jobs[id];
    if (mine.has_value() && job.has_value() && job->spec.empty()) job->spec = std::move(mine->spec);
    mine = std::move(job);
  }
  for (auto& [agent_id, reason] : later.drained) drained[agent_id] = std::move(reason);
  for (auto& [device, record] : later.health) health[device] = std::move(record);
}

absl::StatusOr<FarmState> FarmState::Open(const std::filesystem::path& path, absl::Time now) {
  HONE_ASSIGN_OR_RETURN(records::Writer file, records::OpenToWrite(path, kFarmStateFile));
  FarmState state(std::move(file));
  HONE_RETURN_IF_ERROR(state.Start(now));
  return state;
}

absl::Status FarmState::Start(absl::Time now) {
  HONE_ASSIGN_OR_RETURN(records::Transaction transaction, records::Transaction::Begin(connection()));
  HONE_ASSIGN_OR_RETURN(const int64_t before, connection().QueryInt("SELECT coalesce(max(number), 0) FROM starts"));
  HONE_ASSIGN_OR_RETURN(const int64_t at_ms, connection().QueryInt("SELECT coalesce(max(at_ms), 0) FROM starts"));
  const int64_t start = std::max(before + 1, absl::ToUnixSeconds(now) / 60);
  latest_start_ = std::max(absl::FromUnixMillis(at_ms), now);
  HONE_RETURN_IF_ERROR(
      connection().Execute(fmt::format("DELETE FROM starts; INSERT INTO starts(number, at_ms) VALUES({}, {})", start,
                                       absl::ToUnixMillis(latest_start_))));
  HONE_ASSIGN_OR_RETURN(farm_id_, connection().QueryText("SELECT id FROM farm"));
  HONE_ASSIGN_OR_RETURN(receipt_key_, connection().QueryText("SELECT key FROM receipt_key"));
  incarnation_ = static_cast<uint64_t>(start);
  return transaction.Commit();
}

absl::StatusOr<std::vector<v1::Job>> FarmState::TakeJobs(absl::Time now) {
  std::vector<v1::Job> jobs;
  HONE_ASSIGN_OR_RETURN(records::Transaction transaction, records::Transaction::Begin(connection()));
  {
    HONE_ASSIGN_OR_RETURN(
        records::Statement select,
        connection().Prepare("SELECT id, spec, state FROM jobs LEFT JOIN job_states USING (number) ORDER BY number"));
    HONE_ASSIGN_OR_RETURN(
        records::Statement set_aside,
        connection().Prepare("INSERT INTO damaged_jobs(id, why, at_ms, spec, state) VALUES(?, ?, ?, ?, ?)"));
    HONE_ASSIGN_OR_RETURN(JobWriter writer, JobWriter::Prepare(connection()));
    std::vector<v1::Job> damaged;
    while (true) {
      HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
      if (!row) break;
      v1::Job job;
      const std::string id = select.Text(0), spec = select.Bytes(1), state = select.Bytes(2);
      if (const std::string why = ReadJob(id, spec, state, &job); !why.empty()) {
        spdlog::error("job {} is set aside: {}", id, why);
        set_aside.Bind(1, id);
        set_aside.Bind(2, why);
        set_aside.Bind(3, absl::ToUnixMillis(now));
        set_aside.BindBytes(4, spec);
        set_aside.BindBytes(5, state);
        HONE_RETURN_IF_ERROR(set_aside.Run());
        set_aside.Reset();
        job = Damaged(id, why, now);
        damaged.push_back(job);
      }
      jobs.push_back(std::move(job));
    }
    for (const v1::Job& job : damaged) {
      HONE_RETURN_IF_ERROR(writer.Spec(job.id(), ""));
      HONE_RETURN_IF_ERROR(writer.State(job.id(), ToStored(job, false).state));
    }
  }
  HONE_RETURN_IF_ERROR(transaction.Commit());
  return jobs;
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> FarmState::Drained() const {
  std::vector<std::pair<std::string, std::string>> drained;
  HONE_ASSIGN_OR_RETURN(records::Statement select, connection().Prepare("SELECT agent_id, reason FROM drained"));
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return drained;
    drained.emplace_back(select.Text(0), select.Text(1));
  }
}

absl::Status FarmState::SaveDrained(const StateChanges& changes) const {
  HONE_ASSIGN_OR_RETURN(records::Statement insert,
                        connection().Prepare("INSERT OR REPLACE INTO drained(agent_id, reason) VALUES(?, ?)"));
  HONE_ASSIGN_OR_RETURN(records::Statement remove, connection().Prepare("DELETE FROM drained WHERE agent_id = ?"));
  for (const auto& [agent_id, reason] : changes.drained) {
    records::Statement& statement = reason.has_value() ? insert : remove;
    statement.Bind(1, agent_id);
    if (reason.has_value()) statement.Bind(2, *reason);
    HONE_RETURN_IF_ERROR(statement.Run());
    statement.Reset();
  }
  return absl::OkStatus();
}

absl::Status FarmState::SaveHealth(const StateChanges& changes) const {
  HONE_ASSIGN_OR_RETURN(records::Statement insert,
                        connection().Prepare("INSERT OR REPLACE INTO health(device, record) VALUES(?, ?)"));
  HONE_ASSIGN_OR_RETURN(records::Statement remove, connection().Prepare("DELETE FROM health WHERE device = ?"));
  for (const auto& [device, record] : changes.health) {
    records::Statement& statement = record.has_value() ? insert : remove;
    statement.Bind(1, device);
    if (record.has_value()) statement.BindBytes(2, *record);
    HONE_RETURN_IF_ERROR(statement.Run());
    statement.Reset();
  }
  return absl::OkStatus();
}

absl::Status FarmState::Save(const StateChanges& changes) {
  if (changes.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(records::Transaction transaction, records::Transaction::Begin(connection()));
  {
    HONE_ASSIGN_OR_RETURN(JobWriter writer, JobWriter::Prepare(connection()));
    for (const auto& [id, job] : changes.jobs) {
      if (!job.has_value()) {
        HONE_RETURN_IF_ERROR(writer.Forget(id));
        continue;
      }
      if (!job->spec.empty()) HONE_RETURN_IF_ERROR(writer.Spec(id, job->spec));
      HONE_RETURN_IF_ERROR(writer.State(id, job->state));
    }
  }
  HONE_RETURN_IF_ERROR(SaveDrained(changes));
  HONE_RETURN_IF_ERROR(SaveHealth(changes));
  return transaction.Commit();
}

absl::StatusOr<std::map<std::string, v1::HealthRecord>> FarmState::Health() const {
  std::map<std::string, v1::HealthRecord> health;
  HONE_ASSIGN_OR_RETURN(records::Statement select, connection().Prepare("SELECT device, record FROM health"));
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return health;
    if (health[select.Text(0)].ParseFromString(select.Bytes(1))) continue;
    spdlog::error("the health of {} cannot be read in the state file and is forgotten: it is checked anew",
                  select.Text(0));
    health.erase(select.Text(0));
  }
}

}  // namespace hone::tracker
