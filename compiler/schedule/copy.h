// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies in a schedule: builds the statement of a stage whose innermost loop is one copy.
#ifndef HONE_COMPILER_SCHEDULE_COPY_H_
#define HONE_COMPILER_SCHEDULE_COPY_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "compiler/schedule/state.h"

namespace hone::schedule {

// Builds the copy statement that replaces the innermost loop of the nest. storage: the buffer that holds the stage, of
// StoredShape. load: maps a load, with indices in terms of loops, to a load from where its buffer is stored.
// FailedPrecondition, with the reason, if no copy moves the same elements.
absl::StatusOr<ir::Stmt> BuildCopy(const State& state, const Nest& nest, const ir::Buffer& storage,
                                   const std::function<ir::Expr(const ir::Expr&)>& load);

// Checks that BuildCopy would succeed in the current state.
absl::Status CheckCopy(const State& state, const Nest& nest);

// Whether the launch that the nest belongs to has bulk copies.
bool HasBulkCopies(const State& state, const Nest& nest);

// Checks each pipelined loop that runs while copies of a pipeline around it are in flight. The commit groups in flight
// of both, added up, must not exceed ir::kCommitGroupsMax. Launches without bulk copies have no such limit.
absl::Status CheckCommitGroups(const State& state);

// The condition rewritten without the loop's variable; FailedPrecondition if it can differ between the loop's `count`
// iterations.
absl::StatusOr<ir::Expr> HoistCondition(const ir::Expr& condition, const std::string& loop, int64_t count,
                                        const ir::Ranges& ranges);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_COPY_H_
