// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/median.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/model_records.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/records_show.h"
#include "cli/records_verbs.h"
#include "fmt/format.h"
#include "records/winner.h"

namespace hone::cli {
namespace {

using nlohmann::ordered_json;
using records::BestRecord;
using records::StoredRecord;
using records::Verdict;

constexpr size_t kRecordsShownMax = 5;  // other candidates shown for each winner

std::string_view InWords(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWinner:
      return "wins";
    case Verdict::kSlower:
      return "slower in the same comparison";
    case Verdict::kNotBetterThanDefault:
      return "not better than the default in its batch";
    case Verdict::kMeasuredAgain:
      return "a later timing of the same schedule counts";
    case Verdict::kNotCompared:
      return "not in the newest final comparison, which decides alone, or timed at other sizes";
    case Verdict::kCondemned:
      return "its schedule failed a check, in this timing or later";
    case Verdict::kUnverified:
      return "its output was not compared with a reference";
    case Verdict::kFailed:
      return "failed";
  }
  return "";
}

// The values of a record that decide whether it wins. Only these are kept, because a workload may have very many
// records and few are shown.
struct RankedRecord {
  int64_t row;
  Verdict verdict;
  double seconds = 0;  // median; 0 = not timed
};

records::Filter OfKey(const records::Key& key) {
  return {.workload_digest = key.workload_digest,
          .target = key.target,
          .device_fingerprint = key.device_fingerprint,
          .compiler_version = key.compiler_version};
}

// All records of the winner's key, the winner first. The others are sorted by how close they came to winning (the order
// of Verdict), then by time.
absl::StatusOr<std::vector<RankedRecord>> RankRecords(const records::Source& source, const records::Key& key) {
  std::vector<records::Contender> contenders;
  HONE_RETURN_IF_ERROR(source.ForEach(OfKey(key), [&](const StoredRecord& row) {
    contenders.push_back(records::ContenderOf(row));
    return absl::OkStatus();
  }));
  const std::vector<Verdict> verdicts = records::Explain(contenders);
  std::vector<RankedRecord> ranked;
  for (size_t i = 0; i < contenders.size(); ++i) {
    const double seconds = contenders[i].repeats.empty() ? 0 : Median(contenders[i].repeats);
    ranked.push_back({contenders[i].row, verdicts[i], seconds});
  }
  std::sort(ranked.begin(), ranked.end(), [](const RankedRecord& a, const RankedRecord& b) {
    return std::tuple(a.verdict, a.seconds, a.row) < std::tuple(b.verdict, b.seconds, b.row);
  });
  return ranked;
}

// The complete record in row `row` of that key.
absl::StatusOr<records::Record> RowNumbered(const records::Source& source, const records::Key& key, int64_t row) {
  records::Filter filter = OfKey(key);
  filter.after_row = row - 1;
  filter.limit = 1;
  std::optional<records::Record> record;
  HONE_RETURN_IF_ERROR(source.ForEach(filter, [&](const StoredRecord& stored) {
    if (stored.row == row) record = stored.record;
    return absl::OkStatus();
  }));
  if (record.has_value()) return *std::move(record);
  return absl::NotFoundError(
      fmt::format("row {} of {} was removed while this command ran; run it again", row, source.name()));
}

std::string DecidedBy(const BestRecord& best) {
  return best.confirmed ? "the newest final comparison, which measured finalists and default in interleaved rounds"
                        : "races alone: there is no final comparison yet; hone tune makes one at its end";
}

ordered_json RankedRecordToJson(const RankedRecord& ranked_record, const records::Record& record) {
  return {{"row", ranked_record.row},
          {"verdict", records::VerdictName(ranked_record.verdict)},
          {"median_ms", ranked_record.seconds > 0 ? ordered_json(ranked_record.seconds * 1e3) : ordered_json()},
          {"outcome", OutcomeText(record)},
          {"is_default", record.is_default},
          {"batch", record.batch_id},
          {"measured_at", Utc(record.measured_at)},
          {"measured_by", record.measured_by},
          {"schedule", record.schedule}};
}

std::string RankedRecordToText(const RankedRecord& ranked_record, const records::Record& record,
                               double winner_seconds) {
  const double more = ranked_record.seconds > 0 ? (ranked_record.seconds / winner_seconds - 1) * 100 : 0;
  return fmt::format("      row {}  {}{}{}: {}\n", ranked_record.row, OutcomeText(record),
                     ranked_record.seconds > 0 ? fmt::format(" ({:+.1f}%)", more) : "",
                     record.is_default ? ", the default" : "", InWords(ranked_record.verdict));
}

absl::StatusOr<std::vector<BestRecord>> SelectWinners(const RecordsOptions& options, const records::Filter& filter,
                                                      const records::Source& source) {
  if (!options.model.given()) {
    if (filter.workload_digest.empty() && filter.operator_label.empty()) {
      return UsageError("no workload is selected; give --model FILE, --workload DIGEST or --operator TEXT");
    }
    records::Filter all = filter;
    all.limit = SIZE_MAX;
    return source.AllBest(all);
  }
  HONE_ASSIGN_OR_RETURN(ModelRecords found, FindModelRecords(options, filter, source));
  HONE_RETURN_IF_ERROR(CheckRequired(options, found));
  std::vector<BestRecord> winners;
  for (ModelRecords::Entry& entry : found.entries) {
    if (entry.record.has_value()) winners.push_back(std::move(entry.record->best));
  }
  return winners;
}

}  // namespace

absl::Status RunWhy(const RecordsOptions& options) {
  HONE_ASSIGN_OR_RETURN(const records::Filter filter, options.ResolvedFilter());
  HONE_ASSIGN_OR_RETURN(const auto source, options.source.Open(records::OpenMode::kReadOnly));
  HONE_ASSIGN_OR_RETURN(const std::vector<BestRecord> winners, SelectWinners(options, filter, *source));
  const size_t most = filter.limit == SIZE_MAX ? kRecordsShownMax : filter.limit;
  ordered_json list = ordered_json::array();
  std::string text;
  ProgressLine line;
  for (const BestRecord& best : winners) {
    line.Show(fmt::format("{} of {} winners explained", list.size(), winners.size()));
    HONE_ASSIGN_OR_RETURN(const std::vector<RankedRecord> ranked, RankRecords(*source, best.stored.record.key));
    std::map<Verdict, int64_t> counts;
    for (const RankedRecord& ranked_record : ranked) ++counts[ranked_record.verdict];
    ordered_json& fields = list.emplace_back(BestFields(best));
    fields["decided_by"] = best.confirmed ? "comparison" : "races";
    for (const Verdict verdict : records::kAllVerdicts)
      fields["counts"][records::VerdictName(verdict)] = counts[verdict];
    fields["contenders"] = ordered_json::array();
    text += BestText(best) + fmt::format("    decided by {}\n", DecidedBy(best));
    for (size_t i = 0; i < std::min(ranked.size(), most + 1); ++i) {
      HONE_ASSIGN_OR_RETURN(const records::Record record, RowNumbered(*source, best.stored.record.key, ranked[i].row));
      fields["contenders"].push_back(RankedRecordToJson(ranked[i], record));
      text += RankedRecordToText(ranked[i], record, best.median_seconds);
    }
    for (const Verdict verdict : records::kAllVerdicts) {
      if (counts[verdict] > 0) text += fmt::format("    {}: {}\n", counts[verdict], InWords(verdict));
    }
  }
  line.Finish();
  if (winners.empty()) PrintMessage("no verified timing matches\n");
  return options.json ? PrintJson({{"why", std::move(list)}}) : PrintText(text);
}

}  // namespace hone::cli
