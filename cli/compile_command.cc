// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/resolve_path.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/farm_devices.h"
#include "cli/model_compilation.h"
#include "cli/model_options.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/quantity_text.h"
#include "cli/record_source.h"
#include "cli/records_lock.h"
#include "cli/schedule_lookup.h"
#include "deploy/package/atomic_file.h"
#include "deploy/package/compile_model.h"
#include "fmt/ranges.h"

namespace hone::cli {
namespace {

struct CompileOptions {
  ModelOptions model;
  RecordSourceOptions source;
  std::vector<std::string> devices;  // names and labels of devices (tracker/queue/matches.h)
  std::string output, locked, header, header_name;
  bool require = false;  // exit code 3, and no package, if a kernel has no record
  bool json = false;

  OtherTargets others() const { return require ? OtherTargets::kIgnored : OtherTargets::kUsed; }
  // Whether the user named records, and so expects that some are used.
  bool wants_records() const { return source.given() || !devices.empty(); }
};

nlohmann::ordered_json ToJson(const package::CompileSummary& summary) {
  const package::ProgramSummary sum = Sum(summary.programs);
  nlohmann::ordered_json programs = nlohmann::ordered_json::array();
  for (const package::ProgramSummary& program : summary.programs) {
    nlohmann::ordered_json& added = programs.emplace_back();
    added = {{"target", program.target},
             {"shapes", program.shapes},
             {"kernels", program.kernels},
             {"records_used", program.records_used}};
    if (!program.foreign.empty()) added["foreign"] = program.foreign;
    for (const package::KernelSummary& kernel : program.per_kernel) {
      nlohmann::ordered_json& fields = added["per_kernel"].emplace_back();
      fields = {{"name", kernel.name}, {"workload", kernel.digest}, {"code", kernel.code_digest}};
      if (kernel.target != program.target) fields["target"] = kernel.target;
      if (kernel.lanes == 0) continue;
      fields["lanes"] = kernel.lanes;
      fields["shared_bytes"] = kernel.shared_bytes;
      if (!kernel.resources.has_value()) continue;
      fields["registers"] = kernel.resources->registers;
      fields["spill_bytes"] = kernel.resources->spill_bytes;
    }
  }
  return {{"seconds", summary.seconds},
          {"kernels", sum.kernels},
          {"records_used", sum.records_used},
          {"bytes", summary.bytes},
          {"programs", std::move(programs)}};
}

// A line for each unit that computes kernels; empty if the program has one target.
std::string UnitsToText(const package::ProgramSummary& program) {
  std::map<std::string, int> kernels;  // by target of the unit
  for (const package::KernelSummary& kernel : program.per_kernel) ++kernels[kernel.target];
  std::string text;
  for (const auto& [target, count] : kernels) {
    if (target != program.target) text += fmt::format("    {} kernels on {}\n", count, target);
  }
  return text;
}

std::string ToText(const package::CompileSummary& summary, const std::string& path) {
  const package::ProgramSummary sum = Sum(summary.programs);
  std::string text =
      fmt::format("{}: {} kernels, {} of them with recorded schedules, {}, {:.2f} s\n", path, sum.kernels,
                  sum.records_used, BytesText(static_cast<double>(summary.bytes)), summary.seconds);
  if (summary.programs.size() == 1) return text + UnitsToText(summary.programs.front());
  for (const package::ProgramSummary& program : summary.programs) {
    const bool is_one = std::ranges::count(summary.programs, program.target, &package::ProgramSummary::target) == 1;
    const std::string shapes = is_one ? "" : fmt::format(" with {}", fmt::join(program.shapes, " "));
    text += fmt::format("  {}{}: {} kernels, {} of them with recorded schedules\n", program.target, shapes,
                        program.kernels, program.records_used);
    text += UnitsToText(program);
  }
  return text;
}

// The options to compile for the devices of --device. The targets are those that the devices' agents report. Records of
// such devices are preferred.
absl::StatusOr<std::vector<package::KernelOptions>> RecordedForDevices(const CompileOptions& options) {
  if (!options.model.targets.empty()) {
    return UsageError("--device and --target exclude each other: the device says what is compiled for it");
  }
  if (!options.model.places.empty()) {
    return UsageError("--device and --place exclude each other: each device computes all; join targets with --target");
  }
  if (!options.source.records.empty()) {
    return UsageError("--device and --records exclude each other: the device's tracker has its records");
  }
  RecordSourceOptions farm = options.source;
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Device> known, KnownDevices(farm.tracker));
  HONE_ASSIGN_OR_RETURN(const std::vector<DevicePlace> places,
                        SelectDevicePlaces(known, options.devices, options.model.threads));
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const records::Source> source, farm.Open(records::OpenMode::kReadOnly));
  return RecordedTargets(places, source, options.others());
}

absl::StatusOr<std::vector<package::KernelOptions>> Recorded(const CompileOptions& options) {
  if (!options.devices.empty()) return RecordedForDevices(options);
  absl::StatusOr<std::shared_ptr<const records::Source>> opened = options.source.OpenIfAny();
  HONE_RETURN_IF_ERROR(options.source.MissingIfNoFile(opened.status(), options.require));
  return RecordedTargets(options.model, *opened, options.others());
}

