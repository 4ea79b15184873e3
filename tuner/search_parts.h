// SPDX-License-Identifier: Apache-2.0
// What makes a search more than chance, by name: each part can be left out, to see what it is worth (`hone tune
// --without`, tests/bench/search). Without any, candidates are drawn at random over the whole space.
//
// Everything else stays: the untuned default races, nothing is measured twice, and the winners are confirmed.
#ifndef HONE_TUNER_SEARCH_PARTS_H_
#define HONE_TUNER_SEARCH_PARTS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone::tuner {

struct SearchParts {
  bool preferred = true;  // the preferred candidate of every space, and candidates near the default, come first
  bool relatives = true;  // then what near workloads, other devices and hints did well with
  // What other models' records taught judges candidates until the learned model can, which corrects it.
  bool pretrained = true;
  bool draft = true;      // else the draft does; the trees' own feature stays
  bool model = true;      // the learned model does, once there is enough to learn from
  bool evolution = true;  // later candidates are made of good ones
  bool descent = true;    // neighbours of the best are tried, at last nothing but these, until none promises anything
  bool scheduler = true;  // who gains most gets the next round; without: each in its turn
};

// The option of a job with the names of those left out.
inline constexpr std::string_view kWithoutOption = "without";

// All parts but those: names as above, separated by commas, or "all". InvalidArgument, with the names that there are.
absl::StatusOr<SearchParts> PartsWithout(std::string_view names);
// "preferred, relatives, ..."
std::string PartNames();

}  // namespace hone::tuner

#endif  // HONE_TUNER_SEARCH_PARTS_H_
