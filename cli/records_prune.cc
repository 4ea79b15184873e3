// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/records_verbs.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "records/prune.h"
#include "records/store.h"

namespace hone::cli {

absl::Status RunPrune(const RecordsOptions& options) {
  records::PruneRule rule;
  if (options.older_than >= 0) {
    rule.before = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now()) -
                  std::chrono::days(options.older_than);
  }
  if (options.keep_best >= 0) rule.keep_best = static_cast<size_t>(options.keep_best);
  if (!rule.before.has_value() && !rule.keep_best.has_value()) {
    return UsageError("no rule says which records to remove; give --older-than DAYS, --keep-best N, or both");
  }
  HONE_ASSIGN_OR_RETURN(const records::Filter filter, options.ResolvedFilter());
  if (options.yes) {
    // Opening for writing would create the file. A missing file is probably a mistyped name, so it is an error.
    const absl::Status there = options.source.OpenFile(records::OpenMode::kReadOnly).status();
    if (absl::IsNotFound(there)) return there;
  }
  HONE_ASSIGN_OR_RETURN(const auto store, options.source.OpenFile(options.yes ? records::OpenMode::kReadWrite
                                                                              : records::OpenMode::kReadOnly));
  ProgressLine line;
  const auto show = [&line](const records::PruneReport& so_far) {
    line.Show(fmt::format("{} rows checked", so_far.rows));
  };
  HONE_ASSIGN_OR_RETURN(const records::PruneReport report, store->Prune(filter, rule, options.yes, show));
  line.Finish();
  if (options.json) {
    HONE_RETURN_IF_ERROR(PrintJson({{"records", report.rows},
                                    {"removed", options.yes ? report.prunable : 0},
                                    {"would_go", report.prunable},
                                    {"keys", report.keys},
                                    {"keys_with_such", report.keys_prunable}}));
  } else {
    HONE_RETURN_IF_ERROR(
        PrintText(fmt::format("{}: {} of {} records {}, of {} of the {} workloads, targets, devices and compilers{}\n",
                              store->path().string(), report.prunable, report.rows,
                              options.yes ? "were removed" : "would be removed", report.keys_prunable, report.keys,
                              options.yes ? "" : "; --yes removes them; `hone records export` makes a copy first")));
  }
  return report.shrunk;
}

}  // namespace hone::cli