absl::StatusOr<std::vector<package::KernelOptions>> Targets(const CompileOptions& options) {
  std::vector<package::KernelOptions> targets;
  if (options.locked.empty()) {
    HONE_ASSIGN_OR_RETURN(targets, Recorded(options));
  } else {
    if (options.source.given()) {
      return UsageError("--locked excludes --records and --tracker: every schedule comes from the lock file");
    }
    if (!options.model.places.empty()) {
      return UsageError("--locked excludes --place: the lock file says which target computes what");
    }
    if (options.require) {
      return UsageError("--locked excludes --require: hone records lock --require checks the records of a lock file");
    }
    if (!options.devices.empty()) {
      return UsageError("--locked excludes --device: the lock file says what was locked; choose with --target");
    }
    HONE_ASSIGN_OR_RETURN(const LockFile lock, ReadLockFile(options.locked));
    HONE_ASSIGN_OR_RETURN(targets, LockedTargets(lock, options.locked, options.model));
  }
  for (package::KernelOptions& target : targets) target.reproducers = options.model.reproducers;
  return targets;
}

// Checks before the work that no output would overwrite an input, and that every output can be written.
absl::Status CheckOutputs(const CompileOptions& options) {
  std::vector<std::string> inputs = options.model.Files(), outputs = {options.output};
  inputs.push_back(options.locked);
  if (!options.header.empty()) outputs.push_back(options.header);
  for (const std::string& output : outputs) {
    HONE_RETURN_IF_ERROR(CheckNotAnInput(output, inputs));
    HONE_RETURN_IF_ERROR(options.source.CheckNotARecordsFile(output));
  }
  if (outputs.size() > 1 && ResolvePath(options.header) == ResolvePath(options.output)) {
    return UsageError(fmt::format("-o and --header name one file, {}; give each its own", options.output));
  }
  for (const std::string& output : outputs) HONE_RETURN_IF_ERROR(CheckCanCreate(output));
  return absl::OkStatus();
}

// With --require: the error for kernels without a record. Without it: a warning if records were named and none is used.
absl::Status CheckRecordsUsed(const CompileOptions& options, std::span<const package::ProgramSummary> programs) {
  const package::ProgramSummary sum = Sum(programs);
  const std::string& model = options.model.models.front();
  if (options.require) {
    if (sum.records_used == sum.kernels) return absl::OkStatus();
    return RecordsMissingError(fmt::format(
        "{} of the {} kernels of {} use no record for {}, and nothing was written; `hone tune` measures them",
        sum.kernels - sum.records_used, sum.kernels, model, TargetsWithoutRecords(programs)));
  }
  if (options.wants_records()) {
    WarnIfUntuned(model, programs, "`hone tune` measures them, and --require makes this an error");
  }
  return absl::OkStatus();
}

absl::Status Compile(const CompileOptions& options) {
  HONE_RETURN_IF_ERROR(CheckOutputs(options));
  HONE_ASSIGN_OR_RETURN(std::vector<graph::ImportOptions> imports, options.model.Imports());
  for (graph::ImportOptions& import : imports) {
    import.may_read = [&](const std::string& external) {
      const absl::Status package = CheckNotAnInput(options.output, {external});
      return package.ok() ? CheckNotAnInput(options.header, {external}) : package;
    };
  }
  HONE_ASSIGN_OR_RETURN(std::vector<package::KernelOptions> targets, Targets(options));
  for (graph::ImportOptions& import : imports) {
    HONE_RETURN_IF_ERROR(AddDefaultRanges(options.model.models.front(), import));
  }
  ProgressLine line;
  ShowKernels(line, targets);
  HONE_ASSIGN_OR_RETURN(
      const package::CompileSummary summary,
      package::CompileModel(options.model.models.front(), imports, targets, options.output, options.header_name,
                            [&](const auto& programs) { return CheckRecordsUsed(options, programs); }));
  line.Finish();
  if (!options.header.empty()) HONE_RETURN_IF_ERROR(package::WriteTextFile(summary.cpp_header, options.header));
  for (const std::string& warning : summary.warnings) PrintMessage(fmt::format("warning: {}\n", warning));
  return options.json ? PrintJson(ToJson(summary)) : PrintText(ToText(summary, options.output));
}

}  // namespace

void AddCompileCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<CompileOptions>();
  CLI::App* command = app.add_subcommand("compile", "compile a model into a package, with the best recorded schedules");
  options->model.AddTo(command, ModelOptions::Count::kOne, ModelOptions::Count::kSeveral);
  options->source.AddTo(command, {&options->locked});
  command
      ->add_option("--device", options->devices,
                   "device of the farm to compile for, with its records: AGENT, AGENT/DEVICE, LABEL or NAME=VALUE; may "
                   "be given again")
      ->expected(1)
      ->check(NotEmpty)
      ->take_all();
  command->add_option("-o,--output", options->output, "package to write")->required()->check(NotEmpty)->check(NotDash);
  CLI::Option* header =
      command->add_option("--header", options->header, "also write a C++ header with the model's inputs and outputs");
  header->check(NotEmpty)->check(NotDash);
  command->add_option("--header-name", options->header_name, "namespace in that header (the name of the model's file)")
      ->check(NotEmpty)
      ->needs(header);
  command
      ->add_option("--locked", options->locked,
                   "compile with exactly the schedules of this file (hone records lock), without records")
      ->check(NotEmpty);
  command->add_flag("--require", options->require,
                    "end with exit code 3, without a package, if a kernel has no record");
  options->model.AddPlaceTo(command);
  options->model.AddReproducersTo(command);
  command->add_flag("--json", options->json, "print one JSON document and nothing else");
  command->callback([options, result] { *result = Compile(*options); });
}

}  // namespace hone::cli
