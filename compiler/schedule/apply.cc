// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/apply.h"

#include <fmt/format.h>

#include "base/status.h"

namespace hone::schedule {

absl::Status Apply(const Step& step, State& state) {
  return std::visit([&](const auto& s) { return Apply(s, state); }, step);
}

absl::StatusOr<State> Replay(const ir::Workload& workload, const Schedule& schedule) {
  State state = InitialState(workload);
  for (const Step& step : schedule) {
    HONE_RETURN_IF_ERROR(::hone::Annotate(Apply(step, state), fmt::format("illegal step '{}'", Print(step))));
  }
  return state;
}

}  // namespace hone::schedule
