// The `hone` command: adds every subcommand, parses, and turns the result into an exit code (cli/command.h).
#include "CLI/CLI.hpp"
#include "cli/bench_command.h"
#include "cli/command.h"
#include "cli/compile_command.h"
#include "cli/doctor_command.h"
#include "cli/farm_commands.h"
#include "cli/identity_commands.h"
#include "cli/profile_command.h"
#include "cli/records_command.h"
#include "cli/run_command.h"
#include "cli/tune_command.h"
#include "cli/up_command.h"

int main(int argc, char** argv) {
  CLI::App app("Hone makes neural networks fast on the device at hand", "hone");
  app.set_version_flag("--version", "hone " HONE_VERSION);
  app.require_subcommand(1);
  absl::Status result;
  hone::cli::AddTuneCommand(app, &result);
  hone::cli::AddCompileCommand(app, &result);
  hone::cli::AddRunCommand(app, &result);
  hone::cli::AddBenchCommand(app, &result);
  hone::cli::AddProfileCommand(app, &result);
  hone::cli::AddRecordsCommand(app, &result);
  hone::cli::AddFarmCommands(app, &result);
  hone::cli::AddUpCommand(app, &result);
  hone::cli::AddIdentityCommands(app, &result);
  hone::cli::AddDoctorCommand(app, &result);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version end here too, with 0.
    return app.exit(error) == 0 ? hone::cli::kSuccess : hone::cli::kWrongUsage;
  }
  return hone::cli::FinishCommand(result);
}
