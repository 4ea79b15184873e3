// SPDX-License-Identifier: Apache-2.0
// The queries of an SqliteStore: filters, pages, winners, counts, pruning.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "records/winner.h"
#include "spdlog/spdlog.h"
#include "storage/sqlite/record_row.h"
#include "storage/sqlite/record_schema.h"
#include "storage/sqlite/record_store.h"

namespace hone::storage {
namespace {

using records::BestPage;
using records::BestRecord;
using records::Contender;
using records::ContenderOf;
using records::Filter;
using records::FindWinner;
using records::Key;
using records::KeyNumbers;
using records::Page;
using records::Prunable;
using records::PruneReport;
using records::PruneRule;
using records::SortForDisplay;
using records::Stats;
using records::StoredRecord;
using records::Winner;

constexpr size_t kRowsAtATime = 1000;

// An SQL condition on measurements `m`, and the texts for its `?` in order. Integers are written into the SQL.
struct Condition {
  std::string sql = "TRUE";
  std::vector<std::string> parameters;
  std::string_view source = "measurements m";  // the SQL after FROM

  void And(std::string_view term) { sql += fmt::format(" AND {}", term); }
  void And(std::string_view term, const std::string& parameter) {
    And(term);
    parameters.push_back(parameter);
  }
};

constexpr char kTextId[] = "(SELECT id FROM texts WHERE text = ?)";

// Adds the condition on the workload, by a digest or the beginning of one. Returns whether exactly one workload
// matches. Then the condition is an equality, so that the index of keys yields the rows of a whole key in order.
// Otherwise SQLite must sort the rows.
absl::StatusOr<bool> AndWorkload(const Connection& connection, const std::string& digest, Condition& condition) {
  HONE_ASSIGN_OR_RETURN(Statement statement,
                        connection.Prepare("SELECT count(*), min(id) FROM (SELECT id FROM workloads WHERE digest >= ?1 "
                                           "AND digest < ?1 || char(1114111) LIMIT 2)"));
  statement.Bind(1, digest);
  HONE_RETURN_IF_ERROR(statement.Step().status());
  if (statement.Int(0) == 1) {
    condition.And(fmt::format("m.workload_id = {}", statement.Int(1)));
    return true;
  }
  // A range of digests, because the index on digests serves it.
  condition.And("m.workload_id IN (SELECT id FROM workloads WHERE digest >= ?", digest);
  condition.sql += " AND digest < ? || char(1114111))";
  condition.parameters.push_back(digest);
  return false;
}

// The condition of the filter's fields that concern the key.
absl::StatusOr<Condition> KeyCondition(const Connection& connection, const Filter& filter) {
  Condition condition;
  bool one = false;
  if (!filter.workload_digest.empty()) {
    HONE_ASSIGN_OR_RETURN(one, AndWorkload(connection, filter.workload_digest, condition));
  }
  if (!filter.operator_label.empty()) {
    condition.And("m.workload_id IN (SELECT id FROM workloads WHERE instr(operator, ?) > 0)", filter.operator_label);
  }
  const auto text_is = [&condition](std::string_view column, const std::string& text) {
    if (!text.empty()) condition.And(fmt::format("{} = {}", column, kTextId), text);
  };
  if (filter.target.empty() || filter.other_target.empty()) {
    text_is("m.target_id", filter.target);
  } else {
    condition.And("m.target_id IN (SELECT id FROM texts WHERE text IN (?, ?))", filter.target);
    condition.parameters.push_back(filter.other_target);
  }
  // With a workload, SQLite shall search the index of keys. The plus hides the column from the index of devices, which
  // would yield all rows of the device. For a whole key SQLite chooses the index of keys by itself, and the plus would
  // keep it from reading the rows in order.
  const bool whole = one && !filter.target.empty() && filter.other_target.empty() && !filter.compiler_version.empty();
  text_is(filter.workload_digest.empty() || whole ? "m.device_id" : "+m.device_id", filter.device_fingerprint);
  text_is("m.compiler_id", filter.compiler_version);
  return condition;
}

absl::StatusOr<Condition> RowCondition(const Connection& connection, const Filter& filter) {
  HONE_ASSIGN_OR_RETURN(Condition condition, KeyCondition(connection, filter));
  if (filter.outcomes == Filter::Outcomes::kTimed) condition.And("m.failure IS NULL");
  if (filter.outcomes == Filter::Outcomes::kFailed) condition.And("m.failure IS NOT NULL");
  if (filter.failure.has_value()) condition.And("m.failure = ?", std::string(FailureKindName(*filter.failure)));
  if (filter.confirmed_only) condition.And("m.confirmed = 1");
  if (!filter.model.empty()) condition.And(fmt::format("m.model_id = {}", kTextId), filter.model);
  if (filter.after_row != 0) condition.And(fmt::format("m.id > {}", filter.after_row));
  return condition;
}

struct Limits {
  size_t rows, bytes;
  bool tells_more = true;  // set Page::more, for which one more row must be found
};

// Reads rows into the page until a limit is reached or none is left. Returns how many rows it stepped to. A row that
// cannot be read is counted, logged and left out.
absl::StatusOr<size_t> ReadRows(Statement& statement, Limits limits, Page& page) {
  size_t bytes = 0;
  for (size_t seen = 0;; ++seen) {
    HONE_ASSIGN_OR_RETURN(const bool another, statement.Step());
    if (!another) return seen;
    page.more = page.rows.size() >= limits.rows || (bytes >= limits.bytes && !page.rows.empty());
    if (page.more) return seen + 1;
    absl::StatusOr<StoredRecord> row = ReadRow(statement);
    if (row.ok()) {
      bytes += records::ApproximateBytes(row->record);
      page.rows.push_back(*std::move(row));
    } else {
      ++page.unreadable;
      spdlog::warn("{}", row.status().ToString());
    }
  }
}

// Selects the rows of the condition, ordered by `order`. An inner query finds their ids first, so that SQLite sorts
// numbers of an index and not whole rows.
absl::StatusOr<Page> SelectRows(const Connection& connection, const Condition& condition, std::string_view order,
                                Limits limits, bool with_text) {
  limits.rows = std::min(limits.rows, records::kPageRowsMax);
  // Rows that cannot be read do not fill the page. So the query is repeated with twice as many ids until it is full.
  for (size_t ids = limits.rows + (limits.tells_more ? 1 : 0);; ids *= 2) {
    const std::string sql = fmt::format(
        "{} WHERE m.id IN (SELECT m.id FROM {} WHERE {} ORDER BY {} LIMIT {}) ORDER BY {}",
        SelectRow(with_text ? Scope::kAll : Scope::kWithoutText), condition.source, condition.sql, order, ids, order);
    HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(sql));
    int index = 0;
    for (const std::string& parameter : condition.parameters) statement.Bind(++index, parameter);
    Page page;
    HONE_ASSIGN_OR_RETURN(const size_t seen, ReadRows(statement, limits, page));
    const bool full = !limits.tells_more && page.rows.size() == limits.rows;
    if (page.more || full || seen < ids) return page;
  }
}

// A key, and how many rows it has.
struct KeyRows {
  KeyNumbers ids;
  int64_t rows = 0;
};

// The first `limit` keys after the key `after` that have rows of the condition, in the order of their numbers.
absl::StatusOr<std::vector<KeyRows>> SelectKeys(const Connection& connection, const Condition& condition,
                                                const KeyNumbers& after, int64_t limit) {
  HONE_ASSIGN_OR_RETURN(Statement statement,
                        connection.Prepare(fmt::format(
                            "SELECT workload_id, target_id, device_id, compiler_id, count(*) "
                            "FROM measurements m WHERE {} AND (workload_id, target_id, device_id, compiler_id) "
                            "> ({}) GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4 LIMIT {}",
                            condition.sql, fmt::join(after, ", "), limit)));
  int index = 0;
  for (const std::string& parameter : condition.parameters) statement.Bind(++index, parameter);
  std::vector<KeyRows> keys;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool more, statement.Step());
    if (!more) return keys;
    keys.push_back({{statement.Int(0), statement.Int(1), statement.Int(2), statement.Int(3)}, statement.Int(4)});
  }
}

