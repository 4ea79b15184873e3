// SPDX-License-Identifier: Apache-2.0
// What befalls a farm while it works, and how it ends: one seed decides what happens to whom and for how long.
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

  // disk: a file system of the tracker's own that may be filled.
  Disturbances(Farm* farm, std::filesystem::path disk, uint64_t seed);

  // Begins and ends what is due; to be called often.
  void Tick(Clock::time_point now);
  // Ends all that is under way.
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
  std::map<std::string, int> counts_;  // of what was done
};

}  // namespace hone::chaos

#endif  // HONE_TESTS_CHAOS_DISTURBANCES_H_
