#include "tracker/farm_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "tracker/state_file.h"

namespace hone::tracker {
namespace {

// Jobs are stored as their serialized message; `hone jobs` shows them to people.
constexpr char kSchema[] = R"(
CREATE TABLE IF NOT EXISTS jobs(id TEXT PRIMARY KEY, job TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS drained(agent_id TEXT PRIMARY KEY, reason TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS health(device TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS starts(number INTEGER PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS farm(id TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS receipt_key(key TEXT NOT NULL) STRICT;
INSERT INTO receipt_key SELECT lower(hex(randomblob(32))) WHERE NOT EXISTS (SELECT 1 FROM receipt_key);
INSERT INTO farm SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM farm);
)";

// SQLite text cannot hold NUL bytes; hexadecimal digits hold any message.
std::string ToHex(const std::string& bytes) {
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const unsigned char c : bytes) hex += fmt::format("{:02x}", c);
  return hex;
}

absl::StatusOr<std::string> FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
    const int high = digit(hex[i]), low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return absl::DataLossError("a stored job is damaged");
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<FarmState> FarmState::Open(const std::filesystem::path& path, absl::Time now) {
  HONE_ASSIGN_OR_RETURN(records::Connection connection, OpenStateFile(path, kSchema));
  FarmState state(std::make_unique<records::Connection>(std::move(connection)));
  HONE_ASSIGN_OR_RETURN(const int64_t before,
                        state.connection_->QueryInt("SELECT coalesce(max(number), 0) FROM starts"));
  const int64_t start = std::max(before + 1, absl::ToUnixSeconds(now) / 60);
  HONE_RETURN_IF_ERROR(state.connection_->Execute(fmt::format("INSERT INTO starts VALUES({})", start)));
  state.incarnation_ = static_cast<uint64_t>(start);
  HONE_ASSIGN_OR_RETURN(state.farm_id_, state.connection_->QueryText("SELECT id FROM farm"));
  HONE_ASSIGN_OR_RETURN(state.receipt_key_, state.connection_->QueryText("SELECT key FROM receipt_key"));
  return state;
}

absl::StatusOr<std::vector<v1::Job>> FarmState::Jobs() const {
  std::vector<v1::Job> jobs;
  HONE_ASSIGN_OR_RETURN(records::Statement select, connection_->Prepare("SELECT job FROM jobs ORDER BY rowid"));
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return jobs;
    HONE_ASSIGN_OR_RETURN(const std::string bytes, FromHex(select.Text(0)));
    v1::Job job;
    if (!job.ParseFromString(bytes))
      return absl::DataLossError("a stored job cannot be read: was it written by a newer version?");
    jobs.push_back(std::move(job));
  }
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> FarmState::Drained() const {
  std::vector<std::pair<std::string, std::string>> drained;
  HONE_ASSIGN_OR_RETURN(records::Statement select, connection_->Prepare("SELECT agent_id, reason FROM drained"));
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return drained;
    drained.emplace_back(select.Text(0), select.Text(1));
  }
}

absl::Status FarmState::Save(const std::vector<const v1::Job*>& jobs) {
  if (jobs.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(records::Transaction transaction, records::Transaction::Begin(*connection_));
  HONE_ASSIGN_OR_RETURN(
      records::Statement insert,
      connection_->Prepare("INSERT INTO jobs(id, job) VALUES(?, ?) ON CONFLICT(id) DO UPDATE SET job = excluded.job"));
  for (const v1::Job* job : jobs) {
    insert.Bind(1, job->id());
    insert.Bind(2, ToHex(job->SerializeAsString()));
    HONE_RETURN_IF_ERROR(insert.Run());
    insert.Reset();
  }
  return transaction.Commit();
}

absl::StatusOr<std::map<std::string, v1::HealthRecord>> FarmState::Health() const {
  std::map<std::string, v1::HealthRecord> health;
  HONE_ASSIGN_OR_RETURN(records::Statement select, connection_->Prepare("SELECT device, record FROM health"));
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return health;
    HONE_ASSIGN_OR_RETURN(const std::string bytes, FromHex(select.Text(1)));
    if (!health[select.Text(0)].ParseFromString(bytes))
      return absl::DataLossError("the health of a device cannot be read: was it written by a newer version?");
  }
}

absl::Status FarmState::SaveHealth(const std::map<std::string, v1::HealthRecord>& changed) {
  if (changed.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(records::Transaction transaction, records::Transaction::Begin(*connection_));
  HONE_ASSIGN_OR_RETURN(records::Statement insert,
                        connection_->Prepare("INSERT OR REPLACE INTO health(device, record) VALUES(?, ?)"));
  HONE_ASSIGN_OR_RETURN(records::Statement remove, connection_->Prepare("DELETE FROM health WHERE device = ?"));
  for (const auto& [device, health] : changed) {
    const std::string bytes = health.SerializeAsString();
    records::Statement& statement = bytes.empty() ? remove : insert;
    statement.Bind(1, device);
    if (!bytes.empty()) statement.Bind(2, ToHex(bytes));
    HONE_RETURN_IF_ERROR(statement.Run());
    statement.Reset();
  }
  return transaction.Commit();
}

absl::Status FarmState::SaveDrained(const std::string& agent_id, const std::string& reason) {
  HONE_ASSIGN_OR_RETURN(records::Statement insert,
                        connection_->Prepare("INSERT OR REPLACE INTO drained(agent_id, reason) VALUES(?, ?)"));
  insert.Bind(1, agent_id);
  insert.Bind(2, reason);
  return insert.Run();
}

absl::Status FarmState::ForgetDrained(const std::string& agent_id) {
  HONE_ASSIGN_OR_RETURN(records::Statement remove, connection_->Prepare("DELETE FROM drained WHERE agent_id = ?"));
  remove.Bind(1, agent_id);
  return remove.Run();
}

}  // namespace hone::tracker
