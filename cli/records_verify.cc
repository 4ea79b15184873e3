// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/records_verbs.h"
#include "compiler/execution/model.h"
#include "compiler/ir/workload.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "records/store.h"

namespace hone::cli {
namespace {

constexpr size_t kShown = 100;  // faults that are described; all are counted

// Counts the faults of a records file by kind, and keeps the texts of the first few.
class Findings {
 public:
  void Add(int64_t& count, std::string what) {
    ++count;
    if (first.size() < kShown) first.push_back(std::move(what));
  }
  int64_t rows = 0, workloads = 0, winners = 0;
  int64_t unreadable_rows = 0, wrong_workloads = 0, schedules_not_applying = 0;
  std::vector<std::string> first;
};

absl::Status CheckText(const std::string& text, const std::string& digest) {
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(text));
  if (Sha256Hex(text) != digest) return absl::DataLossError("its text does not have this digest");
  if (ir::WorkloadDigest(workload) == digest) return absl::OkStatus();
  return absl::DataLossError("its text is not canonical");
}

absl::Status CheckSchedule(const std::string& workload_text, const records::Record& record) {
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(workload_text));
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(record.key.target));
  HONE_ASSIGN_OR_RETURN(const schedule::Schedule schedule, schedule::ParseSchedule(record.schedule));
  HONE_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(workload, schedule));
  return execution::Lower(state, target, "kernel").status();
}

// The digests whose workload text is canonical and has that digest. Others are added to `findings`.
absl::StatusOr<std::set<std::string>> GoodWorkloads(const records::Store& store, const std::set<std::string>& digests,
                                                    Findings& findings) {
  std::set<std::string> good;
  for (const std::string& digest : digests) {
    HONE_ASSIGN_OR_RETURN(const std::string text, store.WorkloadText(digest));
    const absl::Status status = CheckText(text, digest);
    if (status.ok()) {
      good.insert(digest);
    } else {
      findings.Add(findings.wrong_workloads, fmt::format("workload {:.12}: {}", digest, std::string(status.message())));
    }
  }
  findings.workloads = static_cast<int64_t>(digests.size());
  return good;
}

absl::Status CheckWinners(const records::Store& store, const std::set<std::string>& good, ProgressLine& line,
                          Findings& findings) {
  HONE_ASSIGN_OR_RETURN(const std::vector<records::BestRecord> winners, store.AllBest({}));
  for (const records::BestRecord& best : winners) {
    const records::Record& record = best.stored.record;
    const std::string& digest = record.key.workload_digest;
    line.Show(fmt::format("{} of {} winners checked", ++findings.winners, winners.size()));
    if (!good.contains(digest)) continue;
    HONE_ASSIGN_OR_RETURN(const std::string text, store.WorkloadText(digest));
    const absl::Status status = CheckSchedule(text, record);
    if (status.ok()) continue;
    findings.Add(findings.schedules_not_applying,
                 fmt::format("row {}: its schedule does not apply to workload {:.12} with this Hone (it was measured "
                             "with {}): {}",
                             best.stored.row, digest, record.key.compiler_version, std::string(status.message())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunVerify(const RecordsOptions& options) {
  HONE_ASSIGN_OR_RETURN(const auto store, options.source.OpenFile(records::OpenMode::kReadOnly));
  HONE_RETURN_IF_ERROR(store->CheckIntegrity());
  Findings findings;
  std::set<std::string> digests;
  ProgressLine line;
  HONE_RETURN_IF_ERROR(store->ForEachRow([&](const absl::StatusOr<records::StoredRecord>& row) {
    line.Show(fmt::format("{} rows read", ++findings.rows));
    absl::Status status = row.status();
    if (row.ok() && !row->record.key.workload_digest.empty()) digests.insert(row->record.key.workload_digest);
    if (row.ok()) status = Annotate(records::Validate(row->record), fmt::format("row {}", row->row));
    if (!status.ok()) findings.Add(findings.unreadable_rows, std::string(status.message()));
  }));
  HONE_ASSIGN_OR_RETURN(const std::set<std::string> good, GoodWorkloads(*store, digests, findings));
  HONE_RETURN_IF_ERROR(CheckWinners(*store, good, line, findings));
  line.Finish();
  if (options.json) {
    HONE_RETURN_IF_ERROR(PrintJson({{"rows", findings.rows},
                                    {"unreadable_rows", findings.unreadable_rows},
                                    {"workloads", findings.workloads},
                                    {"wrong_workloads", findings.wrong_workloads},
                                    {"winners", findings.winners},
                                    {"schedules_not_applying", findings.schedules_not_applying},
                                    {"first", findings.first}}));
  } else {
    HONE_RETURN_IF_ERROR(PrintText(
        fmt::format("{}: its pages are intact; {} rows, {} of them unreadable; {} workloads, {} of them with a "
                    "wrong text; {} winners, {} of them with a schedule that does not apply\n",
                    store->path().string(), findings.rows, findings.unreadable_rows, findings.workloads,
                    findings.wrong_workloads, findings.winners, findings.schedules_not_applying)));
  }
  if (findings.first.empty()) return absl::OkStatus();
  std::string message = "the records have errors; every command skips records that cannot be read or applied:";
  for (const std::string& what : findings.first) message += "\n  " + what;
  return absl::DataLossError(message);
}

}  // namespace hone::cli
