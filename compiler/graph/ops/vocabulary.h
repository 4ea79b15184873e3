// SPDX-License-Identifier: Apache-2.0
// The vocabulary that operator functions are written in: typed reads, broadcasting, axes, tables, errors.
//
// Not here: anything that belongs to one operator. Arithmetic on f16 and bf16 is done in f32: Read widens, Map and
// Sum-like stages narrow again when they store. All functions are pure; the builder is the only thing they change.
// Start with Checked (what a table names), then Map and Reduce.
#ifndef HONE_COMPILER_GRAPH_OPS_VOCABULARY_H_
#define HONE_COMPILER_GRAPH_OPS_VOCABULARY_H_

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "compiler/graph/op.h"

namespace hone::graph {

using Dims = std::vector<int64_t>;
using Exprs = std::vector<ir::Expr>;
using Indices = std::span<const ir::Expr>;
using Buffers = std::vector<ir::Buffer>;
using OpResult = absl::StatusOr<Buffers>;

// --- Types and values.

ir::DType ComputeType(ir::DType storage);                   // f32 for f16 and bf16, else the type itself
absl::StatusOr<ir::DType> FromOnnxType(int64_t onnx_type);  // TensorProto.DataType; Unimplemented for the others
int64_t ToOnnxType(ir::DType dtype);
// What counts to `extent`: i32 where it can, of which twice as many fit into a vector as of i64.
ir::DType NarrowestIndex(int64_t extent);
ir::Expr To(ir::DType dtype, ir::Expr value);  // a scalar cast, rounded once
ir::Expr Number(ir::DType dtype, double value);
ir::Expr Like(const ir::Expr& x, double value);      // a number of x's type
ir::Expr Apply(ir::Intrinsic function, ir::Expr a);  // of a's type (kIsNan and kIsInf: bool)
ir::Expr Power(ir::Expr a, ir::Expr b);              // floats of one type
ir::Expr Negate(ir::Expr a);
ir::Expr Sqrt(ir::Expr a);
ir::Expr Not(ir::Expr a);  // bool
// values[index], as a balanced tree of Selects: evaluating it takes log(n) comparisons. values is not empty.
ir::Expr Choose(const ir::Expr& index, std::span<const ir::Expr> values);
ir::Expr Table(const ir::Expr& index, std::span<const int64_t> values);

// --- Reads. Indices are int64, one per dimension.

ir::Expr Read(const ir::Buffer& buffer, Exprs indices);  // in ComputeType
ir::Expr ReadHere(const ir::Buffer& buffer, Indices indices);
// Reads `buffer` at the place that numpy broadcasting maps `indices` (of an equal or higher rank) to.
ir::Expr ReadBroadcast(const ir::Buffer& buffer, Indices indices);
// Read, then To(dtype).
ir::Expr ReadAs(ir::DType dtype, const ir::Buffer& buffer, Exprs indices);
ir::Expr ReadScalar(const ir::Buffer& buffer);  // the only element, whatever the rank
// An element of an index tensor as int64, modulo extent (> 0): counted from the end where negative, and a wrong index
// reads a wrong element, never memory of others.
ir::Expr ReadIndex(const ir::Buffer& buffer, Exprs indices, int64_t extent);

// --- Stages.

// One stage whose value is narrowed to dtype.
ir::Buffer Map(StageBuilder& builder, std::string_view hint, ir::DType dtype, Dims shape,
               const StageBuilder::Body& value);
// Element by element on input 0.
ir::Buffer MapInput(const OpArgs& args, StageBuilder& builder, const std::function<ir::Expr(ir::Expr)>& function);
// A reduction of values of ComputeType(dtype), and a stage that narrows the result if dtype is a half type. With no
// reduce extents at all it is a plain stage.
ir::Buffer Reduce(StageBuilder& builder, std::string_view hint, ir::DType dtype, Dims shape, Dims reduce_extents,
                  ir::Reduction reduction, const StageBuilder::ReduceBody& value);
// A reduction over some dimensions (`axes`, sorted) of an index space `shape`: value gets one index per dimension. With
// keep, the result has extent 1 where it was reduced, so that ReadBroadcast at full indices finds its element.
ir::Buffer ReduceOver(StageBuilder& builder, std::string_view hint, ir::DType dtype, const Dims& shape,
                      const Dims& axes, bool keep, ir::Reduction reduction, const StageBuilder::Body& value);
// `x` with before[d] and after[d] (>= 0) elements of `fill` (of x's compute type) around it; x itself if all are 0.
ir::Buffer PadWith(StageBuilder& builder, const ir::Buffer& x, const Dims& before, const Dims& after,
                   const ir::Expr& fill);

// --- Shapes.

// Attributes beyond this that are sizes, pads or steps are mistakes, and would overflow the arithmetic on them.
inline constexpr int64_t kMaxSize = int64_t{1} << 30;
// a * b, where one of them is what a model gives; InvalidArgument if it overflows.
absl::StatusOr<int64_t> CheckedProduct(int64_t a, int64_t b);
// A shape that the model gives as numbers has no negative dimension.
absl::Status CheckNotNegative(const Dims& shape);
int64_t Product(std::span<const int64_t> dims);
absl::StatusOr<Dims> BroadcastShapes(const Dims& a, const Dims& b);
// True if `from` can be broadcast to `to` without changing `to`.
bool BroadcastsTo(const Dims& from, const Dims& to);
absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, size_t rank);   // to [0, rank)
absl::StatusOr<Dims> NormalizeAxes(const Dims& axes, size_t rank);  // sorted; InvalidArgument on duplicates
// The attribute `axes`, else the constant input i, else none.
absl::StatusOr<Dims> AxesFrom(const OpArgs& args, size_t input);
bool Contains(const Dims& dims, int64_t value);
// Row-major position of indices in shape, and back.
ir::Expr Flatten(Indices indices, const Dims& shape);
Exprs Unflatten(const ir::Expr& position, const Dims& shape);

