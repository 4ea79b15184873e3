// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/farm_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/status.h"

namespace hone::storage {
namespace {

// The tables of version 1. IF NOT EXISTS: files from before there were versions have these tables already. A job is one
// text: its serialized message in hexadecimal digits.
constexpr char kStateVersion1[] = R"(
CREATE TABLE IF NOT EXISTS jobs(id TEXT PRIMARY KEY, job TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS drained(agent_id TEXT PRIMARY KEY, reason TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS starts(number INTEGER PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS farm(id TEXT NOT NULL) STRICT;
INSERT INTO farm SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM farm);
)";

// Version 2 has specifications and states of jobs in tables of their own. A specification may be large and never
// changes; a state is written every few seconds.
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

// Version 3. The only row of `starts` has the number of the latest run, which only grows, and the latest time of any
// start.
constexpr char kStateVersion3[] = "ALTER TABLE starts ADD COLUMN at_ms INTEGER NOT NULL DEFAULT 0";

// Version 4 has the fleet watches. The row with the device '' is the watch itself.
constexpr char kStateVersion4[] =
    "CREATE TABLE watches(name TEXT NOT NULL, device TEXT NOT NULL, watch BLOB NOT NULL, PRIMARY KEY(name, device)) "
    "STRICT";

// The bytes of hexadecimal digits; empty if `hex` is not such a text.
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

// The statements that write jobs. The connection must outlive it.
class JobWriter {
 public:
  static absl::StatusOr<JobWriter> Prepare(const Connection& connection) {
    HONE_ASSIGN_OR_RETURN(Statement spec,
                          connection.Prepare("INSERT INTO jobs(id, spec) VALUES(?1, ?2) ON CONFLICT(id) DO UPDATE SET "
                                             "spec = excluded.spec"));
    HONE_ASSIGN_OR_RETURN(
        Statement state,
        connection.Prepare("INSERT INTO job_states(number, state) SELECT number, ?2 FROM jobs WHERE id = ?1 "
                           "ON CONFLICT(number) DO UPDATE SET state = excluded.state"));
    HONE_ASSIGN_OR_RETURN(Statement forget, connection.Prepare("DELETE FROM jobs WHERE id = ?1"));
    return JobWriter(std::move(spec), std::move(state), std::move(forget));
  }

  absl::Status Spec(const std::string& id, const std::string& spec) { return Run(spec_, id, &spec); }
  absl::Status State(const std::string& id, const std::string& state) { return Run(state_, id, &state); }
  absl::Status Forget(const std::string& id) { return Run(forget_, id, nullptr); }

 private:
  JobWriter(Statement spec, Statement state, Statement forget)
      : spec_(std::move(spec)), state_(std::move(state)), forget_(std::move(forget)) {}

  static absl::Status Run(Statement& statement, const std::string& id, const std::string* bytes) {
    statement.Bind(1, id);
    if (bytes != nullptr) statement.BindBytes(2, *bytes);
    const absl::Status status = statement.Run();
    statement.Reset();
    return status;
  }

  Statement spec_, state_, forget_;
};

absl::StatusOr<int64_t> UpgradeState(const Connection& connection, int64_t version) {
  if (version == 0) {
    HONE_RETURN_IF_ERROR(connection.Execute(kStateVersion1));
    return 1;
  }
  if (version == 2) {
    HONE_RETURN_IF_ERROR(connection.Execute(kStateVersion3));
    return 3;
  }
  if (version == 3) {
    HONE_RETURN_IF_ERROR(connection.Execute(kStateVersion4));
    return 4;
  }
  HONE_RETURN_IF_ERROR(connection.Execute(kStateVersion2));
  {
    HONE_ASSIGN_OR_RETURN(JobWriter writer, JobWriter::Prepare(connection));
    HONE_ASSIGN_OR_RETURN(Statement select, connection.Prepare("SELECT id, job FROM jobs_1 ORDER BY rowid"));
    while (true) {
      HONE_ASSIGN_OR_RETURN(const bool more, select.Step());
      if (!more) break;
      v1::Job job;
      const std::string stored = select.Text(1), bytes = FromHex(stored);
      // A job that cannot be parsed is copied as it is. The tracker finds the damage when it reads the jobs.
      const bool read = !bytes.empty() && job.ParseFromString(bytes);
      const StoredJob row = read ? ToStored(job, true) : StoredJob{stored, stored};
      HONE_RETURN_IF_ERROR(writer.Spec(select.Text(0), row.spec));
      HONE_RETURN_IF_ERROR(writer.State(select.Text(0), row.state));
    }
  }
  HONE_RETURN_IF_ERROR(connection.Execute("DROP TABLE jobs_1"));
  return 2;
}

// Writes changed rows of a table: a row with a value is inserted or replaced, one without is removed. bind binds the
// key and, for an insertion, the value.
template <typename Changes, typename Bind>
absl::Status SaveRows(const Connection& connection, const char* insert_sql, const char* remove_sql,
                      const Changes& changes, Bind bind) {
  HONE_ASSIGN_OR_RETURN(Statement insert, connection.Prepare(insert_sql));
  HONE_ASSIGN_OR_RETURN(Statement remove, connection.Prepare(remove_sql));
  for (const auto& [key, value] : changes) {
    Statement& statement = value.has_value() ? insert : remove;
    bind(statement, key, value);
    HONE_RETURN_IF_ERROR(statement.Run());
    statement.Reset();
  }
  return absl::OkStatus();
}

}  // namespace

constinit const DatabaseKind kFarmStateFile = {
    .what = "state file",
    .advice_if_locked = "two trackers cannot share a state file: stop the other, or name another file with --state",
    .advice_if_newer = "restore the backup from before the update",
    .application_id = 0x484F4E46,  // "HONF"
    .version = 4,
    .unmarked_table = "starts",
    .upgrade = UpgradeState,
    .secret = true,
};

absl::StatusOr<std::unique_ptr<SqliteFarmStore>> SqliteFarmStore::Open(const std::filesystem::path& path) {
  HONE_ASSIGN_OR_RETURN(Writer file, OpenToWrite(path, kFarmStateFile));
  return std::unique_ptr<SqliteFarmStore>(new SqliteFarmStore(std::move(file)));
}

absl::StatusOr<FarmRun> SqliteFarmStore::BeginRun(absl::Time now) {
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  HONE_ASSIGN_OR_RETURN(const int64_t before, connection_.QueryInt("SELECT coalesce(max(number), 0) FROM starts"));
  HONE_ASSIGN_OR_RETURN(const int64_t at_ms, connection_.QueryInt("SELECT coalesce(max(at_ms), 0) FROM starts"));
  const int64_t start = std::max(before + 1, absl::ToUnixSeconds(now) / 60);
  FarmRun run{.incarnation = static_cast<uint64_t>(start), .latest_start = std::max(absl::FromUnixMillis(at_ms), now)};
  HONE_RETURN_IF_ERROR(
      connection_.Execute(fmt::format("DELETE FROM starts; INSERT INTO starts(number, at_ms) VALUES({}, {})", start,
                                      absl::ToUnixMillis(run.latest_start))));
  HONE_ASSIGN_OR_RETURN(run.farm_id, connection_.QueryText("SELECT id FROM farm"));
  HONE_ASSIGN_OR_RETURN(run.receipt_key, connection_.QueryText("SELECT key FROM receipt_key"));
  HONE_RETURN_IF_ERROR(transaction.Commit());
  return run;
}

absl::StatusOr<std::vector<JobRow>> SqliteFarmStore::Jobs() const {
  HONE_ASSIGN_OR_RETURN(
      Statement select,
      connection_.Prepare("SELECT id, spec, state FROM jobs LEFT JOIN job_states USING (number) ORDER BY number"));
  std::vector<JobRow> jobs;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return jobs;
    jobs.push_back({select.Text(0), {select.Bytes(1), select.Bytes(2)}});
  }
}

absl::Status SqliteFarmStore::SetAside(std::span<const DamagedJob> damaged, absl::Time now) {
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  {
    HONE_ASSIGN_OR_RETURN(
        Statement insert,
        connection_.Prepare("INSERT INTO damaged_jobs(id, why, at_ms, spec, state) VALUES(?, ?, ?, ?, ?)"));
    HONE_ASSIGN_OR_RETURN(JobWriter writer, JobWriter::Prepare(connection_));
    for (const DamagedJob& job : damaged) {
      insert.Bind(1, job.id);
      insert.Bind(2, job.why);
      insert.Bind(3, absl::ToUnixMillis(now));
      insert.BindBytes(4, job.found.spec);
      insert.BindBytes(5, job.found.state);
      HONE_RETURN_IF_ERROR(insert.Run());
      insert.Reset();
      HONE_RETURN_IF_ERROR(writer.Spec(job.id, ""));
      HONE_RETURN_IF_ERROR(writer.State(job.id, job.state));
    }
  }
  return transaction.Commit();
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> SqliteFarmStore::Drained() const {
  std::vector<std::pair<std::string, std::string>> drained;
  HONE_ASSIGN_OR_RETURN(Statement select, connection_.Prepare("SELECT agent_id, reason FROM drained"));
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return drained;
    drained.emplace_back(select.Text(0), select.Text(1));
  }
}

absl::StatusOr<std::map<std::string, std::string>> SqliteFarmStore::Health() const {
  std::map<std::string, std::string> health;
  HONE_ASSIGN_OR_RETURN(Statement select, connection_.Prepare("SELECT device, record FROM health"));
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return health;
    health[select.Text(0)] = select.Bytes(1);
  }
}

