// SPDX-License-Identifier: Apache-2.0
// The functions before the kernels: what OpenCL C leaves undefined or means otherwise, as small functions of our own.
#ifndef HONE_COMPILER_CODEGEN_OPENCL_PRELUDE_H_
#define HONE_COMPILER_CODEGEN_OPENCL_PRELUDE_H_

#include <set>
#include <string>

#include "compiler/ir/expr.h"

namespace hone::codegen::opencl {

// How a value of the IR is held: f16 and bf16 as a float that they can hold; bool as bool, a vector of bools as a
// vector of int, -1 for true; i64 as long, or as int where narrow.
std::string TypeName(ir::Type type, bool narrow = false);
// The vectors that OpenCL C has.
bool IsNative(int width);

class Prelude {
 public:
  // The names of functions with that meaning (of two arguments of the type, or one), which it adds when first asked.
  std::string Binary(ir::BinaryOp op, ir::Type type);  // integers: all but the bitwise; floats: min and max
  std::string Unary(ir::UnaryOp op, ir::Type type);    // kNeg and kAbs of integers
  // min or max with a second argument that is no NaN; `zero_wins`: of two equal zeros the second.
  std::string MinMaxWithNumber(bool is_min, bool second_if_equal, ir::Type type);
  std::string FloatToInt(ir::Type from, ir::Type to);
  std::string Sigmoid(ir::Type type);
  // Scalars from here. The nearest value of f16 or bf16 to a float.
  std::string Round(ir::DType to);
  // A float between which and the value no float lies, odd if inexact, so that Round of it rounds the value itself.
  std::string RoundToOdd(ir::DType from);
  std::string ToBits(ir::DType from);  // f16 or bf16 as a ushort
  std::string FromBits(ir::DType to);

  const std::string& text() const { return text_; }

 private:
  // Adds the function, in whose text $N is its name, $T the type, $U the unsigned type, $W the bits of an element.
  std::string Add(const std::string& what, ir::Type type, std::string text);

  std::set<std::string> known_;
  std::string text_;
};

}  // namespace hone::codegen::opencl

#endif  // HONE_COMPILER_CODEGEN_OPENCL_PRELUDE_H_
