// SPDX-License-Identifier: Apache-2.0
#include "cli/records_lock.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/records_show.h"
#include "cli/schedule_lookup.h"
#include "compiler/graph/plan.h"
#include "compiler/version.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::cli {
namespace {

constexpr char kOtherTarget[] = "other_target";

LockedRecord RecordOf(const UsableRecord& used) {
  const records::Record& record = used.best.stored.record;
  LockedRecord locked = {.measurement = record.measurement_id,
                         .device = record.key.device_fingerprint,
                         .compiler = record.key.compiler_version,
                         .measured_at = Utc(record.measured_at),
                         .closeness = used.closeness,
                         .median_ms = used.best.median_seconds * 1e3,
                         .default_ms = std::nullopt};
  if (used.best.default_seconds.has_value()) locked.default_ms = *used.best.default_seconds * 1e3;
  return locked;
}

// The schedules of all workloads for one target. Compiles the kernels as `hone compile` does, so that the lock file
// pins exactly the schedules that it would use.
absl::StatusOr<LockedProgram> LockProgram(const RecordsOptions& options, const records::Filter& filter,
                                          const records::Source* source, const DevicePlace& device) {
  const target::Target& target = device.target;
  const Place place{target::Print(target), device.fingerprint};
  HONE_ASSIGN_OR_RETURN(graph::ImportOptions import, options.model.Import());
  import.may_read = [&](const std::string& external) { return CheckNotAnInput(options.file, {external}); };
  HONE_ASSIGN_OR_RETURN(const graph::Plan plan, graph::BuildPlan(options.model.models.front(), import, target));
  std::mutex mutex;
  std::map<std::string, std::vector<UsableRecord>> known;  // by workload digest
  const auto lookup = [&](const std::string& digest) -> absl::StatusOr<std::vector<package::RecordedSchedule>> {
    if (source == nullptr) return std::vector<package::RecordedSchedule>();
    HONE_ASSIGN_OR_RETURN(std::vector<UsableRecord> usable, UsableRecords(*source, place, digest, filter));
    std::vector<package::RecordedSchedule> schedules = ToRecordedSchedules(usable);
    const std::lock_guard lock(mutex);
    known[digest] = std::move(usable);
    return schedules;
  };
  ProgressLine line;
  const auto show = [&line](size_t done, size_t all) {
    line.Show(fmt::format("{} of {} kernels are compiled", done, all));
  };
  HONE_ASSIGN_OR_RETURN(
      const std::vector<package::CompiledKernel> kernels,
      package::CompileKernels(plan.workloads, {.target = target, .lookup = lookup, .progress = show}));
  line.Finish();
  LockedProgram program{place.target, {}};
  for (size_t i = 0; i < kernels.size(); ++i) {
    const package::CompiledKernel& kernel = kernels[i];
    for (const std::string& warning : kernel.warnings) PrintMessage(fmt::format("warning: {}\n", warning));
    LockedWorkload workload{kernel.digest, plan.workloads[i].op, 0, kernel.schedule, std::nullopt};
    workload.calls = std::count_if(plan.calls.begin(), plan.calls.end(), [&](const graph::PlanCall& call) {
      return static_cast<size_t>(call.workload) == i;
    });
    if (kernel.record >= 0) workload.record = RecordOf(known[kernel.digest][static_cast<size_t>(kernel.record)]);
    program.workloads.push_back(std::move(workload));
  }
  return program;
}

bool HasRecord(const LockedWorkload& workload) {
  return workload.record.has_value() && workload.record->closeness != kOtherTarget;
}

absl::Status PrintLocked(const RecordsOptions& options, const LockFile& lock) {
  nlohmann::ordered_json programs = nlohmann::ordered_json::array();
  std::string text;
  for (const LockedProgram& program : lock.programs) {
    const size_t all = program.workloads.size();
    const auto found = std::count_if(program.workloads.begin(), program.workloads.end(), HasRecord);
    programs.push_back({{"target", program.target},
                        {"workloads", all},
                        {"found", found},
                        {"missing", static_cast<int64_t>(all) - found}});
    text +=
        fmt::format("{}: {} workloads, {} of them with a record for {}\n", options.file, all, found, program.target);
  }
  return options.json ? PrintJson({{"file", options.file}, {"programs", programs}}) : PrintText(text);
}

absl::Status CheckNothingMissing(const RecordsOptions& options, const LockFile& lock) {
  if (!options.require) return absl::OkStatus();
  for (const LockedProgram& program : lock.programs) {
    const auto found = std::count_if(program.workloads.begin(), program.workloads.end(), HasRecord);
    const auto missing = static_cast<int64_t>(program.workloads.size()) - found;
    if (missing == 0) continue;
    return RecordsMissingError(fmt::format(
        "{} of the {} workloads of {} have no record for {}, and nothing was written; `hone tune` measures them",
        missing, program.workloads.size(), options.model.models.front(), program.target));
  }
  return absl::OkStatus();
}

// Whether the program is for `target`, a canonical text. An earlier Hone may have written the same target in another
// form, so the program's target is also compared after parsing.
bool IsFor(const LockedProgram& program, const std::string& target) {
  if (program.target == target) return true;
  const absl::StatusOr<target::Target> parsed = target::ParseTarget(program.target);
  return parsed.ok() && target::Print(*parsed) == target;
}

// The options to compile with the program of the lock file for `target`. option: the option that gave the target, for
// messages.
absl::StatusOr<package::KernelOptions> LockedTarget(const LockFile& lock, const std::string& path,
                                                    const target::Target& target, std::string_view option) {
  const std::string text = target::Print(target);
  const auto program =
      std::find_if(lock.programs.begin(), lock.programs.end(), [&](const LockedProgram& p) { return IsFor(p, text); });
  if (program == lock.programs.end()) {
    std::vector<std::string> known;
    for (const LockedProgram& p : lock.programs) known.push_back("\n  " + p.target);
    return absl::NotFoundError(
        fmt::format("{} has no target {}; lock it too (`hone records lock {} ...`), or leave {} out for those that it "
                    "has:{}",
                    path, text, option, option, fmt::join(known, "")));
  }
  using Locked = std::map<std::string, package::RecordedSchedule>;
  auto schedules = std::make_shared<Locked>();
  for (const LockedWorkload& workload : program->workloads) {
    (*schedules)[workload.digest] = {
        workload.schedule, fmt::format("its schedule in {} does not apply; lock again with `hone records lock`", path),
        workload.record.has_value()};
  }
  const auto lookup = [schedules = std::shared_ptr<const Locked>(schedules), path,
                       text](const std::string& digest) -> absl::StatusOr<std::vector<package::RecordedSchedule>> {
    const auto found = schedules->find(digest);
    if (found == schedules->end()) {
      return absl::NotFoundError(fmt::format(
          "{} has no schedule for it on {}: the model, its --shape or its --bind are not those that were locked; lock "
          "again with `hone records lock`",
          path, text));
    }
    return std::vector<package::RecordedSchedule>{found->second};
  };
  return package::KernelOptions{.target = target, .lookup = lookup, .pinned = true};
}

}  // namespace

