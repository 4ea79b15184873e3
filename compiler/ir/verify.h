// SPDX-License-Identifier: Apache-2.0
// The legality rules of the IR, checked between passes.
#ifndef HONE_COMPILER_IR_VERIFY_H_
#define HONE_COMPILER_IR_VERIFY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"

namespace hone::ir {

// What a target allows a group of lanes.
struct GridLimits {
  int64_t max_lanes = INT64_MAX, shared_bytes = INT64_MAX;
  int64_t sharing_groups = INT64_MAX;  // that copies have in common; 0: groups have no copies
};

// Every variable bound before use and not again inside its own scope; loads and stores only of params and enclosing
// Allocs, with one index per dimension (or one flat index once flattened); types and widths agree; masks are bool; no
// kParallel in kParallel; a barrier only in a Func with a grid; copies to shared memory from what all groups see, of a
// size that there is, at places that are surely aligned; no read of what surely no wait came before.
// With a grid, also: where groups copy, no more bundles under way than are told apart; no more lanes, shared memory and
// groups that share copies than the limits; no barrier, commit, wait and no shared Alloc where lanes of a group may
// part, or groups that share copies; a group's copy by its first lane, of one place for all groups that share it; no
// loop left to bind.
absl::Status Verify(const Func& func, const GridLimits& limits = {});

// The rules of the grid alone; part of Verify.
absl::Status VerifyGrid(const Func& func, const GridLimits& limits);

// That no shared buffer is read while every copy to it is still under way, and where groups of a grid copy, that
// no more bundles are than are told apart; part of Verify. What only some iterations or lanes do wrong is for the
// interpreter to find.
absl::Status VerifyCopies(const Func& func);
// And that nobody uses the sums of instructions that are not settled (verify_products.cc).
absl::Status VerifyProducts(const Func& func);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_VERIFY_H_
