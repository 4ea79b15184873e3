#include "cli/compile_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/status.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/schedule_lookup.h"
#include "cli/tracker_options.h"
#include "deploy/package/compile_model.h"
#include "device_agent/device.h"
#include "records/default_path.h"

namespace hone::cli {
namespace {

struct Options {
  ModelOptions model;
  TrackerOptions tracker;
  std::string output, records;
  bool json = false;
};

absl::StatusOr<package::ScheduleLookup> Lookup(const Options& options, const codegen::Target& target) {
  Place place{codegen::Print(target), ""};
  HONE_ASSIGN_OR_RETURN(const codegen::Target host, codegen::ParseTarget("cpu"));
  if (target.arch == host.arch && target.cpu == host.cpu) place.device_fingerprint = agent::DetectDevice().text();
  if (options.tracker.given()) {
    HONE_ASSIGN_OR_RETURN(const auto channel, options.tracker.Connect());
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

absl::Status Compile(const Options& options) {
  if (options.tracker.given() && !options.records.empty()) {
    return UsageError("--records and --tracker exclude each other: schedules come from one of them");
  }
  HONE_ASSIGN_OR_RETURN(const graph::ImportOptions import, options.model.Import());
  package::KernelOptions kernels;
  HONE_ASSIGN_OR_RETURN(kernels.target, options.model.Target());
  HONE_ASSIGN_OR_RETURN(kernels.lookup, Lookup(options, kernels.target));
  HONE_ASSIGN_OR_RETURN(const package::CompileSummary summary,
                        package::CompileModel(options.model.model, import, kernels, options.output));
  for (const std::string& warning : summary.warnings) fmt::print(stderr, "warning: {}\n", warning);
  if (options.json) {
    return PrintJson({{"seconds", summary.seconds},
                      {"kernels", summary.kernels},
                      {"records_used", summary.records_used},
                      {"bytes", summary.bytes}});
  }
  return PrintText(fmt::format("{}: {} kernels, {} of them with recorded schedules, {:.1f} MB, {:.2f} s\n",
                               options.output, summary.kernels, summary.records_used,
                               static_cast<double>(summary.bytes) * 1e-6, summary.seconds));
}

}  // namespace

void AddCompileCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("compile", "compile a model into a package, with the best recorded schedules");
  options->model.AddTo(command);
  options->tracker.AddTo(command, false);
  command->add_option("-o,--output", options->output, "package to write")->required();
  command->add_option("--records", options->records, "records file (default: ~/.local/share/hone/records.db)");
  command->add_flag("--json", options->json, "print one JSON document and nothing else");
  command->callback([options, result] { *result = Compile(*options); });
}

}  // namespace hone::cli
