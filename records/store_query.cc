// The questions asked of a Store: filters, winners, neighbours, counts.
#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"
#include "records/row.h"
#include "records/schema.h"
#include "records/store.h"
#include "spdlog/spdlog.h"

namespace hone::records {
namespace {

constexpr size_t kMaxRows = 100'000;

// An SQL condition on `records r` and the text of its `?`, in order. Integers are written into the SQL.
struct Condition {
  std::string sql = "TRUE";
  std::vector<std::string> parameters;

  void And(std::string_view term) { sql += fmt::format(" AND {}", term); }
  void And(std::string_view term, const std::string& parameter) {
    And(term);
    parameters.push_back(parameter);
  }
};

// What the filter says about the key; valid in WinnerSql too.
Condition KeyCondition(const Filter& filter) {
  Condition condition;
  if (!filter.workload_digest.empty()) {
    // A range, so that the index serves a prefix as well as a whole digest.
    condition.And("r.workload_id IN (SELECT id FROM workloads WHERE digest >= ?", filter.workload_digest);
    condition.sql += " AND digest < ? || char(1114111))";
    condition.parameters.push_back(filter.workload_digest);
  }
  if (!filter.operator_label.empty()) {
    condition.And("r.workload_id IN (SELECT id FROM workloads WHERE instr(operator, ?) > 0)", filter.operator_label);
  }
  if (!filter.target.empty()) condition.And("r.target = ?", filter.target);
  if (!filter.device_fingerprint.empty()) condition.And("r.device = ?", filter.device_fingerprint);
  if (!filter.compiler_version.empty()) condition.And("r.compiler = ?", filter.compiler_version);
  return condition;
}

Condition RowCondition(const Filter& filter) {
  Condition condition = KeyCondition(filter);
  if (filter.outcomes == Filter::Outcomes::kTimed) condition.And("r.failure IS NULL");
  if (filter.outcomes == Filter::Outcomes::kFailed) condition.And("r.failure IS NOT NULL");
  if (filter.failure.has_value()) condition.And("r.failure = ?", std::string(FailureKindName(*filter.failure)));
  if (filter.confirmed_only) condition.And("r.confirmed = 1");
  if (filter.after_row > 0) condition.And(fmt::format("r.id > {}", filter.after_row));
  return condition;
}

absl::StatusOr<std::vector<StoredRecord>> SelectRows(const Connection& connection, const Condition& condition,
                                                     std::string_view order, size_t limit, bool with_text) {
  const std::string sql =
      fmt::format("SELECT {}, {} FROM records r JOIN workloads w ON w.id = r.workload_id WHERE {} ORDER BY {}",
                  kRowColumns, with_text ? "w.text" : "''", condition.sql, order);
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(sql));
  int index = 0;
  for (const std::string& parameter : condition.parameters) statement.Bind(++index, parameter);
  std::vector<StoredRecord> rows;
  while (rows.size() < std::min(limit, kMaxRows)) {
    HONE_ASSIGN_OR_RETURN(const bool more, statement.Step());
    if (!more) break;
    absl::StatusOr<StoredRecord> row = ReadRow(statement);
    if (row.ok()) {
      rows.push_back(*std::move(row));
    } else {
      spdlog::warn("{}", row.status().ToString());  // one bad row never blocks the rest
    }
  }
  return rows;
}

std::set<std::string> Words(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.insert(word);
  return words;
}

double Similarity(std::string_view a, std::string_view b) {
  if (a == b) return 1;
  const std::set<std::string> left = Words(a);
  const std::set<std::string> right = Words(b);
  if (left.empty() || right.empty()) return 0;
  std::vector<std::string> common;
  std::set_intersection(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(common));
  return 2.0 * static_cast<double>(common.size()) / static_cast<double>(left.size() + right.size());
}

NearestRecord Judge(const Key& wanted, BestRecord best) {
  NearestRecord nearest;
  const Key& key = best.stored.record.key;
  nearest.device_similarity = Similarity(wanted.device_fingerprint, key.device_fingerprint);
  if (key.device_fingerprint != wanted.device_fingerprint) {
    nearest.closeness = Closeness::kOtherDevice;
  } else if (key.compiler_version != wanted.compiler_version) {
    nearest.closeness = Closeness::kSameDeviceOtherCompiler;
  }
  nearest.best = std::move(best);
  return nearest;
}

// Nearer first; among equals the same compiler, then the newer measurement, then the later row.
bool Nearer(const Key& wanted, const NearestRecord& a, const NearestRecord& b) {
  const auto rank = [&wanted](const NearestRecord& n) {
    const Record& record = n.best.stored.record;
    return std::tuple(-static_cast<int>(n.closeness), n.device_similarity,
                      record.key.compiler_version == wanted.compiler_version, record.measured_at, n.best.stored.row);
  };
  return rank(a) > rank(b);
}

}  // namespace

