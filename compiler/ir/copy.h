// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies from global to shared memory, and the commit groups by which lanes wait for them.
//
// A copy of 4, 8 or 16 bytes is CUDA's cp.async: each lane issues its own. A larger one is a bulk copy, cp.async.bulk
// (from sm_90 on): one lane issues it for its group, and several groups may share it (CUDA's multicast in a
// thread-block cluster). See docs/IR.md, "Asynchronous copies". Not here: when a schedule asks for copies
// (compiler/schedule/copy.h).
#ifndef HONE_COMPILER_IR_COPY_H_
#define HONE_COMPILER_IR_COPY_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone::ir {

class Stmt;

// Starts to copy `count` contiguous elements from global memory to the group's shared memory; the lane does not wait.
// If the mask is defined and false, nothing is read and zeros are written. The elements have arrived once the lane has
// waited for them. Until then no lane may read or write the destination, or write the source.
//
// A bulk copy is issued by the first lane of the group, and all lanes wait for it. With `groups` > 1 that many
// consecutive groups share the copy: each fetches an equal part and sends it to all of them. So all must issue the same
// copy.
struct Copy {
  Buffer buffer;
  std::vector<Expr> indices;  // destination of the first element
  Expr source;                // a scalar Load of the first element, without a mask
  Expr mask;                  // scalar; undefined: copy always. A bulk copy has no mask.
  int64_t count;  // elements; 4, 8 or 16 bytes (kCopyBytes), or, for a bulk copy, a multiple of 16 bytes for each group
  int64_t groups = 1;
};
inline constexpr int64_t kCopyBytes[] = {4, 8, 16};
inline constexpr int64_t kBulkCopyAlignmentBytes = 16;  // source and destination of a bulk copy start at a multiple
inline constexpr int64_t kBulkCopyBytesMax = 32 << 10;  // the most bytes of one bulk copy
inline constexpr int64_t kCommitGroupsMax = 8;          // commit groups in flight at once, in a kernel with bulk copies
// Bytes of shared memory for the mbarriers, one barrier object per commit group.
inline constexpr int64_t kMbarriersBytes = 8 * kCommitGroupsMax;
// Ends a commit group: all copies that the lane started since its previous Commit, perhaps none. All lanes of a group
// of lanes must reach it together.
struct Commit {};
// Waits until at most the `pending` latest commit groups of the lane are in flight. Other lanes see the arrived
// elements after a Barrier. All lanes of a group of lanes must reach it together.
struct Wait {
  int64_t pending = 0;
};

// Whether it is a bulk copy, which one lane issues for its group: more than 16 bytes, or shared by several groups.
bool IsBulkCopy(const Copy& copy);
// Whether s contains a bulk copy.
bool HasBulkCopies(const Stmt& s);
// The number of groups that share each shared copy in s; copies that are not shared do not count. 1 if none is shared,
// 0 if two shared copies differ.
int64_t CountSharingGroups(const Stmt& s);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_COPY_H_
