// SPDX-License-Identifier: Apache-2.0
// A seeded generator of legal IR with every operator, every type, vectors and masks, for properties that hold for any
// IR.
//
// The result passes Verify and never accesses memory out of bounds.
#ifndef HONE_TESTS_UNIT_IR_RANDOM_IR_H_
#define HONE_TESTS_UNIT_IR_RANDOM_IR_H_

#include <string>
#include <vector>

#include "base/random.h"
#include "compiler/ir/stmt.h"

namespace hone::ir {

class RandomIr {
 public:
  // kSmall: constants in indices are a few units, as in real kernels, so index arithmetic on loop variables does not
  // overflow.
  enum class Indices : uint8_t { kAny, kSmall };
  explicit RandomIr(uint64_t seed, Indices indices = Indices::kAny) : random_(seed), indices_(indices) {}

  Func MakeFunc();
  Expr MakeExpr(Type type, int depth);

 private:
  DType AnyDType();
  DType ComputableDType();
  Type AnyOperand(int width) { return {ComputableDType(), width}; }
  Expr Leaf(Type type);
  Expr Constant(Type type);
  Expr UnaryOf(Type type, int depth);
  Expr BinaryOf(Type type, int depth);
  Expr CallOf(Type type, int depth);
  Expr LoadOf(Type type, int depth);
  std::vector<Expr> IndicesOf(const Buffer& buffer, int width, int depth);
  Stmt MakeStmt(int depth);
  Stmt MakeStoreTo(const Buffer& buffer, int depth);
  Stmt MakeLoop(int depth);
  std::string NewName(const char* prefix);

  Random random_;
  const Indices indices_;
  std::vector<Buffer> buffers_;
  std::vector<Expr> vars_;
  int names_ = 0;
  bool in_parallel_ = false;
};

}  // namespace hone::ir

#endif  // HONE_TESTS_UNIT_IR_RANDOM_IR_H_
