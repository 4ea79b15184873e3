// SPDX-License-Identifier: Apache-2.0
// The functions that operators are written with: typed reads, broadcasting, axes, lookup tables, errors.
//
// Not here: anything that belongs to one operator. Arithmetic on f16 and bf16 is done in f32: Read widens, and Map and
// Reduce narrow when they store. All functions are pure, except that those with a builder append stages to it. Start
// with Checked (the function that a table names), then Map and Reduce.
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

using Dims = std::vector<int64_t>;  // numbers: axes, pads, steps
using ir::Shape;
using ir::Size;
using Exprs = std::vector<ir::Expr>;
using Indices = std::span<const ir::Expr>;
using Buffers = std::vector<ir::Buffer>;
using OpResult = absl::StatusOr<Buffers>;

// --- Types and values.

ir::DType ComputeType(ir::DType storage);                   // f32 for f16 and bf16, else the type itself
absl::StatusOr<ir::DType> FromOnnxType(int64_t onnx_type);  // from TensorProto.DataType; Unimplemented for other types
int64_t ToOnnxType(ir::DType dtype);
// The type for indices below `extent`: i32 if it suffices, because a vector holds twice as many i32 as i64.
ir::DType NarrowestIndex(const Size& extent);
ir::Expr To(ir::DType dtype, ir::Expr value);  // casts a scalar, rounding once
ir::Expr Number(ir::DType dtype, double value);
ir::Expr Number(ir::DType dtype, const Size& value);
ir::Expr Like(const ir::Expr& x, double value);      // a constant of x's type
ir::Expr Apply(ir::Intrinsic function, ir::Expr a);  // the result has a's type (kIsNan and kIsInf: bool)
ir::Expr Power(ir::Expr a, ir::Expr b);              // both are floats of one type
// e^x - 1 and log(1 + x), accurate to a few last bits near 0, where 1 would hide the digits of e^x and of x. x is a
// float, for LogOfOnePlus from -1/2 to 1 or NaN.
ir::Expr ExpMinusOne(const ir::Expr& x);
ir::Expr LogOfOnePlus(const ir::Expr& x);
ir::Expr Negate(ir::Expr a);
ir::Expr Sqrt(ir::Expr a);
ir::Expr Not(ir::Expr a);  // bool
// Returns values[index] as a balanced tree of Selects: its evaluation takes log(n) comparisons. An index out of range
// yields the first or the last value. Aborts if `values` is empty. Table is the same for constants.
ir::Expr Choose(const ir::Expr& index, std::span<const ir::Expr> values);
ir::Expr Table(const ir::Expr& index, std::span<const int64_t> values);

// --- Reads. Indices are int64, one per dimension.

ir::Expr Read(const ir::Buffer& buffer, Exprs indices);  // the result has ComputeType
ir::Expr ReadHere(const ir::Buffer& buffer, Indices indices);
// Reads the element of `buffer` that numpy broadcasting assigns to `indices`, which have an equal or higher rank.
ir::Expr ReadBroadcast(const ir::Buffer& buffer, Indices indices);
// Read, then To(dtype).
ir::Expr ReadAs(ir::DType dtype, const ir::Buffer& buffer, Exprs indices);
ir::Expr ReadScalar(const ir::Buffer& buffer);  // the only element of a buffer of any rank
// Reads an element of an index tensor as int64, modulo extent (> 0). Negative indices therefore count from the end, and
// an index out of range reads a wrong element but never memory outside the tensor.
ir::Expr ReadIndex(const ir::Buffer& buffer, Exprs indices, const Size& extent);

// --- Stages.

// Appends a stage whose value is narrowed to dtype.
ir::Buffer Map(StageBuilder& builder, std::string_view hint, ir::DType dtype, Shape shape,
               const StageBuilder::Body& value);
// Appends a stage that applies `function` to each element of input 0.
ir::Buffer MapInput(const OpArgs& args, StageBuilder& builder, const std::function<ir::Expr(ir::Expr)>& function);
// Appends a reduction of values of ComputeType(dtype) and, if dtype is a half type, a stage that narrows the result. If
// reduce_extents is empty, it is a plain stage.
ir::Buffer Reduce(StageBuilder& builder, std::string_view hint, ir::DType dtype, Shape shape, Shape reduce_extents,
                  ir::Reduction reduction, const StageBuilder::ReduceBody& value);
