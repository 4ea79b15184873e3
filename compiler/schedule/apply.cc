// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/apply.h"

#include <fmt/format.h>

#include "base/status.h"

namespace hone::schedule {

absl::Status Apply(const Step& step, State& state) {
  return std::visit(
      [&]<typename S>(const S& s) {
        // The exact type keeps a step without an Apply of its own from being converted to Step, which would recurse.
        absl::Status (*const apply)(const S&, State&) = Apply;
        return apply(s, state);
      },
      step);
}

absl::StatusOr<State> Replay(const ir::Workload& workload, const Schedule& schedule) {
  State state = InitialState(workload);
  for (const Step& step : schedule) {
    HONE_RETURN_IF_ERROR(::hone::Annotate(Apply(step, state), fmt::format("illegal step '{}'", Print(step))));
  }
  return state;
}

}  // namespace hone::schedule
