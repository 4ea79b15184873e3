// SPDX-License-Identifier: Apache-2.0
#include "cli/hint_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "cli/output.h"
#include "compiler/ir/workload.h"
#include "compiler/space/chooser.h"
#include "tuner/hints.h"

namespace hone::cli {
namespace {

constexpr size_t kHintsOfAWorkload = 3;  // limit for each workload, because hints use up places of the first batch
constexpr size_t kLinesShown = 10;       // line numbers that a report names for one reason

std::string ReportOf(const std::string& file, const tuner::TvmLog& log) {
  std::string text =
      fmt::format("{}: {} tiled schedules, {} that failed in that log\n", file, log.tasks.size(), log.failed);
  for (const auto& [reason, lines] : log.unread) {
    const size_t shown = std::min(lines.size(), kLinesShown);
    const std::vector<int64_t> first(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(shown));
    text += fmt::format("  not read: line{} {}{}: {}\n", lines.size() == 1 ? "" : "s", fmt::join(first, ", "),
                        shown < lines.size() ? fmt::format(" and {} more", lines.size() - shown) : "", reason);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::vector<tuner::TiledTask>> ReadHintFiles(const std::vector<std::string>& files) {
  std::vector<tuner::TiledTask> tasks;
  for (const std::string& file : files) {
    std::ifstream text(file);
    if (!text) return absl::NotFoundError(fmt::format("--hints {}: {}", file, std::strerror(errno)));
    absl::StatusOr<tuner::TvmLog> log = tuner::ReadTvmLog(text);
    if (!log.ok()) return Annotate(log.status(), "--hints " + file);
    if (text.bad()) return absl::DataLossError(fmt::format("--hints {}: {}", file, std::strerror(errno)));
    PrintMessage(ReportOf(file, *log));
    std::move(log->tasks.begin(), log->tasks.end(), std::back_inserter(tasks));
  }
  return tuner::FastestFirst(std::move(tasks));
}

absl::Status AddHints(const std::vector<tuner::TiledTask>& tasks, v1::JobSpec& spec) {
  int hinted = 0;
  for (v1::WorkloadSpec& workload : *spec.mutable_workloads()) {
    HONE_ASSIGN_OR_RETURN(const ir::Workload parsed, ir::ParseWorkload(workload.text()));
    for (const space::TileHint& hint : tuner::HintsFor(parsed, tasks, kHintsOfAWorkload)) {
      workload.add_hints(space::Print(hint));
    }
    hinted += workload.hints().empty() ? 0 : 1;
  }
  PrintMessage(fmt::format("{}: {} of {} workloads start from hints\n", spec.name(), hinted, spec.workloads_size()));
  return absl::OkStatus();
}

}  // namespace hone::cli
