// SPDX-License-Identifier: Apache-2.0
// Expressions: immutable values behind shared handles, in one closed std::variant.
//
// Not here: statements (stmt.h), stages of a workload (workload.h), rewriting of whole trees (match.h). Start with the
// node structs. Build expressions with the Make* functions and operators below. These check types and abort on a
// mismatch, which is a bug of the compiler. They do not simplify; simplify.h does.
//
// Semantics. Integer arithmetic wraps. kDiv and kMod truncate like C. kFloorDiv and kFloorMod round towards minus
// infinity; index arithmetic uses these two. Integer division by zero yields 0, so that a candidate cannot trap where
// the reference does not. Shifts by the width or more yield 0. kMin and kMax of floats propagate NaN, as ONNX requires.
// Select is lazy: a Load in the arm not taken does not happen. A vector Select is lazy only if its condition is a
// Broadcast. All operands of a vector node have the same width. A Load whose mask is false reads nothing and yields 0.
#ifndef HONE_COMPILER_IR_EXPR_H_
#define HONE_COMPILER_IR_EXPR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/kernel_abi.h"
#include "compiler/ir/size.h"
#include "compiler/ir/type.h"

namespace hone::ir {

struct ExprNode;

// A shared handle to an immutable node. Copying is cheap. A default-constructed Expr is empty and means "absent", such
// as a Load's missing mask. Thread-safe as shared_ptr is.
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  Expr(int64_t value);                                    // NOLINT: an index constant, IntImm of kIndexType
  Expr(int value) : Expr(static_cast<int64_t>(value)) {}  // NOLINT
  bool defined() const { return node_ != nullptr; }
  const ExprNode& node() const { return *node_; }
  bool SameHandle(const Expr& other) const { return node_ == other.node_; }
  Type type() const;
  // The node as T, or nullptr. T is one of the structs below.
  template <typename T>
  const T* As() const;

 private:
  std::shared_ptr<const ExprNode> node_;
};

bool Equal(const Expr& a, const Expr& b);  // structural
bool Equal(const std::vector<Expr>& a, const std::vector<Expr>& b);

// The memory that holds a buffer. It decides who allocates the buffer and which lanes see it.
enum class Scope : uint8_t {
  kParam,      // passed in by the caller: inputs, constants, outputs
  kWorkspace,  // allocated outside every parallel loop: a slice of the kernel's workspace
  kLocal,      // allocated inside: the stack of the thread or lane; registers if it is promoted
  kShared,     // one for all lanes of a group: __local in OpenCL, __shared__ in CUDA
  kSwizzled,   // shared memory in rows of kSwizzledRowBytes bytes with their chunks of 16 permuted: chunk c of row r is
               // stored in the place of chunk c ^ (r % 8). Indices in the IR are those of the unpermuted order.
};
// In swizzled memory, lanes that write a row write a whole memory line. The chunks c of eight consecutive rows, which a
// tensor instruction reads together, lie in eight different banks.
inline constexpr int64_t kSwizzledRowBytes = 128, kSwizzledRows = 8, kSwizzledChunkBytes = 16;
inline bool IsShared(Scope scope) { return scope == Scope::kShared || scope == Scope::kSwizzled; }

struct BufferNode {
  std::string name;
  DType dtype;
  Shape shape;  // row-major, elements; an empty shape is a scalar of one element
  Scope scope = Scope::kParam;
};
// Buffers are compared by handle: two buffers of the same name are different buffers.
using Buffer = std::shared_ptr<const BufferNode>;
Buffer MakeBuffer(std::string name, DType dtype, Shape shape, Scope scope = Scope::kParam);
// The elements that the buffer has room for: the product of the largest sizes. Its bytes likewise.
int64_t NumElements(const BufferNode& buffer);
inline int64_t NumBytes(const BufferNode& buffer) { return NumElements(buffer) * SizeOf(buffer.dtype); }
// The shared memory that a buffer of so many bytes occupies, including the padding that aligns the next one.
inline int64_t PaddedSharedBytes(int64_t bytes) {
  return (bytes + HONE_BUFFER_ALIGNMENT - 1) / HONE_BUFFER_ALIGNMENT * HONE_BUFFER_ALIGNMENT;
}

enum class UnaryOp : uint8_t { kNeg, kAbs, kNot, kFloor, kCeil, kRound, kTrunc, kSqrt };  // kRound: half to even
// clang-format off
enum class BinaryOp : uint8_t {
  kAdd, kSub, kMul, kDiv, kMod,           // integers and floats; kMod of floats is fmod
  kFloorDiv, kFloorMod, kMin, kMax,       // the first two: integers only
  kAnd, kOr, kXor, kShl, kShr,            // bitwise on integers, logical on bool (kShl and kShr: integers only)
  kEq, kNe, kLt, kLe, kGt, kGe,           // result is bool
};
// Functions that take more than one instruction. f32 and f64 only, except kReinterpret, kIsNan and kIsInf.
enum class Intrinsic : uint8_t {
  kExp, kLog, kTanh, kErf, kSigmoid, kPow, kSin, kCos, kTan, kAsin, kAcos, kAtan, kSinh, kCosh, kAsinh, kAcosh,
  kAtanh, kIsNan, kIsInf, kFma,           // kFma(a, b, c) = a * b + c, rounded once
  kReinterpret,                           // the bits of its argument as the node's type (same size)
};

