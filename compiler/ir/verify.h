// SPDX-License-Identifier: Apache-2.0
// The legality rules of the IR. The pass runner checks them after every pass.
#ifndef HONE_COMPILER_IR_VERIFY_H_
#define HONE_COMPILER_IR_VERIFY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"

namespace hone::ir {

// The limits of a target for one group of lanes.
struct GridLimits {
  int64_t max_lanes = INT64_MAX, shared_bytes = INT64_MAX;
  int64_t sharing_groups = INT64_MAX;  // groups that may share a copy; 0: no bulk copies
};

// Checks a Func. InvalidArgument names the first rule it breaks:
// - Every variable is bound before use and not bound again in its own scope.
// - Loads and stores use only params and enclosing Allocs, with one index per dimension or one flat index.
// - Types and widths agree; masks are bool.
// - No kParallel loop inside another. A barrier only in a Func with a grid.
// - Copies go from global to shared memory, have a legal size and are aligned.
// - No shared buffer is read before any copy to it can have arrived (VerifyCopies).
// With a grid also:
// - Lanes, shared memory and groups that share copies are within the limits. No loop is left to bind.
// - Bulk copies are issued by the first lane, and are equal in all groups that share them.
// - At most kCommitGroupsMax commit groups are in flight if there are bulk copies.
// - Barriers, commits, waits and shared Allocs are in code that all lanes of a group, and of groups that share copies,
//   reach together.
absl::Status Verify(const Func& func, const GridLimits& limits = {});

// Checks the rules of the grid only; a part of Verify.
absl::Status VerifyGrid(const Func& func, const GridLimits& limits);

// Checks that no shared buffer is read, and no Alloc of one ends, before any copy to it can have arrived: a read needs
// a wait, with few enough `pending` groups, after the first copy. Also checks that a grid with bulk copies never has
// more than kCommitGroupsMax commit groups in flight. A part of Verify. Only the interpreter finds a missing wait for
// some iterations, lanes or elements.
absl::Status VerifyCopies(const Func& func);
// Checks that no accumulator of an asynchronous tensor instruction is used before its wait; a part of Verify.
absl::Status VerifyAsyncMma(const Func& func);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_VERIFY_H_
