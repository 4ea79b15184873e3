// SPDX-License-Identifier: Apache-2.0
// A stage whose innermost loop is one asynchronous copy: from where to where, and under which condition.
#ifndef HONE_COMPILER_SCHEDULE_COPY_H_
#define HONE_COMPILER_SCHEDULE_COPY_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "compiler/schedule/state.h"

namespace hone::schedule {

// The statement that the innermost loop of the nest is, if it copies nest.copy elements at once. storage: where the
// stage is stored, of StoredShape. load: a load with indices in terms of loops, as a load of where the element is
// stored. FailedPrecondition, with the reason, if no such copy moves the same.
absl::StatusOr<ir::Stmt> CopyOf(const State& state, const Nest& nest, const ir::Buffer& storage,
                                const std::function<ir::Expr(const ir::Expr&)>& load);

// Whether there is one for the nest as the state has it now.
absl::Status CheckCopy(const State& state, const Nest& nest);

// Whether groups copy some stage of the launch that the nest is a part of.
bool HasGroupCopies(const State& state, const Nest& nest);

// That no more bundles are under way at once than are told apart where groups copy (ir::kMostBundles): pipelines inside
// each other have theirs together.
absl::Status CheckBundles(const State& state);

// The condition as it is for all `count` iterations of the loop; FailedPrecondition if they may differ.
absl::StatusOr<ir::Expr> ForAll(const ir::Expr& condition, const std::string& loop, int64_t count,
                                const ir::Ranges& ranges);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_COPY_H_
