#include "cli/compile_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/schedule_lookup.h"
#include "cli/tracker_options.h"
#include "deploy/package/compile_model.h"
#include "device_agent/cpu/host.h"
#include "records/default_path.h"

namespace hone::cli {
namespace {

struct Options {
  ModelOptions model;
  TrackerOptions tracker;
  std::string output, records;
  bool json = false;
};

absl::StatusOr<package::ScheduleLookup> Lookup(const Options& options, const target::Target& target) {
  Place place{target::Print(target), ""};
  HONE_ASSIGN_OR_RETURN(const target::Target host, target::ParseTarget("cpu"));
  if (SameMachine(target, host)) place.device_fingerprint = agent::DetectHost().text;
  if (options.tracker.given()) {
    TrackerOptions tracker = options.tracker;
    HONE_ASSIGN_OR_RETURN(const auto channel, tracker.Connect());
    return LookupAtTracker(v1::RecordService::NewStub(channel), place);
  }
  std::filesystem::path path = options.records;
  if (path.empty()) {
    HONE_ASSIGN_OR_RETURN(path, records::DefaultRecordsPath());
    // Nothing was ever tuned here: defaults are what there is. A file that was asked for must exist.
    if (!std::filesystem::exists(path)) return package::ScheduleLookup();
  }
  return LookupInFile(path, place);
}

// All programs together.
package::ProgramSummary Sum(const package::CompileSummary& summary) {
  package::ProgramSummary sum;
  for (const package::ProgramSummary& program : summary.programs) {
    sum.kernels += program.kernels;
    sum.records_used += program.records_used;
  }
  return sum;
}

nlohmann::ordered_json ToJson(const package::CompileSummary& summary) {
  const package::ProgramSummary sum = Sum(summary);
  nlohmann::ordered_json programs = nlohmann::ordered_json::array();
  for (const package::ProgramSummary& program : summary.programs) {
    nlohmann::ordered_json& added = programs.emplace_back();
    added = {{"target", program.target}, {"kernels", program.kernels}, {"records_used", program.records_used}};
    for (const package::LaneKernel& kernel : program.lane_kernels) {
      added["per_kernel"].push_back(
          {{"name", kernel.name}, {"lanes", kernel.lanes}, {"shared_bytes", kernel.shared_bytes}});
    }
  }
  return {{"seconds", summary.seconds},
          {"kernels", sum.kernels},
          {"records_used", sum.records_used},
          {"bytes", summary.bytes},
          {"programs", std::move(programs)}};
}

std::string ToText(const package::CompileSummary& summary, const std::string& path) {
  const package::ProgramSummary sum = Sum(summary);
  std::string text =
      fmt::format("{}: {} kernels, {} of them with recorded schedules, {:.1f} MB, {:.2f} s\n", path, sum.kernels,
                  sum.records_used, static_cast<double>(summary.bytes) * 1e-6, summary.seconds);
  if (summary.programs.size() == 1) return text;
  for (const package::ProgramSummary& program : summary.programs) {
    text += fmt::format("  {}: {} kernels, {} of them with recorded schedules\n", program.target, program.kernels,
                        program.records_used);
  }
  return text;
}

absl::Status Compile(const Options& options) {
  if (options.tracker.given() && !options.records.empty()) {
    return UsageError("--records and --tracker exclude each other: schedules come from one of them");
  }
  HONE_ASSIGN_OR_RETURN(const graph::ImportOptions import, options.model.Import());
  HONE_ASSIGN_OR_RETURN(const std::vector<target::Target> given, options.model.Targets());
  std::vector<package::KernelOptions> targets;
  for (const target::Target& target : given) {
    HONE_ASSIGN_OR_RETURN(package::ScheduleLookup lookup, Lookup(options, target));
    targets.push_back({.target = target, .lookup = std::move(lookup), .reproducers = options.model.reproducers});
  }
  HONE_ASSIGN_OR_RETURN(const package::CompileSummary summary,
                        package::CompileModel(options.model.models.front(), import, targets, options.output));
  for (const std::string& warning : summary.warnings) fmt::print(stderr, "warning: {}\n", warning);
  return options.json ? PrintJson(ToJson(summary)) : PrintText(ToText(summary, options.output));
}

}  // namespace

void AddCompileCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("compile", "compile a model into a package, with the best recorded schedules");
  options->model.AddTo(command, ModelOptions::Count::kOne, ModelOptions::Count::kSeveral);
  options->tracker.AddTo(command, false);
  command->add_option("-o,--output", options->output, "package to write")->required();
  command->add_option("--records", options->records, "records file (default: ~/.local/share/hone/records.db)");
  options->model.AddReproducersTo(command);
  command->add_flag("--json", options->json, "print one JSON document and nothing else");
  command->callback([options, result] { *result = Compile(*options); });
}

}  // namespace hone::cli
