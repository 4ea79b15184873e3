#include "cli/bench_command.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "cli/loaded_package.h"
#include "cli/output.h"
#include "cli/timed_runs.h"

namespace hone::cli {
namespace {

struct Options {
  std::string package;
  int threads = 0;
  double seconds = 2;
  bool json = false;
};

constexpr uint64_t kSeed = 1;

absl::Status Bench(const Options& options) {
  HONE_ASSIGN_OR_RETURN(LoadedPackage package, LoadedPackage::Load(options.package, options.threads));
  HONE_RETURN_IF_ERROR(package.FillInputs(kSeed));
  HONE_ASSIGN_OR_RETURN(const std::vector<double> seconds, TimedRuns(options.seconds, [&] { return package.Run(); }));
  const double best = 1e3 * Quantile(seconds, 0), median = 1e3 * Quantile(seconds, 0.5);
  const double p90 = 1e3 * Quantile(seconds, 0.9);
  if (options.json) {
    return PrintJson({{"min_ms", best},
                      {"median_ms", median},
                      {"p90_ms", p90},
                      {"runs", seconds.size()},
                      {"threads", package.threads()}});
  }
  return PrintText(fmt::format("min {:.3f} ms, median {:.3f} ms, p90 {:.3f} ms ({} runs, {} threads)\n", best, median,
                               p90, seconds.size(), package.threads()));
}

}  // namespace

void AddBenchCommand(CLI::App& app, absl::Status* result) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("bench", "Time a package on random inputs");
  command->add_option("PACKAGE", options->package, "The package, as hone compile writes it")->required();
  command->add_option("--threads", options->threads, "Threads that compute; 0: one per CPU")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seconds", options->seconds, "How long to measure")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options, result] { *result = Bench(*options); });
}

}  // namespace hone::cli
