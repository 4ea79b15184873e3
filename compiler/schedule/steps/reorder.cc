// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compiler/schedule/apply.h"

namespace hone::schedule {

absl::Status Apply(const Reorder& step, State& state) {
  std::vector<size_t> places;
  Nest* nest = nullptr;
  for (const std::string& name : step.loops) {
    size_t position = 0;
    Nest* owner = state.FindLoop(name, &position);
    if (owner == nullptr) return absl::NotFoundError(fmt::format("there is no loop {}", name));
    if (nest != nullptr && owner != nest) {
      return absl::FailedPreconditionError(fmt::format("loop {} belongs to another stage", name));
    }
    nest = owner;
    if (std::find(places.begin(), places.end(), position) != places.end()) {
      return absl::FailedPreconditionError(fmt::format("loop {} is named twice", name));
    }
    places.push_back(position);
  }
  if (nest == nullptr) return absl::OkStatus();
  for (const Nest& other : state.nests) {
    if (other.place.stage == nest->stage.buffer->name) {
      return absl::FailedPreconditionError(
          fmt::format("stage {} is already computed at a loop of {}", other.stage.buffer->name, other.place.stage));
    }
  }
  for (const size_t place : places) {
    if (absl::Status status = CheckLoopCanChange(*nest, place); !status.ok()) return status;
  }
  std::vector<Loop> picked;
  for (const size_t place : places) picked.push_back(nest->loops[place]);
  std::sort(places.begin(), places.end());
  for (size_t i = 0; i < places.size(); ++i) nest->loops[places[i]] = std::move(picked[i]);
  // A loop must stay inside the loops that its extent depends on.
  for (size_t i = 0; i < nest->loops.size(); ++i) {
    for (size_t j = i + 1; j < nest->loops.size(); ++j) {
      if (ir::UsesVar(nest->loops[i].extent, nest->loops[j].name)) {
        return absl::FailedPreconditionError(fmt::format(
            "loop {} must stay inside loop {}, which its extent depends on", nest->loops[i].name, nest->loops[j].name));
      }
    }
  }
  nest->has_loop_steps = true;
  return absl::OkStatus();
}

}  // namespace hone::schedule