absl::Status RunLock(const RecordsOptions& options) {
  HONE_RETURN_IF_ERROR(CheckNotAnInput(options.file, options.model.Files()));
  HONE_RETURN_IF_ERROR(options.source.CheckNotARecordsFile(options.file));
  HONE_RETURN_IF_ERROR(CheckCanCreate(options.file));
  HONE_ASSIGN_OR_RETURN(const records::Filter filter, options.ResolvedFilter());
  HONE_ASSIGN_OR_RETURN(const std::vector<DevicePlace> places, options.Places(filter));
  HONE_ASSIGN_OR_RETURN(const auto source, options.source.OpenIfAny());
  LockFile lock = {.compiler = kCompilerVersion,
                   .model = std::filesystem::path(options.model.models.front()).filename().string(),
                   .programs = {}};
  for (const DevicePlace& place : places) {
    HONE_ASSIGN_OR_RETURN(LockedProgram program, LockProgram(options, filter, source.get(), place));
    lock.programs.push_back(std::move(program));
  }
  HONE_RETURN_IF_ERROR(CheckNothingMissing(options, lock));
  HONE_RETURN_IF_ERROR(WriteLockFile(lock, options.file));
  return PrintLocked(options, lock);
}

absl::StatusOr<std::vector<package::KernelOptions>> LockedTargets(const LockFile& lock, const std::string& path,
                                                                  const ModelOptions& model) {
  if (lock.compiler != kCompilerVersion) {
    return absl::FailedPreconditionError(
        fmt::format("{} was locked for compiler '{}', and this is '{}', which may make other code of the same "
                    "schedules; lock again "
                    "with `hone records lock`, or, to keep the schedules as they are, write this version into its line "
                    "\"compiler\"",
                    path, lock.compiler, kCompilerVersion));
  }
  std::vector<target::Target> targets;
  if (!model.targets.empty() || model.threads > 0) {
    HONE_ASSIGN_OR_RETURN(targets, model.Targets());
  } else {
    for (const LockedProgram& program : lock.programs) {
      absl::StatusOr<target::Target> target = target::ParseTarget(program.target);
      if (!target.ok()) return Annotate(target.status(), path);
      targets.push_back(*std::move(target));
    }
  }
  const std::string_view option = model.targets.empty() ? "--threads" : "--target";
  std::vector<package::KernelOptions> result;
  for (const target::Target& target : targets) {
    HONE_ASSIGN_OR_RETURN(package::KernelOptions options, LockedTarget(lock, path, target, option));
    result.push_back(std::move(options));
  }
  return result;
}

}  // namespace hone::cli