struct IntImm { Type type; int64_t value; };        // also bool (0, 1) and unsigned (bit pattern, zero-extended)
struct FloatImm { Type type; double value; };       // rounded to type; a NaN is the quiet one
struct Var { Type type; std::string name; };        // identity is the name, which nothing in its scope binds again
struct Cast { Type type; Expr value; };             // float to int truncates and saturates, NaN is 0; to bool: != 0
struct Unary { UnaryOp op; Expr a; };
struct Binary { BinaryOp op; Expr a, b; };
struct Select { Expr condition, on_true, on_false; };
struct Load { Buffer buffer; std::vector<Expr> indices; Expr mask; };  // a vector Load: last index is a vector
struct Call { Type type; Intrinsic function; std::vector<Expr> args; };
struct Ramp { Expr base, stride; int width; };      // base, base + stride, ...; scalar base and stride
struct Broadcast { Expr value; int width; };
// clang-format on

struct ExprNode {
  std::variant<IntImm, FloatImm, Var, Cast, Unary, Binary, Select, Load, Call, Ramp, Broadcast> value;
  Type type;
};

template <typename T>
const T* Expr::As() const {
  return node_ ? std::get_if<T>(&node_->value) : nullptr;
}

Expr MakeInt(Type type, int64_t value);
Expr MakeFloat(Type type, double value);
Expr MakeBool(bool value);
Expr MakeZero(Type type);                 // 0, 0.0 or false in any type, broadcast if a vector
bool IsZero(const Expr& e);               // a scalar immediate 0, 0.0 or false; not -0.0, nor a Broadcast of 0
Expr MakeConst(Type type, double value);  // in any type, broadcast if a vector; an integer truncates and saturates
Expr MakeVar(std::string name, Type type = kIndexType);
Expr MakeCast(Type type, Expr value);  // returns the value itself if it already has the type
Expr MakeUnary(UnaryOp op, Expr a);
Expr MakeBinary(BinaryOp op, Expr a, Expr b);
Expr MakeSelect(Expr condition, Expr on_true, Expr on_false);
Expr MakeLoad(Buffer buffer, std::vector<Expr> indices, Expr mask = {});
Expr MakeCall(Type type, Intrinsic function, std::vector<Expr> args);
Expr MakeRamp(Expr base, Expr stride, int width);
Expr MakeBroadcast(Expr value, int width);  // returns the value itself if width == 1

inline Expr operator+(Expr a, Expr b) { return MakeBinary(BinaryOp::kAdd, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return MakeBinary(BinaryOp::kSub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return MakeBinary(BinaryOp::kMul, std::move(a), std::move(b)); }
inline Expr operator/(Expr a, Expr b) { return MakeBinary(BinaryOp::kDiv, std::move(a), std::move(b)); }
inline Expr operator<(Expr a, Expr b) { return MakeBinary(BinaryOp::kLt, std::move(a), std::move(b)); }
inline Expr operator<=(Expr a, Expr b) { return MakeBinary(BinaryOp::kLe, std::move(a), std::move(b)); }
inline Expr operator>(Expr a, Expr b) { return MakeBinary(BinaryOp::kGt, std::move(a), std::move(b)); }
inline Expr operator>=(Expr a, Expr b) { return MakeBinary(BinaryOp::kGe, std::move(a), std::move(b)); }
inline Expr operator&&(Expr a, Expr b) { return MakeBinary(BinaryOp::kAnd, std::move(a), std::move(b)); }
inline Expr operator||(Expr a, Expr b) { return MakeBinary(BinaryOp::kOr, std::move(a), std::move(b)); }
inline Expr Min(Expr a, Expr b) { return MakeBinary(BinaryOp::kMin, std::move(a), std::move(b)); }
inline Expr Max(Expr a, Expr b) { return MakeBinary(BinaryOp::kMax, std::move(a), std::move(b)); }
inline Expr FloorDiv(Expr a, Expr b) { return MakeBinary(BinaryOp::kFloorDiv, std::move(a), std::move(b)); }
inline Expr FloorMod(Expr a, Expr b) { return MakeBinary(BinaryOp::kFloorMod, std::move(a), std::move(b)); }
inline Expr Equals(Expr a, Expr b) { return MakeBinary(BinaryOp::kEq, std::move(a), std::move(b)); }

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_EXPR_H_
