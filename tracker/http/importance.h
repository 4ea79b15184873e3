// SPDX-License-Identifier: Apache-2.0
// Which decisions of a search matter: how much of the differences between the times of trials each explains.
//
// Pure. The share is that of the variance of the logarithm of the times which the values of one decision explain alone
// (omega squared of a one-way analysis of variance). It is corrected for chance, so that a decision with as many values
// as there are trials explains nothing. Shares need not add up to 1: decisions work together.
#ifndef HONE_TRACKER_HTTP_IMPORTANCE_H_
#define HONE_TRACKER_HTTP_IMPORTANCE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hone::tracker {

struct Trial {
  std::string key;        // times are compared among trials of the same: target, device, compiler
  std::string decisions;  // "mr=7 nr=64"
  double seconds = 0;     // above 0
};

struct DecisionValue {
  std::string value;  // "" of trials that had no such decision
  int64_t trials = 0;
  double best_seconds = 0, median_seconds = 0;
};

struct DecisionImportance {
  std::string name;
  double share = 0;                   // 0 to 1
  std::vector<DecisionValue> values;  // the fastest first
};

// The most important first; at most 64 decisions, of each at most 64 values.
std::vector<DecisionImportance> ImportanceOf(const std::vector<Trial>& trials);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_IMPORTANCE_H_
