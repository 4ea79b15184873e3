// SPDX-License-Identifier: Apache-2.0
// Statements: loop nests over buffers, immutable, in one closed std::variant. And Func, the unit of lowering.
//
// Start with For and Store; copies to shared memory are in copy.h. A Func is what the passes rewrite and what a back
// end turns into one kernel.
#ifndef HONE_COMPILER_IR_STMT_H_
#define HONE_COMPILER_IR_STMT_H_

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/copy.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/tensor_instruction.h"
#include "compiler/ir/workload.h"

namespace hone::ir {

struct StmtNode;

class Stmt {
 public:
  Stmt() = default;
  explicit Stmt(std::shared_ptr<const StmtNode> node) : node_(std::move(node)) {}
  bool defined() const { return node_ != nullptr; }
  const StmtNode& node() const { return *node_; }
  bool SameHandle(const Stmt& other) const { return node_ == other.node_; }
  template <typename T>
  const T* As() const;

 private:
  std::shared_ptr<const StmtNode> node_;
};

bool Equal(const Stmt& a, const Stmt& b);  // structural

enum class LoopKind : uint8_t {
  kSerial,
  kParallel,    // iterations are independent and may run at once; never nested in another kParallel
  kVectorized,  // one vector element each; wants a constant extent after peeling; removed by passes/vectorize
  kUnrolled,    // repeated in text; wants a constant extent after peeling; removed by passes/unroll
  // Bound to an axis of the target's hierarchy; removed by passes/bind. Iterations are independent, but for a Merge.
  // Several loops of one kind inside each other share out one axis, the innermost fastest.
  kGroup,  // one iteration per group of lanes; groups see nothing of each other
  kLane,  // one per lane of a group; inside such a loop, and where a shared buffer is filled, shared out over all lanes
};

// for var in [0, extent). The extent may use outer variables; it may be zero or negative (no iteration).
struct For {
  std::string var;
  Expr extent;
  LoopKind kind;
  Stmt body;
};
// buffer[indices] = value, where mask (if defined) is true. A vector Store: last index is a vector.
struct Store {
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  Expr mask;
};
// Statements in order. The name says which stage they compute; it may be empty and carries no meaning.
struct Block {
  std::string name;
  std::vector<Stmt> stmts;
};
struct If {
  Expr condition;
  Stmt then_case;
  Stmt else_case;  // may be undefined
};
// The buffer exists, uninitialized, while the body runs.
struct Alloc {
  Buffer buffer;
  Stmt body;
};
struct Let {
  std::string var;
  Expr value;
  Stmt body;
};

// Every lane of the group arrives before any goes on; what was written to shared and param buffers before is seen
// after. Only in a Func with a grid, where all lanes of a group take the same way to it. Groups that share copies
// arrive together.
struct Barrier {};

// A matrix in memory, row by row.
struct MatrixOperand {
  Expr first;          // a Load, without mask, of its first element
  int64_t stride = 0;  // elements from one row to the next; 0 where there is only one row
  int64_t apart = 1;   // elements from one of a row to the next, or from one chunk of the instruction's to the next
};
// One tensor instruction: sum[m, n] += a[m, k] * b[n, k] over all k, in the type of the sum. One of blocks goes on
// while the lane does: until it is settled its sums are nobody's but others' like it, and nobody writes what it reads.
struct Contract {
  TensorInstruction instruction;
  MatrixOperand sum, a, b;
};
// What the lane began of such instructions since its last Settle, or ever, is a bundle, which may be empty. The lane
// goes on when at most `running` of its bundles, the latest, are not done. All lanes of a group take the same way to
// it.
struct Settle {
  int64_t running = 0;
};

// place = the reduction of `parts` values, of which this lane has number `part`. Lanes that follow one another have the
// parts, in order; each gets the result in its own memory, and to other memory the lane with part 0 writes it. A lane
// whose mask (if defined) is false has the identity of the reduction, and writes nothing. Each lane first takes in what
// the lane parts/2 away has, then parts/4 and so on, so that all have the same bits. All lanes of a group take the same
// way to it; of memory that they share they see no more than before. Without a grid the parts come one after the other.
struct Merge {
  Reduction reduction;
  Expr place;  // a scalar Load, without mask
  Expr mask;   // scalar; may be undefined
  Expr part;   // a scalar i64
  int64_t parts;
  Expr value;  // of the place's type
};
inline constexpr int64_t kMostParts = 32;  // a power of two, as every number of parts

// The memory of `count` elements that lie side by side may be brought nearer to the core, into its second cache.
// Nothing else happens: no value changes, and where the buffer has no such elements, there is nothing to bring.
struct Prefetch {
  Buffer buffer;
  Expr first;  // a scalar i64: the number of the first element, rows one after the other
  int64_t count;
};
inline constexpr int64_t kLineBytes = 64;  // that memory moves at once, of every CPU that code is made for

struct StmtNode {
  std::variant<For, Store, Block, If, Alloc, Let, Barrier, Contract, Settle, Copy, Commit, Wait, Merge, Prefetch> value;
};

template <typename T>
const T* Stmt::As() const {
  return node_ ? std::get_if<T>(&node_->value) : nullptr;
}

Stmt MakeFor(std::string var, Expr extent, LoopKind kind, Stmt body);
Stmt MakeStore(Buffer buffer, std::vector<Expr> indices, Expr value, Expr mask = {});
Stmt MakeBlock(std::vector<Stmt> stmts, std::string name = {});  // one unnamed statement: that statement itself
Stmt MakeIf(Expr condition, Stmt then_case, Stmt else_case = {});
Stmt MakeAlloc(Buffer buffer, Stmt body);
Stmt MakeLet(std::string var, Expr value, Stmt body);
Stmt MakeBarrier();
Stmt MakeContract(TensorInstruction instruction, MatrixOperand sum, MatrixOperand a, MatrixOperand b);
Stmt MakeSettle(int64_t running);
// A mask that is constantly true is none.
Stmt MakeCopy(Buffer buffer, std::vector<Expr> indices, Expr source, Expr mask, int64_t count, int64_t groups = 1);
Stmt MakeCommit();
Stmt MakeWait(int64_t pending);
Stmt MakeMerge(Merge merge);
Stmt MakePrefetch(Buffer buffer, Expr first, int64_t count);

// From a row to the next, elements, of an operand that the instruction itself reads; a row of b is a column.
int64_t RowsApart(const MatrixOperand& operand, const TensorInstructionEntry& entry);

// The buffer that a Store, Contract, Copy or Merge writes to; null of other statements, whatever is in them.
Buffer WrittenBy(const Stmt& s);

// How often a Func is run at once: by every lane of every group (both 0: it is simply called).
struct Grid {
  int64_t groups = 0, lanes = 0;  // lanes per group
  bool defined() const { return lanes > 0; }
  friend bool operator==(const Grid&, const Grid&) = default;
};
inline constexpr const char *kGroupVar = "group.id", *kLaneVar = "lane.id";  // by which each knows itself

// A kernel, or one launch of it, before code generation. params are handed in by the caller in this order.
struct Func {
  std::string name;  // a C identifier
  std::vector<Buffer> params;
  Stmt body;
  Grid grid = {};
};

bool Equal(const Func& a, const Func& b);  // structural; the params are compared by handle, as buffers are

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_STMT_H_
