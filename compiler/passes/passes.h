// SPDX-License-Identifier: Apache-2.0
// The passes over statements and funcs: what each does and needs. Each has a source file of its own beside this header,
// and its place in the order is in pipeline.cc. The first pass, build_loops.h, and the last, split_launches.h, have
// results of their own.
#ifndef HONE_COMPILER_PASSES_PASSES_H_
#define HONE_COMPILER_PASSES_PASSES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/stmt.h"

namespace hone::passes {

// `sizes` of the passes below are the ranges of the open sizes, which the outermost statements of a func bind
// (build_loops.h, ir::SizeRanges).

// Splits loops in two parts, so that conditions are only tested in one of them.
//
// Removes peeled tails: a loop of extent min(f, n - f * i) becomes two, with the constant extents f and tail. The
// condition that chooses between them, with a copy of the surrounding code each, is as far out as possible. If n is
// open, the tail is not constant. Vectorized and unrolled loops whose extent is open, such as those over that tail,
// become serial. Needs simplified statements, because it recognizes equal minimums by their form.
ir::Stmt Peel(const ir::Stmt& s, const ir::Ranges& sizes = {});

// Splits off the last iteration, or the last two, of a serial loop of constant extent if only these can fail the
// conditions in its body that use its variable. The other iterations then do not test these. The body must be small: at
// most 64 stores, counting unrolled iterations, inside blocks, ifs, vectorized and unrolled loops. Needs simplified
// statements.
ir::Stmt PeelEnds(const ir::Stmt& s, const ir::Ranges& sizes = {});

// Replaces the indices of every access by one flat row-major index, which vectorization requires.
ir::Stmt Flatten(const ir::Stmt& s);

// Turns vectorized loops into vector expressions: the loop variable becomes a vector, and conditions become masks.
//
// Needs flattened, simplified statements without vectors in vectorized loops. FailedPrecondition if a loop's extent is
// not a constant from 2 to 4096, or if the loop contains another vectorized loop, a loop whose extent differs between
// elements, or a condition on data that its own body changes.
absl::StatusOr<ir::Stmt> Vectorize(const ir::Stmt& s, const ir::Ranges& sizes = {});

// Replaces each unrolled loop by one copy of its body per iteration.
//
// FailedPrecondition if an extent is not constant, or if the result would have more than 4096 statements.
absl::StatusOr<ir::Stmt> Unroll(const ir::Stmt& s);

// Computes quotients and remainders by anything but numbers once, as early as their variables are known, at the
// beginning of a loop's body.
//
// LLVM does not move a division out of a condition, nor what is computed from it. Inner loops would divide again for
// each element. Later passes know less of a variable than of the division that it stands for.
ir::Stmt HoistDivisions(const ir::Stmt& s);

// Turns masks and conditions that are the same for all elements of a vector into a Broadcast of one scalar condition.
// They stay masks: no If is made.
//
// For example, a vector of 16 that starts at a multiple of 16 lies completely inside or outside a bound that is a
// multiple of 16. For back ends that must split masked accesses into elements (OpenCL C).
ir::Stmt BroadcastUniformMasks(const ir::Stmt& s);

// Turns loops bound to groups and lanes into a grid: every lane of every group runs the func and knows its own number.
//
// The number of lanes is the largest extent of a lane loop chain that is not inside another. Each iteration of the lane
// loops of the launch's own stage is one lane. Stages inside that fill shared memory distribute their lane loops over
// all lanes of the group. Writes to shared memory or a param outside any lane loop are done by the first lane. If sizes
// decide the number of groups, groups beyond it do nothing, or repeat the last one. Not here: barriers (barriers.h).
//
// Rewrites func.body and sets func.grid. func: one top-level nest (split_launches.h). After an error func is unchanged.
// FailedPrecondition, which means that the schedule cannot run, if func has
// - two chains of group loops, a parallel loop, or a bound loop whose extent is neither constant nor arithmetic on
// sizes;
// - a lane loop inside another, unless a stage that fills shared memory begins between them;
// - a lane loop that has shared memory filled inside, or a lane reduction to local memory, but fewer iterations than
//   the launch has lanes.
absl::Status Bind(ir::Func& func);

// Inserts barriers into a func with a grid: wherever a lane may read or overwrite shared memory that another lane used.
//
// Barriers are derived from reads and writes; a schedule never contains them. In a stage that fills a shared buffer (a
// named block) each element is written by one lane, so no barrier for that buffer is needed inside the stage. Elements
// of an asynchronous copy count as written at the wait.
//
// ranges: of the variables in scope around s.
ir::Stmt InsertBarriers(const ir::Stmt& s, const ir::Ranges& ranges);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_PASSES_H_
