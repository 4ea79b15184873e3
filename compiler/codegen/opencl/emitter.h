// SPDX-License-Identifier: Apache-2.0
// Prints one lowered Func as a kernel of OpenCL C.
//
// Private to codegen/opencl; start at Run. emit_stmt.cc prints the kernel and its statements, emit_expr.cc expressions
// and loads. A vector of 2, 4, 8 or 16 elements is a vector of OpenCL C. Vectors of other lengths, and operations that
// OpenCL C does not have for vectors (a masked load, a select of loads), are printed as scalars, element by element.
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

// The precedence of an expression's outermost operator, the tightest first.
enum class Level : uint8_t { kPrimary, kUnary, kMultiply, kAdd, kOther };

// An expression of OpenCL C.
struct Text {
  std::string code;
  Level level = Level::kPrimary;
  bool narrow = false;  // the type is i64, and the value is held as an int, because it fits
};

// Which element of a vector expression is printed.
struct Element {
  ir::Expr number;  // an i64 expression; undefined: all elements, as a vector
  bool all() const { return !number.defined(); }
};

class Emitter {
 public:
  // Both must outlive the emitter. The functions that the kernel calls are added to the prelude.
  Emitter(const ir::Func& func, Prelude* prelude) : func_(func), prelude_(*prelude) {}
  // The text of the kernel. Called once.
  std::string Run();

 private:
  struct Variable {
    std::string name;
    bool narrow;
  };
  // Facts about one node of a statement's expressions. Expressions are DAGs: a node may have several parents.
  struct Facts {
    int uses = 0;           // by how many parents
    bool has_load = false;  // in the node or below it
    int size = 0;           // nodes of the expression as a tree: shared ones count each time
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
  // stored: the store's value, without a final rounding that the store itself does.
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
  // The buffer's name; for an f16 that is not a param "(address_space [const] half*)name".
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
  int lazy_ = 0;  // how many arms of selects, and masks, are around the expression being printed
  std::unordered_map<const ir::ExprNode*, Facts> facts_;
  std::unordered_map<const ir::ExprNode*, ir::Interval> bounds_;
  // Values of the statement that are in a local variable, by node and element. Element -1: all, or the node is a
  // scalar.
  std::map<std::pair<const ir::ExprNode*, int64_t>, Text> named_;
  std::vector<ir::Expr> kept_;  // keeps nodes made here alive, because the maps above know nodes by address
};

// The code, in parentheses if its operator binds less tightly than `loosest`.
std::string InParens(const Text& text, Level loosest);

}  // namespace hone::codegen::opencl

#endif  // HONE_COMPILER_CODEGEN_OPENCL_EMITTER_H_
