// SPDX-License-Identifier: Apache-2.0
// Prints one lowered Func as a kernel of OpenCL C.
//
// Private to codegen/opencl. emit_stmt.cc has the kernel and its statements, emit_expr.cc expressions and loads. A
// vector of 2, 4, 8 or 16 elements is a vector of OpenCL C; what OpenCL C cannot do with a vector (a masked load, a
// select of loads), and vectors of other lengths, are computed element by element, each as a scalar.
#ifndef HONE_COMPILER_CODEGEN_OPENCL_EMITTER_H_
#define HONE_COMPILER_CODEGEN_OPENCL_EMITTER_H_

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/codegen/opencl/names.h"
#include "compiler/codegen/opencl/prelude.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/stmt.h"

namespace hone::codegen::opencl {

// How tightly the outermost operator binds; the tightest first.
enum class Level : uint8_t { kPrimary, kUnary, kMultiply, kAdd, kOther };

// An expression of OpenCL C.
struct Text {
  std::string code;
  Level level = Level::kPrimary;
  bool narrow = false;  // an i64 held as int
};

// Which element of a vector expression is wanted: all, or the one of that number (an i64 expression).
struct Element {
  ir::Expr number;
  bool all() const { return !number.defined(); }
};

class Emitter {
 public:
  Emitter(const ir::Func& func, Prelude* prelude) : func_(func), prelude_(*prelude) {}
  std::string Run();

 private:
  struct Variable {
    std::string name;
    bool narrow;
  };
  // What is known of a node of the expressions of one statement, which may be shared.
  struct Facts {
    int uses = 0;
    bool has_load = false;
    int size = 0;  // nodes, with those that are shared counted each time
  };

  // emit_stmt.cc
  void Line(std::string_view text);
  void Open(const std::string& text);
  void Close(std::string_view text = "}");
  void Begin(std::initializer_list<ir::Expr> roots);
  void DeclareShared(const ir::Stmt& s);
  std::string Signature();
  void EmitStmt(const ir::Stmt& s);
  void EmitFor(const ir::For& loop);
  void EmitIf(const ir::If& branch);
  void EmitLet(const ir::Let& let);
  void EmitStore(const ir::Store& store);
  // stored: the value of the store, or what the store itself rounds to it.
  void EmitScalarStore(const ir::Store& store, const ir::Expr& stored);
  void EmitVectorStore(const ir::Store& store, const ir::Expr& stored);
  void EmitElements(const ir::Store& store, const ir::Expr& stored);
  std::string EmitArray(const std::string& like, const ir::Expr& value);
  std::pair<std::string, ir::Expr> OpenElements(int width);
  void CloseElements();
  std::string StoreElement(const ir::BufferNode& buffer, const std::string& index, const Text& value);
  const Facts& Count(const ir::Expr& e);

  // emit_expr.cc
  Text Value(const ir::Expr& e, const Element& element = {});
  Text Node(const ir::Expr& e, const Element& element);
  Text Gather(const ir::Expr& e);
  bool NeedsElements(const ir::Expr& e);
  Text Constant(const ir::IntImm& i);
  Text Constant(const ir::FloatImm& f);
  Text VarOf(const ir::Var& v, const Element& element);
  Text CastOf(const ir::Cast& cast, const Element& element, int width);
  Text ToStorageFloat(ir::DType from, ir::DType to, const Text& value);
  Text UnaryOf(const ir::Unary& unary, const Element& element, int width);
  Text BinaryOf(const ir::Expr& e, const ir::Binary& binary, const Element& element, int width);
  Text IndexBinary(const ir::Expr& e, const ir::Binary& binary, Text a, Text b, int width);
  Text BoolBinary(ir::BinaryOp op, Text a, Text b, int width);
  Text FloatBinary(const ir::Binary& binary, const Text& a, const Text& b, ir::Type type);
  Text IntBinary(ir::BinaryOp op, const Text& a, const Text& b, ir::Type type);
  Text Compare(ir::BinaryOp op, Text a, Text b, ir::Type type);
  Text SelectOf(const ir::Select& select, const Element& element, int width);
  Text RampOf(const ir::Expr& e, const ir::Ramp& ramp, const Element& element, int width);
  Text LoadOf(const ir::Load& load, const Element& element, int width);
  Text LoadElement(const ir::BufferNode& buffer, const std::string& index);
  Text LoadVector(const ir::BufferNode& buffer, const std::string& index, int width);
  Text CallOf(const ir::Call& call, const Element& element, int width);
  Text Reinterpret(const ir::Call& call, const Text& value, int width);
  Text Widened(Text value, int width);
  Text Mask(ir::Type operand, bool narrow, std::string compare);
  // "(address_space [const] half*)name" for f16, the name for all others.
  std::string Place(const ir::BufferNode& buffer, bool for_store);
  ir::Interval BoundsOf(const ir::Expr& e);
  bool HasLoad(const ir::Expr& e) { return Count(e).has_load; }

  const ir::Func& func_;
  Prelude& prelude_;
  Names names_;
  std::string text_;
  int depth_ = 0;
  std::map<const ir::BufferNode*, std::string> places_;
  std::map<std::string, Variable, std::less<>> variables_;
  ir::Ranges ranges_;
  int lazy_ = 0;  // how many arms that may not be taken are around what is being printed
  std::unordered_map<const ir::ExprNode*, Facts> facts_;
  std::unordered_map<const ir::ExprNode*, ir::Interval> bounds_;
  // Shared values of the statement that have a name already, by node and element (-1: all, or a scalar).
  std::map<std::pair<const ir::ExprNode*, int64_t>, Text> named_;
  std::vector<ir::Expr> kept_;  // nodes made here live as long as the maps that know them by address
};

std::string InParens(const Text& text, Level at_most);

}  // namespace hone::codegen::opencl

#endif  // HONE_COMPILER_CODEGEN_OPENCL_EMITTER_H_
