// SPDX-License-Identifier: Apache-2.0
// The importance of a search's decisions: how much of the differences between the times of trials each one explains.
//
// Pure. A decision's share is the part of the variance of the logarithms of the times that its values alone explain
// (omega squared of a one-way analysis of variance). It is corrected for chance: a decision with a different value in
// each trial explains nothing. Shares need not add up to 1, because decisions interact.
#ifndef HONE_TRACKER_HTTP_IMPORTANCE_H_
#define HONE_TRACKER_HTTP_IMPORTANCE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hone::tracker {

struct Trial {
  std::string key;        // target, device and compiler; shares compare only times of trials with the same key
  std::string decisions;  // "mr=7 nr=64"
  double seconds = 0;     // above 0
};

// One value of a decision, with the trials of all keys that have it.
struct DecisionValue {
  std::string value;  // "" for trials without the decision
  int64_t trials = 0;
  double best_seconds = 0, median_seconds = 0;
};

struct DecisionImportance {
  std::string name;
  double share = 0;                   // 0 to 1
  std::vector<DecisionValue> values;  // the fastest first
};

// Returns at most 64 decisions, the most important first, with at most 64 values each.
std::vector<DecisionImportance> ImportanceOf(const std::vector<Trial>& trials);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_IMPORTANCE_H_
