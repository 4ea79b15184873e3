// SPDX-License-Identifier: Apache-2.0
// hone-farm-simulation: simulates one farm per seed until an invariant is violated.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>

#include "base/seconds_since.h"
#include "base/temporary_folder.h"
#include "tests/simulation/simulation.h"

namespace hone::simulation {
namespace {

struct MainOptions {
  uint64_t first = 1, count = 300, only = 0;
  bool verbose = false;
};

int Main(int argc, char** argv) {
  MainOptions options;
  CLI::App app("Simulates whole farms, each from a seed that decides everything.", "hone-farm-simulation");
  app.add_option("--seed", options.first, "the first seed");
  app.add_option("--seeds", options.count, "how many");
  app.add_option("--only-seed", options.only, "this one alone");
  app.add_flag("--verbose", options.verbose, "print every event");
  CLI11_PARSE(app, argc, argv);
  if (options.only != 0) options.first = options.only, options.count = 1;
  // Outboxes and locks are many small files, so they go to memory if the system has such a folder.
  absl::StatusOr<TemporaryFolder> folder = TemporaryFolder::Create("/dev/shm");
  if (!folder.ok()) folder = TemporaryFolder::Create();
  if (!folder.ok()) {
    fmt::print(stderr, "{}\n", std::string(folder.status().message()));
    return 1;
  }
  const auto begun = std::chrono::steady_clock::now();
  int64_t steps = 0, leases = 0, outcomes = 0, starts = 0;
  double simulated = 0;
  for (uint64_t seed = options.first; seed < options.first + options.count; ++seed) {
    const Verdict verdict = Simulate(seed, *folder / "farm", options.verbose);
    steps += verdict.steps;
    leases += verdict.leases;
    outcomes += verdict.outcomes;
    starts += verdict.starts;
    simulated += verdict.seconds;
    if (options.only != 0 || options.verbose) fmt::print("seed {} digest {:016x}\n", seed, verdict.digest);
    if (verdict.violation.empty()) continue;
    for (const std::string& note : verdict.notes) fmt::print("{}\n", note);
    fmt::print("\nseed {}, the {}. tried: {}\nto see it again: hone-farm-simulation --only-seed {}\n", seed,
               seed - options.first + 1, verdict.violation, seed);
    std::fflush(stdout);
    return 1;
  }
  const double seconds = SecondsSince(begun);
  fmt::print("{} seeds hold: {:.0f} hours, {} starts of the tracker, {} leases, {} outcomes, {} steps, in {:.0f} s\n",
             options.count, simulated / 3600, starts, leases, outcomes, steps, seconds);
  return 0;
}

}  // namespace
}  // namespace hone::simulation

int main(int argc, char** argv) { return hone::simulation::Main(argc, argv); }