// Finds the winners of keys. For each key it first reads only the rows that are confirmed or rule out a schedule. If
// they give no confirmed winner, it reads all rows of the key.
class WinnerFinder {
 public:
  static absl::StatusOr<WinnerFinder> Prepare(const Connection& connection) {
    const std::string of_key =
        " WHERE m.workload_id = ?1 AND m.target_id = ?2 AND m.device_id = ?3 AND m.compiler_id = ?4";
    HONE_ASSIGN_OR_RETURN(Statement deciding,
                          connection.Prepare(SelectRow(Scope::kRowAlone) + of_key + " AND " + DecidingSql()));
    HONE_ASSIGN_OR_RETURN(Statement all, connection.Prepare(SelectRow(Scope::kRowAlone) + of_key));
    HONE_ASSIGN_OR_RETURN(Statement row, connection.Prepare(SelectRow(Scope::kWithoutText) + " WHERE m.id = ?1"));
    return WinnerFinder(std::move(deciding), std::move(all), std::move(row));
  }

  absl::StatusOr<std::vector<Contender>> All(const KeyRows& key) { return Read(all_, key); }

  absl::StatusOr<std::optional<BestRecord>> Find(const KeyRows& key) {
    HONE_ASSIGN_OR_RETURN(std::vector<Contender> contenders, Read(deciding_, key));
    std::optional<Winner> winner = FindWinner(contenders);
    if (!winner.has_value() || !winner->confirmed) {
      HONE_ASSIGN_OR_RETURN(contenders, Read(all_, key));
      winner = FindWinner(contenders);
    }
    if (!winner.has_value()) return std::nullopt;
    row_.Reset();
    row_.Bind(1, contenders[winner->index].row);
    HONE_ASSIGN_OR_RETURN(const bool found, row_.Step());
    HONE_CHECK(found);
    HONE_ASSIGN_OR_RETURN(StoredRecord stored, ReadRow(row_));
    row_.Reset();
    return BestRecord{std::move(stored), winner->seconds, winner->default_seconds, winner->confirmed, key.rows};
  }

