// SPDX-License-Identifier: Apache-2.0
// A farm in one thread, with everything that can go wrong: the real tracker, agents' loops and records; made-up
// devices, tuners and people; and a director who lets things break, mends them, and sees that everything ends well.
//
// The seed decides which kinds of trouble there are, when, and every race between threads. Start at Simulate.
#ifndef HONE_TESTS_SIMULATION_SIMULATION_H_
#define HONE_TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hone::simulation {

struct Verdict {
  std::string violation;           // "" when all invariants held
  std::vector<std::string> notes;  // the last events
  uint64_t digest = 0;             // of everything that happened
  int64_t steps = 0;               // how often another thread went on
  double seconds = 0;              // simulated
  int64_t leases = 0, outcomes = 0;
  int starts = 0;  // of the tracker
};

// folder: for what the programs keep in real files (locks, outboxes).
Verdict Simulate(uint64_t seed, const std::filesystem::path& folder, bool verbose);

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_SIMULATION_H_
