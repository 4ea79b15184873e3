// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies to shared memory: what begins them, what bundles them, what waits.
//
// A lane's are cp.async of CUDA's devices, a group's cp.async.bulk (from sm_90 on), which groups may share. See
// docs/IR.md, "Asynchronous copies". Not here: which of these a schedule asks for (compiler/schedule/copy.h).
#ifndef HONE_COMPILER_IR_COPY_H_
#define HONE_COMPILER_IR_COPY_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone::ir {

class Stmt;

// The lane begins to copy `count` elements that lie side by side, from memory that all groups see to its group's shared
// memory, and goes on. Where mask (if defined) is false nothing is read, and zeros arrive. They are there once the lane
// has waited for them; until then nobody reads or writes the place, nor writes the source.
//
// One of more bytes is the group's, begun by its first lane, and all lanes wait for it. `groups` that follow one
// another share it: each copies one part to all of them, which is why each begins the same.
struct Copy {
  Buffer buffer;
  std::vector<Expr> indices;  // of the first element
  Expr source;                // a scalar Load, without mask, of the first element
  Expr mask;                  // scalar; may be undefined; one of the group has none
  int64_t count;              // 4, 8 or 16 bytes of elements (kCopyBytes), or more: a multiple of 16 of every group
  int64_t groups = 1;
};
inline constexpr int64_t kCopyBytes[] = {4, 8, 16};
inline constexpr int64_t kGroupCopyAlignment = 16;          // bytes, on a multiple of which a group's begins
inline constexpr int64_t kMostCopyBytes = 32 << 10;         // of a group's
inline constexpr int64_t kMostBundles = 8;                  // that are under way at once, where a group has copies
inline constexpr int64_t kBundlesBytes = 8 * kMostBundles;  // of the group's shared memory, which tell of them
// The copies that the lane began since its last Commit, or ever, are a bundle, which may be empty. All lanes of a group
// take the same way to it.
struct Commit {};
// The lane goes on when at most `pending` of its bundles, the latest, are still under way. Other lanes see what arrived
// after a Barrier. All lanes of a group take the same way to it.
struct Wait {
  int64_t pending = 0;
};

// Whether the copy is the group's.
bool IsOfGroup(const Copy& copy);
// Whether some copy in s is.
bool HasGroupCopies(const Stmt& s);
// How many groups share copies in s; 1: none do. 0: different numbers of them.
int64_t GroupsThatShare(const Stmt& s);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_COPY_H_
