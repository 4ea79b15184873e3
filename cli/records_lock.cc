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

// The records that the compilation asked for, by workload digest; each workload is compiled for one unit.
struct KnownRecords {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, std::vector<UsableRecord>> usable;  // by target and workload digest
};

package::ScheduleLookup RememberingLookup(const records::Source* source, const records::Filter& filter,
                                          const Place& place, KnownRecords& known) {
  return [source, filter, place,
          &known](const std::string& digest) -> absl::StatusOr<std::vector<package::RecordedSchedule>> {
    if (source == nullptr) return std::vector<package::RecordedSchedule>();
    HONE_ASSIGN_OR_RETURN(std::vector<UsableRecord> usable, UsableRecords(*source, place, digest, filter));
    std::vector<package::RecordedSchedule> schedules = ToRecordedSchedules(usable);
    const std::lock_guard lock(known.mutex);
    known.usable[{place.target, digest}] = std::move(usable);
    return schedules;
  };
}

// The schedules of all workloads for the units of one program. Compiles the kernels as `hone compile` does, so that the
// lock file pins exactly the units and schedules that it would use.
absl::StatusOr<LockedProgram> LockProgram(const RecordsOptions& options, const records::Filter& filter,
                                          const records::Source* source, const std::vector<DevicePlace>& places) {
  HONE_ASSIGN_OR_RETURN(graph::ImportOptions import, options.model.Import());
  import.may_read = [&](const std::string& external) { return CheckNotAnInput(options.file, {external}); };
  HONE_RETURN_IF_ERROR(AddDefaultRanges(options.model.models.front(), import));
  HONE_ASSIGN_OR_RETURN(const graph::Plan plan,
                        graph::BuildPlan(options.model.models.front(), import, places.front().target));
  KnownRecords known;
  std::vector<package::UnitOptions> units;
  std::vector<target::Target> targets;
  for (const DevicePlace& device : places) {
    const Place place{target::Print(device.target), device.fingerprint};
    units.push_back({device.target, RememberingLookup(source, filter, place, known)});
    targets.push_back(device.target);
  }
  ProgressLine line;
  package::KernelOptions compile = {.target = units.front().target, .lookup = units.front().lookup};
  compile.other_units.assign(units.begin() + 1, units.end());
  HONE_ASSIGN_OR_RETURN(compile.placement, options.model.PlacementOn(targets));
  compile.progress = [&line](size_t done, size_t all) {
    line.Show(fmt::format("{} of {} kernels compiled", done, all));
  };
  HONE_ASSIGN_OR_RETURN(const std::vector<package::CompiledKernel> kernels,
                        package::CompileKernels(plan.workloads, compile));
  line.Finish();
  LockedProgram program{PrintTargetList(targets), {}};
  for (size_t i = 0; i < kernels.size(); ++i) {
    const package::CompiledKernel& kernel = kernels[i];
    for (const std::string& warning : kernel.warnings) PrintMessage(fmt::format("warning: {}\n", warning));
    LockedWorkload workload{.digest = kernel.digest, .op = plan.workloads[i].op, .schedule = kernel.schedule};
    const std::string target = target::Print(UnitTarget(compile, kernel.unit));
    if (targets.size() > 1) workload.target = target;
    workload.calls = std::count_if(plan.calls.begin(), plan.calls.end(), [&](const graph::PlanCall& call) {
      return static_cast<size_t>(call.workload) == i;
    });
    if (kernel.record >= 0) {
      workload.record = RecordOf(known.usable[{target, kernel.digest}][static_cast<size_t>(kernel.record)]);
    }
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
  const absl::StatusOr<std::vector<target::Target>> parsed = ParseTargetList(program.target);
  return parsed.ok() && PrintTargetList(*parsed) == target;
}

// Where each workload of a locked program is computed. kDataLoss: a workload names a target that is not among `units`.
absl::StatusOr<package::Placement> LockedPlacement(const LockedProgram& program, const std::string& path,
                                                   const std::vector<target::Target>& units) {
  package::Placement placement;
  for (const LockedWorkload& workload : program.workloads) {
    const auto unit = std::ranges::find_if(units, [&](const target::Target& target) {
      return workload.target.empty() || target::Print(target) == workload.target;
    });
    if (unit == units.end()) {
      return absl::DataLossError(fmt::format("{}: workload {} is for {}, which is no target of its program {}", path,
                                             workload.digest, workload.target, program.target));
    }
    placement.by_digest[workload.digest] = static_cast<int>(unit - units.begin());
  }
  return placement;
}

// The options to compile with the program of the lock file for the targets `units`. option: the option that gave the
// targets, for messages.
absl::StatusOr<package::KernelOptions> LockedTarget(const LockFile& lock, const std::string& path,
                                                    const std::vector<target::Target>& units, std::string_view option) {
  const std::string text = PrintTargetList(units);
  const auto program =
      std::find_if(lock.programs.begin(), lock.programs.end(), [&](const LockedProgram& p) { return IsFor(p, text); });
  if (program == lock.programs.end()) {
    std::vector<std::string> known;
    for (const LockedProgram& p : lock.programs) known.push_back("\n  " + p.target);
    return absl::NotFoundError(
        fmt::format("{} has no target {}; lock it too (`hone records lock {} ...`), or leave {} out and compile for "
                    "the targets that it has:{}",
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
      return absl::NotFoundError(
          fmt::format("{} has no schedule for it on {}: the model, its --shape or its --bind differ from the locked "
                      "ones; lock again with `hone records lock`",
                      path, text));
    }
    return std::vector<package::RecordedSchedule>{found->second};
  };
  package::KernelOptions options{.target = units.front(), .lookup = lookup, .pinned = true};
  if (units.size() == 1) return options;
  for (size_t i = 1; i < units.size(); ++i) options.other_units.push_back({units[i], lookup});
  HONE_ASSIGN_OR_RETURN(options.placement, LockedPlacement(*program, path, units));
  return options;
}

}  // namespace

absl::Status RunLock(const RecordsOptions& options) {
  HONE_RETURN_IF_ERROR(CheckNotAnInput(options.file, options.model.Files()));
  HONE_RETURN_IF_ERROR(options.source.CheckNotARecordsFile(options.file));
  HONE_RETURN_IF_ERROR(CheckCanCreate(options.file));
  HONE_ASSIGN_OR_RETURN(const records::Filter filter, options.ResolvedFilter());
  HONE_ASSIGN_OR_RETURN(const std::vector<std::vector<DevicePlace>> lists, options.PlaceLists(filter));
  const auto source = options.source.OpenIfAny();
  HONE_RETURN_IF_ERROR(options.source.MissingIfNoFile(source.status(), options.require));
  LockFile lock = {.compiler = kCompilerVersion,
                   .model = std::filesystem::path(options.model.models.front()).filename().string(),
                   .programs = {}};
  for (const std::vector<DevicePlace>& places : lists) {
    HONE_ASSIGN_OR_RETURN(LockedProgram program, LockProgram(options, filter, source->get(), places));
    lock.programs.push_back(std::move(program));
  }
  HONE_RETURN_IF_ERROR(CheckNothingMissing(options, lock));
  HONE_RETURN_IF_ERROR(WriteLockFile(lock, options.file));
  return PrintLocked(options, lock);
}

absl::StatusOr<std::vector<package::KernelOptions>> LockedTargets(const LockFile& lock, const std::string& path,
                                                                  const ModelOptions& model) {
  if (lock.compiler != kCompilerVersion) {
    return absl::FailedPreconditionError(fmt::format(
        "{} was locked for compiler '{}', but this compiler is '{}', which may make different code from the same "
        "schedules; lock again with `hone records lock`, or, to keep the schedules, write this version into its line "
        "\"compiler\"",
        path, lock.compiler, kCompilerVersion));
  }
  std::vector<std::vector<target::Target>> lists;
  if (!model.targets.empty() || model.threads > 0) {
    HONE_ASSIGN_OR_RETURN(lists, model.TargetLists());
  } else {
    for (const LockedProgram& program : lock.programs) {
      absl::StatusOr<std::vector<target::Target>> units = ParseTargetList(program.target);
      if (!units.ok()) return Annotate(units.status(), path);
      lists.push_back(*std::move(units));
    }
  }
  const std::string_view option = model.targets.empty() ? "--threads" : "--target";
  std::vector<package::KernelOptions> result;
  for (const std::vector<target::Target>& units : lists) {
    HONE_ASSIGN_OR_RETURN(package::KernelOptions options, LockedTarget(lock, path, units, option));
    result.push_back(std::move(options));
  }
  return result;
}

}  // namespace hone::cli