 private:
  WinnerFinder(Statement deciding, Statement all, Statement row)
      : deciding_(std::move(deciding)), all_(std::move(all)), row_(std::move(row)) {}

  static absl::StatusOr<std::vector<Contender>> Read(Statement& statement, const KeyRows& key) {
    statement.Reset();
    int index = 0;
    for (const int64_t id : key.ids) statement.Bind(++index, id);
    std::vector<Contender> contenders;
    while (true) {
      HONE_ASSIGN_OR_RETURN(const bool more, statement.Step());
      if (!more) break;
      const absl::StatusOr<StoredRecord> row = ReadRow(statement);
      if (row.ok()) {
        contenders.push_back(ContenderOf(*row));
      } else {
        spdlog::warn("{}", row.status().ToString());
      }
    }
    statement.Reset();
    return contenders;
  }

  Statement deciding_, all_, row_;
};

// Keys that one snapshot serves. Fewer would be slower; with more, a snapshot would last longer and keep the
// write-ahead log from being moved into the file.
constexpr int64_t kKeysAtATime = 256;

absl::StatusOr<BestPage> SelectBestPage(const Connection& connection, const Condition& condition,
                                        const KeyNumbers& after) {
  HONE_ASSIGN_OR_RETURN(const Transaction snapshot, Transaction::BeginRead(connection));
  HONE_ASSIGN_OR_RETURN(const std::vector<KeyRows> keys, SelectKeys(connection, condition, after, kKeysAtATime));
  HONE_ASSIGN_OR_RETURN(WinnerFinder finder, WinnerFinder::Prepare(connection));
  BestPage page;
  for (const KeyRows& key : keys) {
    HONE_ASSIGN_OR_RETURN(std::optional<BestRecord> winner, finder.Find(key));
    if (winner.has_value()) page.best.push_back(*std::move(winner));
  }
  if (keys.size() == kKeysAtATime) page.next = keys.back().ids;
  return page;
}

