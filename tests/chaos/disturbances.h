// SPDX-License-Identifier: Apache-2.0
// The disturbances of a farm: one seed decides which member is disturbed, how, and for how long.
#ifndef HONE_TESTS_CHAOS_DISTURBANCES_H_
#define HONE_TESTS_CHAOS_DISTURBANCES_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/chaos/farm.h"

namespace hone::chaos {

class Disturbances {
 public:
  using Clock = std::chrono::steady_clock;

  // disk: a file system that only the tracker uses, so it may be filled.
  Disturbances(Farm* farm, std::filesystem::path disk, uint64_t seed);

  // Starts and ends the disturbances that are due. Must be called often.
  void Tick(Clock::time_point now);
  // Ends all current disturbances.
  void EndAll();
  const std::map<std::string, int>& counts() const { return counts_; }

 private:
  struct Ending {
    Clock::time_point when;
    std::string whom;  // a member's name, "network" or "disk"
    std::function<void()> end;
  };

  void Begin(Clock::time_point now);
  void End(Clock::time_point now);
  void DisturbMember(Clock::time_point now);
  void DropNetwork(Clock::time_point now);
  void FillDisk(Clock::time_point now);
  bool Disturbed(const std::string& whom) const;
  void EndAfter(Clock::time_point now, double seconds, const std::string& whom, std::function<void()> end);
  double Between(double low, double high) { return low + (high - low) * random_.Uniform(); }

  Farm& farm_;
  const std::filesystem::path disk_;
  Random random_;
  Clock::time_point next_;
  std::vector<Ending> endings_;
  std::map<std::string, int> counts_;  // number of disturbances by kind
};

}  // namespace hone::chaos

#endif  // HONE_TESTS_CHAOS_DISTURBANCES_H_
