// SPDX-License-Identifier: Apache-2.0
#include "compiler/execution/model.h"

#include <utility>

#include "base/status.h"

namespace hone::execution {

const ExecutionModel& ModelOf(const target::Target& target) {
  switch (target.execution()) {
    case target::Execution::kThreads:
      return kThreads;
    case target::Execution::kLanes:
      return kLanes;
  }
  HONE_CHECK(false);
  return kThreads;
}

absl::StatusOr<passes::Module> Lower(const schedule::State& state, const target::Target& target,
                                     const std::string& name, PassOptions<ir::Func> options) {
  return ModelOf(target).lower(state, target, name, std::move(options));
}

}  // namespace hone::execution