absl::StatusOr<std::vector<BestRecord>> SelectBest(const Connection& connection, const Condition& condition) {
  std::vector<BestRecord> winners;
  for (std::optional<KeyNumbers> next = KeyNumbers(); next.has_value();) {
    HONE_ASSIGN_OR_RETURN(BestPage page, SelectBestPage(connection, condition, *next));
    std::move(page.best.begin(), page.best.end(), std::back_inserter(winners));
    next = page.next;
  }
  SortForDisplay(winners);
  return winners;
}

// Deletes the rows of the contenders with the indices `prunable` in one transaction.
absl::Status Remove(const Connection& connection, const std::vector<Contender>& contenders,
                    const std::vector<size_t>& prunable) {
  if (prunable.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection));
  {
    HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare("DELETE FROM measurements WHERE id = ?1"));
    for (const size_t index : prunable) {
      statement.Reset();
      statement.Bind(1, contenders[index].row);
      HONE_RETURN_IF_ERROR(statement.Run());
    }
  }
  return transaction.Commit();
}

// The folder in which SQLite makes temporary files, for messages.
std::string TemporaryFolderOfSqlite() {
  for (const char* name : {"SQLITE_TMPDIR", "TMPDIR"}) {
    const char* folder = std::getenv(name);
    if (folder != nullptr && CanAccess(folder, W_OK | X_OK)) return folder;
  }
  return "/var/tmp";
}

// Gives free room back to the file system. The error names the folder of temporary files, because SQLite's own error
// names the database even if the other disk is full.
absl::Status Shrink(const Connection& connection) {
  return Annotate(
      connection.Execute("VACUUM"),
      fmt::format("the rows were removed, but the file could not be made smaller; rewriting the remaining rows needs "
                  "free space for a copy of them in {} (SQLITE_TMPDIR names another folder) and beside the file",
                  TemporaryFolderOfSqlite()));
}

Condition OfWorkload(const Key& key) {
  Condition condition;
  condition.And("m.workload_id = (SELECT id FROM workloads WHERE digest = ?)", key.workload_digest);
  condition.And(fmt::format("m.target_id = {}", kTextId), key.target);
  return condition;
}

}  // namespace

std::string SqliteStore::name() const { return fmt::format("records file {}", path_.string()); }

absl::StatusOr<std::optional<BestRecord>> SqliteStore::Best(const Key& key) const {
  Condition condition = OfWorkload(key);
  condition.And(fmt::format("m.device_id = {}", kTextId), key.device_fingerprint);
  condition.And(fmt::format("m.compiler_id = {}", kTextId), key.compiler_version);
  HONE_ASSIGN_OR_RETURN(const Readers::Borrowed reader, readers_.Borrow());
  HONE_ASSIGN_OR_RETURN(std::vector<BestRecord> winners, SelectBest(*reader, condition));
  if (winners.empty()) return std::nullopt;
  return std::move(winners.front());
}

absl::StatusOr<std::vector<BestRecord>> SqliteStore::AllBest(const Filter& filter) const {
  HONE_ASSIGN_OR_RETURN(const Readers::Borrowed reader, readers_.Borrow());
  HONE_ASSIGN_OR_RETURN(const Condition condition, KeyCondition(*reader, filter));
  HONE_ASSIGN_OR_RETURN(std::vector<BestRecord> winners, SelectBest(*reader, condition));
  if (winners.size() > filter.limit) winners.resize(filter.limit);
  return winners;
}

