// SPDX-License-Identifier: Apache-2.0
// The parts of a search that can be switched off by name, to measure what each is worth (`hone tune --without`,
// tests/bench/search). Without all of them, candidates are drawn at random over the whole space.
//
// The rest of the search cannot be switched off: the default schedule is measured, no candidate is measured twice, and
// winners are confirmed.
#ifndef HONE_TUNER_SEARCH_PARTS_H_
#define HONE_TUNER_SEARCH_PARTS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone::tuner {

struct SearchParts {
  bool preferred = true;  // start with the preferred candidate of every space, and candidates near the default
  bool relatives = true;  // then try decisions of similar workloads, of other devices, and hints
  // Rank by the pretrained model until the learned model is trained, which then corrects it.
  bool pretrained = true;
  bool draft = true;  // without a pretrained model rank by the analytic one; it stays a feature of the learned model
  bool model = true;  // rank by the learned model as soon as there is enough to learn from
  bool evolution = true;  // make later candidates by changing and mixing good ones
  bool descent = true;    // try neighbours of the best candidates, at the end nothing else
  bool scheduler = true;  // the workload with the largest expected gain gets the next round; without: all take turns
};

// The job option that names the parts to leave out.
inline constexpr std::string_view kWithoutOption = "without";

// All parts without the named ones. names: members of SearchParts separated by commas without spaces, or "all".
// InvalidArgument: a name is unknown, or `names` is empty; the message lists the known ones.
absl::StatusOr<SearchParts> PartsWithout(std::string_view names);
// The names of all parts: "preferred, relatives, ..."
std::string PartNames();

}  // namespace hone::tuner

#endif  // HONE_TUNER_SEARCH_PARTS_H_
