// SPDX-License-Identifier: Apache-2.0
// Tuners that search nothing: they submit batches at a given pace and fetch what came of them.
#ifndef HONE_TESTS_BENCH_FARM_LOAD_TUNERS_H_
#define HONE_TESTS_BENCH_FARM_LOAD_TUNERS_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/farm/entrance.h"
#include "tests/bench/farm/load_agents.h"

namespace hone::farm {

class LoadTuners {
 public:
  // Submits `outcomes_per_second` candidates, `candidates` in a batch, from `tuners` tuners with a job each; each text
  // of a candidate has about as many bytes as real ones do.
  LoadTuners(const Entrance& entrance, int tuners, double outcomes_per_second, int candidates, Tally* tally);
  ~LoadTuners();
  // Batches that were not submitted in time, since as many were open as may be.
  int64_t behind() const { return behind_; }

 private:
  void Run(const Entrance& entrance, int number, double batches_per_second, int candidates);

  Tally* const tally_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> behind_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace hone::farm

#endif  // HONE_TESTS_BENCH_FARM_LOAD_TUNERS_H_
