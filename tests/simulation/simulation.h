// SPDX-License-Identifier: Apache-2.0
// A farm in one thread: the real tracker, agent loops and records; made-up devices, tuners and users. A director causes
// failures, repairs them, and checks that every job ends.
//
// The seed decides which kinds of failure occur, when, and the order of threads in every race. Start at Simulate.
#ifndef HONE_TESTS_SIMULATION_SIMULATION_H_
#define HONE_TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hone::simulation {

struct Verdict {
  std::string violation;           // "": all invariants held
  std::vector<std::string> notes;  // the last events
  uint64_t digest = 0;             // digest of all events; equal seeds give equal digests
  int64_t steps = 0;               // number of switches between threads
  double seconds = 0;              // simulated time
  int64_t leases = 0, outcomes = 0;
  int starts = 0;  // starts of the tracker
};

// folder: holds the real files of the programs (locks, outboxes).
Verdict Simulate(uint64_t seed, const std::filesystem::path& folder, bool verbose);

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_SIMULATION_H_
