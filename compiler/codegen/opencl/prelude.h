// SPDX-License-Identifier: Apache-2.0
// The functions that stand before the kernels: operations that OpenCL C leaves undefined, or defines otherwise than
// docs/IR.md.
#ifndef HONE_COMPILER_CODEGEN_OPENCL_PRELUDE_H_
#define HONE_COMPILER_CODEGEN_OPENCL_PRELUDE_H_

#include <set>
#include <string>

#include "compiler/ir/expr.h"

namespace hone::codegen::opencl {

// The OpenCL C type that holds a value. An f16 or bf16 is held as a float of the same value. A single bool is a bool. A
// vector of bools is a vector of int, with -1 for true. narrow: an i64 is held as int. Aborts for a width that is
// neither 1 nor IsNative.
std::string TypeName(ir::Type type, bool narrow = false);
// Whether OpenCL C has vectors of that width.
bool IsNative(int width);
// f16 or bf16: floats that are narrower in memory than the float that holds them.
inline bool IsStorageFloat(ir::DType dtype) { return dtype == ir::DType::kFloat16 || dtype == ir::DType::kBFloat16; }

class Prelude {
 public:
  // Each returns the name of a function of one or two arguments of the type, and adds the function on the first call.
  std::string Binary(ir::BinaryOp op, ir::Type type);  // integers: all but the bitwise; floats: min and max
  std::string Unary(ir::UnaryOp op, ir::Type type);    // kNeg and kAbs of integers
  // min or max of a, which may be NaN and then is the result, and a second argument that is known to be no NaN.
  // second_if_equal: if both are equal, as 0 and -0 are, the result is the second; else the first.
  std::string MinMaxWithNumber(bool is_min, bool second_if_equal, ir::Type type);
  std::string FloatToInt(ir::Type from, ir::Type to);
  std::string Sigmoid(ir::Type type);
  // The functions from here on take scalars.
  std::string Round(ir::DType to);  // a float to the nearest value of f16 or bf16
  // A value of that type to a float, rounded to odd: Round of the result rounds the value itself once.
  std::string RoundToOdd(ir::DType from);
  std::string ToBits(ir::DType from);  // an f16 or bf16, held as a float, to its bits, a ushort
  std::string FromBits(ir::DType to);  // and back

  const std::string& text() const { return text_; }

 private:
  // Adds the function, unless it is there, and returns its name. In `text`, $N is the name, $T the type, $U the
  // unsigned integer type of the same size, $W the bits of an element.
  std::string Add(const std::string& what, ir::Type type, std::string text);

  std::set<std::string> known_;  // names of the functions in text_
  std::string text_;
};

}  // namespace hone::codegen::opencl

#endif  // HONE_COMPILER_CODEGEN_OPENCL_PRELUDE_H_