std::string_view ClosenessName(Closeness closeness) {
  switch (closeness) {
    case Closeness::kExact:
      return "exact";
    case Closeness::kSameDeviceOtherCompiler:
      return "same_device_other_compiler";
    case Closeness::kOtherDevice:
      return "other_device";
  }
  HONE_CHECK(!"a closeness without a name");
  return {};
}

absl::StatusOr<std::vector<BestRecord>> Store::SelectBest(std::string_view condition,
                                                          std::span<const std::string> parameters) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::string sql = fmt::format(
      "SELECT {}, '', b.median_seconds, b.records FROM ({}) b JOIN records r ON r.id = b.record_id "
      "JOIN workloads w ON w.id = r.workload_id ORDER BY w.operator, w.digest, r.target, r.device, r.compiler",
      kRowColumns, WinnerSql(condition));
  HONE_ASSIGN_OR_RETURN(Statement statement, connection_.Prepare(sql));
  int index = 0;
  for (const std::string& parameter : parameters) statement.Bind(++index, parameter);
  std::vector<BestRecord> winners;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool more, statement.Step());
    if (!more) return winners;
    absl::StatusOr<StoredRecord> row = ReadRow(statement);
    if (!row.ok()) {
      spdlog::warn("{}", row.status().ToString());
      continue;
    }
    winners.push_back({*std::move(row), statement.Real(kRowColumnCount), statement.Int(kRowColumnCount + 1)});
  }
}

absl::StatusOr<std::optional<BestRecord>> Store::Best(const Key& key) const {
  const std::array<std::string, 4> parameters = {key.workload_digest, key.target, key.device_fingerprint,
                                                 key.compiler_version};
  HONE_ASSIGN_OR_RETURN(std::vector<BestRecord> winners,
                        SelectBest("r.workload_id = (SELECT id FROM workloads WHERE digest = ?) AND r.target = ? AND "
                                   "r.device = ? AND r.compiler = ?",
                                   parameters));
  if (winners.empty()) return std::nullopt;
  return std::move(winners.front());
}

absl::StatusOr<std::optional<NearestRecord>> Store::BestAnyDevice(const Key& key) const {
  const std::array<std::string, 2> parameters = {key.workload_digest, key.target};
  HONE_ASSIGN_OR_RETURN(
      std::vector<BestRecord> winners,
      SelectBest("r.workload_id = (SELECT id FROM workloads WHERE digest = ?) AND r.target = ?", parameters));
  std::optional<NearestRecord> nearest;
  for (BestRecord& winner : winners) {
    NearestRecord judged = Judge(key, std::move(winner));
    if (!nearest.has_value() || Nearer(key, judged, *nearest)) nearest = std::move(judged);
  }
  return nearest;
}

absl::StatusOr<std::vector<BestRecord>> Store::AllBest(const Filter& filter) const {
  const Condition condition = KeyCondition(filter);
  HONE_ASSIGN_OR_RETURN(std::vector<BestRecord> winners, SelectBest(condition.sql, condition.parameters));
  if (winners.size() > filter.limit) winners.resize(filter.limit);
  return winners;
}

absl::StatusOr<std::vector<StoredRecord>> Store::Query(const Filter& filter) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return SelectRows(connection_, RowCondition(filter), "r.id", filter.limit, filter.with_workload_text);
}

absl::StatusOr<std::vector<StoredRecord>> Store::ForWorkload(std::string_view digest, size_t limit) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  Condition condition;
  condition.And("w.digest = ?", std::string(digest));
  return SelectRows(connection_, condition, "r.id DESC", limit, /*with_text=*/false);
}

absl::StatusOr<std::string> Store::WorkloadText(std::string_view digest) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  HONE_ASSIGN_OR_RETURN(Statement statement, connection_.Prepare("SELECT text FROM workloads WHERE digest = ?"));
  statement.Bind(1, digest);
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return absl::NotFoundError(fmt::format("records file {} knows no workload {}", path_.string(), digest));
  return statement.Text(0);
}

absl::StatusOr<Stats> Store::Summarize() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  Stats stats;
  for (const FailureKind kind : kAllFailureKinds) stats.failed[kind] = 0;
  HONE_ASSIGN_OR_RETURN(Statement totals, connection_.Prepare("SELECT count(*), count(DISTINCT workload_id), "
                                                              "count(DISTINCT device) FROM records"));
  HONE_RETURN_IF_ERROR(totals.Step().status());
  stats.records = totals.Int(0);
  stats.workloads = totals.Int(1);
  stats.devices = totals.Int(2);
  HONE_ASSIGN_OR_RETURN(
      Statement failures,
      connection_.Prepare("SELECT failure, count(*) FROM records WHERE failure IS NOT NULL GROUP BY failure"));
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool more, failures.Step());
    if (!more) return stats;
    if (const auto kind = FailureKindFromName(failures.Text(0)); kind.has_value()) {
      stats.failed[*kind] = failures.Int(1);
    }
  }
}

}  // namespace hone::records