// Appends a reduction over the dimensions `axes` (sorted) of an index space `shape`; `value` gets one index per
// dimension of it. With `keep`, the reduced dimensions stay with extent 1, so that ReadBroadcast at full indices finds
// the result.
ir::Buffer ReduceOver(StageBuilder& builder, std::string_view hint, ir::DType dtype, const Shape& shape,
                      const Dims& axes, bool keep, ir::Reduction reduction, const StageBuilder::Body& value);
// Returns `x` with before[d] and after[d] (>= 0) elements of `fill` (of x's compute type) around it, or x itself if all
// are 0.
ir::Buffer PadWith(StageBuilder& builder, const ir::Buffer& x, const Shape& before, const Shape& after,
                   const ir::Expr& fill);

// --- Shapes.

// Upper limit for attributes that are sizes, pads or steps. Larger ones are mistakes and would overflow arithmetic.
inline constexpr int64_t kDimensionMax = int64_t{1} << 30;
// Returns a * b; InvalidArgument if it overflows. For products with a number from the model.
absl::StatusOr<int64_t> CheckedProduct(int64_t a, int64_t b);
// InvalidArgument if a dimension is, or may be, negative. For shapes that the model gives.
absl::Status CheckNotNegative(const Shape& shape);
// The number; Unimplemented if the size is open. `what` names the dimension in the error: "the kernel's height".
absl::StatusOr<int64_t> FixedSize(const Size& size, std::string_view what);
absl::StatusOr<Dims> FixedSizes(std::span<const Size> sizes, std::string_view what);
int64_t Product(std::span<const int64_t> numbers);
using ir::Product;
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);
// Returns true if `from` can be broadcast to `to` without changing `to`.
bool BroadcastsTo(const Shape& from, const Shape& to);
absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, size_t rank);   // to [0, rank)
absl::StatusOr<Dims> NormalizeAxes(const Dims& axes, size_t rank);  // sorted; InvalidArgument on duplicates
// Returns the attribute `axes`, else the constant input i, else an empty list.
absl::StatusOr<Dims> AxesFrom(const OpArgs& args, size_t input);
bool Contains(const Dims& dims, int64_t value);
// Converts indices in `shape` to the row-major position, and back.
ir::Expr Flatten(Indices indices, const Shape& shape);
Exprs Unflatten(const ir::Expr& position, const Shape& shape);

// --- The node.

// Returns true if the output is present, that is, if something reads it.
bool IsOutputUsed(const OpArgs& args, size_t output);
// Returns the elements of input i; InvalidArgument if it is not constant.
absl::StatusOr<std::vector<double>> ConstantNumbers(const OpArgs& args, size_t i);
// Checks indices that are known at compile time. Input i holds tuples with one index for each of `extents`.
// InvalidArgument if it is constant and an index is outside [-extent, extent). Inputs that are not constant pass;
// ReadIndex handles them at run time.
absl::Status CheckConstantIndices(const OpArgs& args, size_t i, const Shape& extents);
// Returns element i, which must exist, as a constant of ComputeType. 64-bit integers keep all their bits.
ir::Expr ConstantElement(const Constant& constant, size_t i);
bool HasAttribute(const OpArgs& args, std::string_view name);
// Returns true if the attribute exists and has this type.
template <typename T>
bool IsAttribute(const OpArgs& args, std::string_view name) {
  auto it = args.node.attributes.find(std::string(name));
  return it != args.node.attributes.end() && std::holds_alternative<T>(it->second);
}
// Returns nullptr if there is no such attribute, or if it has another type; the latter sets attribute_error.
template <typename T>
const T* FindAttribute(const OpArgs& args, std::string_view name, std::string_view wanted) {
  auto it = args.node.attributes.find(std::string(name));
  if (it == args.node.attributes.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  if (value == nullptr) args.WrongType(name, wanted);
  return value;
}
inline size_t Rank(const ir::Buffer& buffer) { return buffer->shape.size(); }

absl::Status Malformed(std::string reason);    // InvalidArgument: the model violates the operator's specification
absl::Status Unsupported(std::string reason);  // Unimplemented: the model is valid, but Hone does not support it

// The kinds of element types that input 0 of an operator may have.
enum class Elements : uint8_t { kAny, kNumber, kInteger, kFloat, kBool };
absl::Status CheckInputs(const OpArgs& args, size_t required, Elements elements);
// InvalidArgument unless all present inputs have the type of input 0.
absl::Status CheckSameTypes(const OpArgs& args);

// Wraps an operator function in the checks that every operator needs: the first `required` inputs are present, and
// input 0 has the right kind of elements.
template <OpFn function, size_t required, Elements elements = Elements::kAny>
OpResult Checked(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckInputs(args, required, elements));
  return function(args, builder);
}

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_VOCABULARY_H_
