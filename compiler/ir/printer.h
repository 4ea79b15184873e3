// SPDX-License-Identifier: Apache-2.0
// The expression printer behind text.h and workload.h: one spelling for both texts.
//
// Not here: statements (text.cc) and stages (workload_text.cc). Start with Printer::Write.
#ifndef HONE_COMPILER_IR_PRINTER_H_
#define HONE_COMPILER_IR_PRINTER_H_

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "compiler/ir/expr.h"

namespace hone::ir {

// Writes to one text. Buffers of the same name get distinct spellings: the second "t" is written "t.2".
class Printer {
 public:
  // Writes the expression, in parentheses if its operator has lower precedence than the given one (see docs/IR.md).
  void Write(const Expr& e, int precedence = 0);
  void Write(std::string_view text) { text_ += text; }
  void WriteName(std::string_view name);        // quoted unless it is a plain identifier
  void WriteString(std::string_view text);      // in double quotes, escaped
  void WriteDeclaration(const Buffer& buffer);  // name: f32[1,2]
  // stride and column_stride: strides of a MatrixOperand, written as `stride` and `apart`; the defaults 0 and 1 are not
  // written.
  void WriteAccess(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask, int64_t stride = 0,
                   int64_t column_stride = 1);
  void WriteBufferName(const Buffer& buffer);
  void WriteDouble(double value);  // the shortest text that parses to the same value
  void WriteSize(const Size& size) { size.IsFixed() ? WriteNumber(size.value()) : Write(Expr(size)); }
  void WriteOpenSize(const OpenSize& size);  // size n in [1, 512], a line
  void WriteNumber(int64_t value) { text_ += std::to_string(value); }
  std::string Take() { return std::move(text_); }

 private:
  void WriteList(const std::vector<Expr>& list);
  void WriteFloat(const FloatImm& imm);
  void WriteUnary(const Unary& node, int precedence);
  void WriteBinary(const Binary& node, int precedence);
  void WriteCall(const Call& node);

  std::string text_;
  std::map<const BufferNode*, std::string> buffer_names_;
  std::set<std::string, std::less<>> used_names_;
};

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_PRINTER_H_