absl::StatusOr<PruneReport> SqliteStore::Prune(const Filter& filter, const PruneRule& given, bool remove,
                                               const std::function<void(const PruneReport& so_far)>& progress) {
  const std::lock_guard<std::mutex> guard(write_mutex_);
  if (remove && !writer_.has_value()) {
    return absl::FailedPreconditionError(fmt::format("records file {} was opened for reading only", path_.string()));
  }
  HONE_ASSIGN_OR_RETURN(const Readers::Borrowed reader, readers_.Borrow());
  HONE_ASSIGN_OR_RETURN(const Condition condition, KeyCondition(*reader, filter));
  PruneRule rule = given;
  // SQLite numbers a new row one above the highest. If the newest row were removed, its number would be given again.
  HONE_ASSIGN_OR_RETURN(rule.keep_row, (*reader).QueryInt("SELECT coalesce(max(id), 0) FROM measurements"));
  PruneReport report;
  for (std::optional<KeyNumbers> next = KeyNumbers(); next.has_value();) {
    HONE_ASSIGN_OR_RETURN(const std::vector<KeyRows> keys, SelectKeys(*reader, condition, *next, kKeysAtATime));
    next = static_cast<int64_t>(keys.size()) == kKeysAtATime ? std::optional(keys.back().ids) : std::nullopt;
    for (const KeyRows& key : keys) {
      HONE_ASSIGN_OR_RETURN(WinnerFinder finder, WinnerFinder::Prepare(*reader));
      HONE_ASSIGN_OR_RETURN(const std::vector<Contender> contenders, finder.All(key));
      const std::vector<size_t> prunable = Prunable(contenders, rule);
      report.rows += static_cast<int64_t>(contenders.size());
      report.prunable += static_cast<int64_t>(prunable.size());
      report.keys += 1;
      report.keys_prunable += prunable.empty() ? 0 : 1;
      if (remove) HONE_RETURN_IF_ERROR(Remove(writer_->connection, contenders, prunable));
      if (progress) progress(report);
    }
  }
  if (remove && report.prunable > 0) report.shrunk = Shrink(writer_->connection);
  return report;
}

absl::StatusOr<BestPage> SqliteStore::BestPageAfter(const Filter& filter, const KeyNumbers& after) const {
  HONE_ASSIGN_OR_RETURN(const Readers::Borrowed reader, readers_.Borrow());
  HONE_ASSIGN_OR_RETURN(const Condition condition, KeyCondition(*reader, filter));
  return SelectBestPage(*reader, condition, after);
}

