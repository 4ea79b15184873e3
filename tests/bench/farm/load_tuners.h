// SPDX-License-Identifier: Apache-2.0
// Tuners that search nothing: they submit batches at a given rate and fetch the results.
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
  // `tuners` tuners with one job each submit `outcomes_per_second` candidates in total, in batches of `candidates`. A
  // candidate's texts have about as many bytes as real ones.
  LoadTuners(const Entrance& entrance, int tuners, double outcomes_per_second, int candidates, Tally* tally);
  ~LoadTuners();
  // Number of batches that were not submitted in time because the limit of open batches was reached.
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
