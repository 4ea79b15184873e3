// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/tuners.h"

#include <algorithm>

namespace hone::tracker {

void TunerRegistry::Note(const std::string& id, absl::Time now) {
  heard_[id] = now;
  if (heard_.size() <= kTunersMax) return;
  heard_.erase(std::ranges::min_element(heard_, {}, [](const auto& tuner) { return tuner.second; }));
}

std::vector<KnownTuner> TunerRegistry::List(absl::Time now) const {
  std::vector<KnownTuner> tuners;
  for (const auto& [id, heard] : heard_) {
    const absl::Duration silent = now - heard;
    if (silent <= kForgetAfter) tuners.push_back({id, silent <= kOfflineAfter, heard});
  }
  return tuners;
}

}  // namespace hone::tracker
