// Statements: loop nests over buffers, immutable, in one closed std::variant. And Func, the unit of lowering.
//
// Start with For and Store. A Func is what the passes rewrite and what a back end turns into one kernel.
#ifndef HONE_COMPILER_IR_STMT_H_
#define HONE_COMPILER_IR_STMT_H_

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/expr.h"

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
  kVectorized,  // one vector lane per iteration; wants a constant extent after peeling; removed by passes/vectorize
  kUnrolled,    // repeated in text; wants a constant extent after peeling; removed by passes/unroll
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

struct StmtNode {
  std::variant<For, Store, Block, If, Alloc, Let> value;
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

// A kernel before code generation. params are handed in by the caller in this order.
struct Func {
  std::string name;  // a C identifier
  std::vector<Buffer> params;
  Stmt body;
};

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_STMT_H_