absl::Status SqliteStore::ForEachRow(const std::function<void(const absl::StatusOr<StoredRecord>&)>& visit) const {
  HONE_ASSIGN_OR_RETURN(const Readers::Borrowed reader, readers_.Borrow());
  // The rows are read in portions, so that no statement keeps a snapshot for long. The ids begin anywhere, because
  // another program may have written rows with negative ones.
  HONE_ASSIGN_OR_RETURN(Statement statement,
                        (*reader).Prepare(fmt::format("{} WHERE m.id > ?1 ORDER BY m.id LIMIT {}",
                                                      SelectRow(Scope::kWithoutText), kRowsAtATime)));
  int64_t after = INT64_MIN;
  for (size_t rows = kRowsAtATime; rows == kRowsAtATime;) {
    statement.Reset();
    statement.Bind(1, after);
    for (rows = 0;; ++rows) {
      HONE_ASSIGN_OR_RETURN(const bool more, statement.Step());
      if (!more) break;
      after = statement.Int(0);
      visit(ReadRow(statement));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Page> SqliteStore::Query(const Filter& filter) const {
  HONE_ASSIGN_OR_RETURN(const Readers::Borrowed reader, readers_.Borrow());
  HONE_ASSIGN_OR_RETURN(const Condition condition, RowCondition(*reader, filter));
  const Limits limits{filter.limit, filter.byte_limit};
  if (!filter.operator_label.empty()) {
    // If most rows have the label, a search by index would find and sort all of them. So the next rows are looked at
    // first, in order and without an index: they usually fill a page.
    constexpr int64_t kNextRows = 20'000;
    Condition next = condition;
    next.source = "measurements m NOT INDEXED";
    next.And(fmt::format("m.id <= {} + {}", filter.after_row, kNextRows));
    HONE_ASSIGN_OR_RETURN(Page page, SelectRows(*reader, next, "m.id", limits, filter.with_workload_text));
    if (page.more) return page;
  }
  return SelectRows(*reader, condition, "m.id", limits, filter.with_workload_text);
}

absl::StatusOr<Page> SqliteStore::Newest(const Filter& filter, int64_t before_row) const {
  HONE_ASSIGN_OR_RETURN(const Readers::Borrowed reader, readers_.Borrow());
  HONE_ASSIGN_OR_RETURN(Condition condition, RowCondition(*reader, filter));
  condition.And(fmt::format("m.id < {}", before_row));
  return SelectRows(*reader, condition, "m.id DESC", {filter.limit, filter.byte_limit}, filter.with_workload_text);
}

absl::StatusOr<std::vector<StoredRecord>> SqliteStore::Sample(const Filter& filter, size_t rows,
                                                              const std::string& measured_by) const {
  HONE_ASSIGN_OR_RETURN(const Readers::Borrowed reader, readers_.Borrow());
  constexpr Limits kOne{1, SIZE_MAX, false};  // tells_more is false, because finding a second row may take long
  HONE_ASSIGN_OR_RETURN(Condition condition, RowCondition(*reader, filter));
  if (!measured_by.empty()) condition.And(fmt::format("m.measured_by_id = {}", kTextId), measured_by);
  HONE_ASSIGN_OR_RETURN(const Page newest, SelectRows(*reader, condition, "m.id DESC", kOne, false));
  std::vector<StoredRecord> sampled;
  if (newest.rows.empty() || rows == 0) return sampled;
  const int64_t last = newest.rows[0].row;
  Condition next = condition;
  while (sampled.size() < rows) {
    HONE_ASSIGN_OR_RETURN(const Page page, SelectRows(*reader, next, "m.id", kOne, false));
    if (page.rows.empty()) break;
    sampled.push_back(page.rows[0]);
    const int64_t first = sampled[0].row, row = page.rows[0].row;
    if (row >= last) break;
    const double step = static_cast<double>(last - first) / static_cast<double>(std::max<size_t>(1, rows - 1));
    const auto wanted = first + static_cast<int64_t>(step * static_cast<double>(sampled.size()));
    next = condition;
    next.And(fmt::format("m.id > {}", std::max(row, wanted - 1)));
  }
  return sampled;
}

absl::StatusOr<std::string> SqliteStore::WorkloadText(std::string_view digest) const {
  HONE_ASSIGN_OR_RETURN(const Readers::Borrowed reader, readers_.Borrow());
  HONE_ASSIGN_OR_RETURN(Statement statement, (*reader).Prepare("SELECT text FROM workloads WHERE digest = ?"));
  statement.Bind(1, digest);
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return absl::NotFoundError(fmt::format("records file {} has no workload {}", path_.string(), digest));
  return statement.Text(0);
}

absl::StatusOr<Stats> SqliteStore::Summarize() const {
  HONE_ASSIGN_OR_RETURN(const Readers::Borrowed reader, readers_.Borrow());
  Stats stats;
  for (const FailureKind kind : kAllFailureKinds) stats.failed[kind] = 0;
  HONE_ASSIGN_OR_RETURN(
      Statement totals,
      (*reader).Prepare(
          "SELECT (SELECT count(*) FROM measurements), "
          "(SELECT count(*) FROM workloads w WHERE EXISTS (SELECT 1 FROM measurements WHERE workload_id = w.id)), "
          "(SELECT count(*) FROM texts t WHERE EXISTS (SELECT 1 FROM measurements WHERE device_id = t.id))"));
  HONE_RETURN_IF_ERROR(totals.Step().status());
  stats.records = totals.Int(0);
  stats.workloads = totals.Int(1);
  stats.devices = totals.Int(2);
  HONE_ASSIGN_OR_RETURN(
      Statement failures,
      (*reader).Prepare("SELECT failure, count(*) FROM measurements WHERE failure IS NOT NULL GROUP BY failure"));
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool more, failures.Step());
    if (!more) return stats;
    if (const auto kind = FailureKindFromName(failures.Text(0)); kind.has_value()) {
      stats.failed[*kind] = failures.Int(1);
    }
  }
}

}  // namespace hone::storage
