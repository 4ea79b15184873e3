// SPDX-License-Identifier: Apache-2.0
// Statements: loop nests over buffers, immutable, in one closed std::variant. And Func, the unit of lowering.
//
// Start with For and Store; asynchronous copies are in copy.h. Passes rewrite a Func, and a back end turns it into one
// function of machine code. Text keywords that differ from the struct's name are stored and stay as they are: the
// printer (text.cc) maps Mma to `contract`, MmaWait to `settle` and LaneReduce to `merge`.
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
  kVectorized,  // iterations become the elements of a vector; needs a constant extent after peeling; removed by
                // passes/vectorize
  kUnrolled,    // the body is repeated; needs a constant extent after peeling; removed by passes/unroll
  // The next two are bound to the grid; passes/bind removes them. Iterations are independent, except in a lane
  // reduction. Perfectly nested loops of one kind together make up one grid dimension, the innermost loop fastest.
  kGroup,  // each iteration is one group of lanes (CUDA: thread block); groups do not communicate
  kLane,   // each iteration is a lane of the group (CUDA: thread), or, where shared memory is filled, a part of some
           // lane's work
};

// for var in [0, extent). The extent may use outer variables. It may be zero or negative: no iteration.
struct For {
  std::string var;
  Expr extent;
  LoopKind kind;
  Stmt body;
};
// buffer[indices] = value, if the mask is undefined or true. In a vector Store the last index is a vector.
struct Store {
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  Expr mask;
};
// Statements in order. The name is that of the stage they compute, for readers; it may be empty.
struct Block {
  std::string name;
  std::vector<Stmt> stmts;
};
struct If {
  Expr condition;
  Stmt then_case;
  Stmt else_case;  // may be undefined
};
// Allocates the buffer, uninitialized, for the body.
struct Alloc {
  Buffer buffer;
  Stmt body;
};
struct Let {
  std::string var;
  Expr value;
  Stmt body;
};

// All lanes of the group wait for each other. Writes to shared and param buffers before it are visible after it. Only
// in a Func with a grid, in code that all lanes of the group reach together. Groups that share copies wait for each
// other, too.
struct Barrier {};

// A matrix in memory.
struct MatrixOperand {
  Expr first;          // a Load of its first element, without a mask
  int64_t stride = 0;  // elements from one row to the next; 0 if there is only one row
  int64_t column_stride =
      1;  // elements from one element of a row to the next, or from one chunk to the next if the instruction has chunks
};
// A matrix multiply-accumulate by one tensor instruction: sum[m, n] += a[m, k] * b[n, k] over all k, in the type of the
// sum. An instruction that reads shared memory itself (wgmma) runs asynchronously. Until its wait, only other such
// instructions may use its accumulators, and its operands must not be overwritten.
struct Mma {
  TensorInstruction instruction;
  MatrixOperand sum, a, b;
};
// Ends a commit group, all asynchronous tensor instructions since the lane's previous MmaWait, perhaps none. Then waits
// until at most the `pending` latest commit groups are in flight. All lanes of a group of lanes must reach it together.
struct MmaWait {
  int64_t pending = 0;
};

// place = the reduction of `parts` values over `parts` consecutive lanes (CUDA: warp shuffles). Lane number `part` of
// these contributes `value`. A local place receives the result in every lane; to any other place only the lane with
// part 0 writes it. A lane whose mask is false contributes the reduction's identity and writes nothing. The order is
// fixed: each lane combines its value with that of the lane parts/2 away, then parts/4, and so on, so that all lanes
// get the same bits. All lanes of a group must reach it together, but it is no barrier. Without a grid it runs once per
// part, in order.
struct LaneReduce {
  Reduction reduction;
  Expr place;  // a scalar Load, without a mask
  Expr mask;   // scalar; undefined: true
  Expr part;   // scalar i64, in [0, parts)
  int64_t parts;
  Expr value;  // has the element's type
};
inline constexpr int64_t kLaneReducePartsMax = 32;  // parts is a power of two up to this

// A hint to bring `count` contiguous elements into the core's second-level cache. It changes no value. Elements outside
// the buffer are ignored.
struct Prefetch {
  Buffer buffer;
  Expr first;  // scalar i64: row-major number of the first element
  int64_t count;
};
inline constexpr int64_t kLineBytes = 64;  // cache line size of all supported CPUs

struct StmtNode {
  std::variant<For, Store, Block, If, Alloc, Let, Barrier, Mma, MmaWait, Copy, Commit, Wait, LaneReduce, Prefetch>
      value;
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
Stmt MakeMma(TensorInstruction instruction, MatrixOperand sum, MatrixOperand a, MatrixOperand b);
Stmt MakeMmaWait(int64_t pending);
// A mask that is constantly true is dropped.
Stmt MakeCopy(Buffer buffer, std::vector<Expr> indices, Expr source, Expr mask, int64_t count, int64_t groups = 1);
Stmt MakeCommit();
Stmt MakeWait(int64_t pending);
Stmt MakeLaneReduce(LaneReduce reduce);
Stmt MakePrefetch(Buffer buffer, Expr first, int64_t count);

// The distance between two rows of a or b in shared memory, in elements, where an instruction reads the operand itself
// (TensorInstructionEntry::is_async): one chunk, or 128 bytes in swizzled memory. The rows of b are b[n, ..] of Mma,
// one for each column of the sum.
int64_t SharedRowStride(const MatrixOperand& operand, const TensorInstructionEntry& entry);

// The buffer that a Store, Mma, Copy or LaneReduce writes to. Null for other statements, whatever they contain.
Buffer WrittenBuffer(const Stmt& s);

// The grid of a launch: every lane of every group runs the Func. Both 0: the Func has no grid and is called once.
struct Grid {
  int64_t groups = 0, lanes = 0;  // lanes per group
  // If open sizes decide how many groups have work: that number, in terms of the variables that the Func's outermost
  // Lets bind, and `groups` is the largest one. Further groups do nothing, or repeat the last one. Else undefined.
  Expr open_groups = {};
  bool defined() const { return lanes > 0; }
  friend bool operator==(const Grid& a, const Grid& b);
};
inline constexpr const char *kGroupVar = "group.id",
                            *kLaneVar = "lane.id";  // variables with the numbers of the current group and lane

// A kernel, or one launch of it, before code generation. The caller passes the params in this order.
struct Func {
  std::string name;  // a C identifier
  std::vector<Buffer> params;
  Stmt body;
  Grid grid = {};
};

bool Equal(const Func& a, const Func& b);  // structural; params are compared by handle, like all buffers

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_STMT_H_