absl::StatusOr<std::map<WatchKey, std::string>> SqliteFarmStore::Watches() const {
  std::map<WatchKey, std::string> watches;
  HONE_ASSIGN_OR_RETURN(Statement select, connection_.Prepare("SELECT name, device, watch FROM watches"));
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return watches;
    watches[{select.Text(0), select.Text(1)}] = select.Bytes(2);
  }
}

absl::Status SqliteFarmStore::SaveDrained(const StateChanges& changes) const {
  return SaveRows(connection_, "INSERT OR REPLACE INTO drained(agent_id, reason) VALUES(?, ?)",
                  "DELETE FROM drained WHERE agent_id = ?", changes.drained,
                  [](Statement& statement, const std::string& agent_id, const std::optional<std::string>& reason) {
                    statement.Bind(1, agent_id);
                    if (reason.has_value()) statement.Bind(2, *reason);
                  });
}

absl::Status SqliteFarmStore::SaveHealth(const StateChanges& changes) const {
  return SaveRows(connection_, "INSERT OR REPLACE INTO health(device, record) VALUES(?, ?)",
                  "DELETE FROM health WHERE device = ?", changes.health,
                  [](Statement& statement, const std::string& device, const std::optional<std::string>& record) {
                    statement.Bind(1, device);
                    if (record.has_value()) statement.BindBytes(2, *record);
                  });
}

absl::Status SqliteFarmStore::SaveWatches(const StateChanges& changes) const {
  return SaveRows(connection_, "INSERT OR REPLACE INTO watches(name, device, watch) VALUES(?, ?, ?)",
                  "DELETE FROM watches WHERE name = ? AND device = ?", changes.watches,
                  [](Statement& statement, const WatchKey& key, const std::optional<std::string>& watch) {
                    statement.Bind(1, key.first);
                    statement.Bind(2, key.second);
                    if (watch.has_value()) statement.BindBytes(3, *watch);
                  });
}

absl::Status SqliteFarmStore::Save(const StateChanges& changes) {
  if (changes.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  {
    HONE_ASSIGN_OR_RETURN(JobWriter writer, JobWriter::Prepare(connection_));
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
  HONE_RETURN_IF_ERROR(SaveWatches(changes));
  return transaction.Commit();
}

}  // namespace hone::storage