// --- The node.

// Something reads the output.
bool Wanted(const OpArgs& args, size_t output);
// The numbers of input i, which must be constant.
absl::StatusOr<std::vector<double>> ConstantNumbers(const OpArgs& args, size_t i);
// InvalidArgument if input i, tuples of one index for each of `extents`, is constant and has one that names no element
// from the front or from the end. (ReadIndex is for those that are not known.)
absl::Status CheckConstantIndices(const OpArgs& args, size_t i, const Dims& extents);
// Element i (which must be there) in ComputeType, with all the bits of a 64-bit integer.
ir::Expr ConstantElement(const Constant& constant, size_t i);
bool HasAttribute(const OpArgs& args, std::string_view name);
// Whether there is such an attribute, of this type.
template <typename T>
bool IsAttribute(const OpArgs& args, std::string_view name) {
  auto it = args.node.attributes.find(std::string(name));
  return it != args.node.attributes.end() && std::holds_alternative<T>(it->second);
}
// nullptr if there is no such attribute. One of another type sets attribute_error, and is nullptr, too.
template <typename T>
const T* FindAttribute(const OpArgs& args, std::string_view name, std::string_view wanted) {
  auto it = args.node.attributes.find(std::string(name));
  if (it == args.node.attributes.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  if (value == nullptr) args.WrongType(name, wanted);
  return value;
}
inline size_t Rank(const ir::Buffer& buffer) { return buffer->shape.size(); }

absl::Status Malformed(std::string reason);    // InvalidArgument: the model breaks the operator's rules
absl::Status Unsupported(std::string reason);  // Unimplemented: the model is fine, we are not

// What input 0 of an operator may be.
enum class Elements : uint8_t { kAny, kNumber, kInteger, kFloat, kBool };
absl::Status CheckInputs(const OpArgs& args, size_t required, Elements elements);
// All inputs that are there have the type of input 0.
absl::Status CheckSameTypes(const OpArgs& args);

// An operator function behind the checks that every operator needs: the first `required` inputs are there, and the
// elements of input 0 are of the right kind.
template <OpFn function, size_t required, Elements elements = Elements::kAny>
OpResult Checked(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckInputs(args, required, elements));
  return function(args, builder);
}

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_VOCABULARY_H_
