// SPDX-License-Identifier: Apache-2.0
// The `hone` command: adds every subcommand, parses, and turns the result into an exit code (cli/command.h).
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>

#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/resource_limit.h"
#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace hone::cli {
namespace {

// Prints the reason why parsing ended before a command ran, and returns the exit code: 0 for --help and --version.
int FinishParsing(const CLI::App& app, const CLI::ParseError& error) {
  // For an unknown command, CLI11 only reports that a command is missing, so the message is made here.
  const CLI::App* last = &app;
  std::string name = app.get_name();
  while (!last->get_subcommands().empty()) {
    last = last->get_subcommands().front();
    name += " " + last->get_name();
  }
  const std::vector<std::string> unknown = last->remaining();
  if (error.get_exit_code() != 0 && last->get_require_subcommand_min() > 0 && !unknown.empty()) {
    return FinishCommand(
        UsageError(fmt::format("{0} does not know '{1}'; {0} --help lists its commands", name, unknown.front())));
  }
  std::ostringstream help;
  if (app.exit(error, help, std::cerr) != 0) return kWrongUsage;
  return FinishCommand(PrintText(help.str()));
}

}  // namespace
}  // namespace hone::cli

int main(int argc, char** argv) {
  hone::OpenClosedStandardStreams();
  signal(SIGPIPE, SIG_IGN);  // writing to a closed pipe fails with an error, which output.h reports or ignores
  // Logs go to standard error, because programs read the results on standard output.
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>()));
  hone::IgnoreFileSizeSignal();
  CLI::App app("Hone makes neural networks run fast on your devices", "hone");
  app.set_version_flag("--version", "hone " HONE_VERSION);
  app.require_subcommand(1);
  absl::Status result;
  hone::cli::AddTuneCommand(app, &result);
  hone::cli::AddCompileCommand(app, &result);
  hone::cli::AddCheckCommand(app, &result);
  hone::cli::AddQuantizeCommand(app, &result);
  hone::cli::AddRunCommand(app, &result);
  hone::cli::AddDiffCommand(app, &result);
  hone::cli::AddBenchCommand(app, &result);
  hone::cli::AddProfileCommand(app, &result);
  hone::cli::AddCompareCommand(app, &result);
  hone::cli::AddGateCommand(app, &result);
  hone::cli::AddRecordsCommand(app, &result);
  hone::cli::AddFarmCommands(app, &result);
  hone::cli::AddWatchFleetCommand(app, &result);
  hone::cli::AddUpCommand(app, &result);
  hone::cli::AddIdentityCommands(app, &result);
  hone::cli::AddDoctorCommand(app, &result);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return hone::cli::FinishParsing(app, error);
  }
  return hone::cli::FinishCommand(result);
}
