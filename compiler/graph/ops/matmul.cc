// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/quantize.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

// Shapes as in numpy.matmul: a vector is a row on the left and a column on the right; leading dimensions are broadcast.
struct Product2D {
  Shape batch;
  Size m = 1, k = 0, n = 1;
  bool left_vector = false, right_vector = false;

  Shape ResultShape() const {
    Shape shape = batch;
    if (!left_vector) shape.push_back(m);
    if (!right_vector) shape.push_back(n);
    return shape;
  }
  size_t MAxis() const { return batch.size(); }  // axis of the result
  size_t NAxis() const { return batch.size() + (left_vector ? 0 : 1); }
};

absl::StatusOr<Product2D> ReadProduct(const Buffer& a, const Buffer& b) {
  if (Rank(a) == 0 || Rank(b) == 0) return Malformed("a scalar cannot be multiplied as a matrix");
  Product2D product;
  product.left_vector = Rank(a) == 1;
  product.right_vector = Rank(b) == 1;
  product.k = a->shape.back();
  if (!product.left_vector) product.m = a->shape[Rank(a) - 2];
  if (!product.right_vector) product.n = b->shape.back();
  const Size rows = b->shape[product.right_vector ? 0 : Rank(b) - 2];
  if (rows != product.k)
    return Malformed(fmt::format("input 0 has {} columns, but input 1 has {} rows", product.k, rows));
  Shape left(a->shape.begin(), a->shape.end() - (product.left_vector ? 1 : 2));
  Shape right(b->shape.begin(), b->shape.end() - (product.right_vector ? 1 : 2));
  HONE_ASSIGN_OR_RETURN(product.batch, BroadcastShapes(left, right));
  return product;
}

// Indices into an operand: broadcast batch dimensions, then the last one or two.
Exprs OperandPlace(const Buffer& operand, Indices batch, Exprs last) {
  const size_t own = Rank(operand) - last.size();
  Exprs place;
  for (size_t d = 0; d < own; ++d) {
    place.push_back(operand->shape[d] == 1 ? Expr(0) : batch[batch.size() - own + d]);
  }
  place.insert(place.end(), last.begin(), last.end());
  return place;
}

using Element = std::function<Expr(const Buffer& operand, Exprs place)>;

Buffer EmitProduct(StageBuilder& builder, const Product2D& product, const Buffer& a, const Buffer& b, DType dtype,
                   const Element& left, const Element& right) {
  return Reduce(
      builder, "matmul", dtype, product.ResultShape(), {product.k}, Reduction::kSum, [&](Indices i, Indices r) {
        Indices batch = i.first(product.batch.size());
        Exprs row = product.left_vector ? Exprs{r[0]} : Exprs{i[product.MAxis()], r[0]};
        Exprs column = product.right_vector ? Exprs{r[0]} : Exprs{r[0], i[product.NAxis()]};
        return left(a, OperandPlace(a, batch, std::move(row))) * right(b, OperandPlace(b, batch, std::move(column)));
      });
}

OpResult MatMul(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  const Buffer& a = args.inputs[0];
  const Buffer& b = args.inputs[1];
  HONE_ASSIGN_OR_RETURN(Product2D product, ReadProduct(a, b));
  return Buffers{EmitProduct(builder, product, a, b, a->dtype, Read, Read)};
}

// Returns an operand of Gemm as the matrix that other runtimes take it for: a vector is one row, and dimensions of 1
// after the second one, or before the last two, do not count. Other ranks have no certain meaning.
OpResult AsMatrix(const Buffer& x, StageBuilder& builder) {
  Shape shape = x->shape;
  if (shape.size() == 1) shape.insert(shape.begin(), 1);
  while (shape.size() > 2 && shape.back() == 1) shape.pop_back();
  while (shape.size() > 2 && shape.front() == 1) shape.erase(shape.begin());
  if (shape.size() != 2) return Malformed(fmt::format("inputs 0 and 1 must be matrices, but one has rank {}", Rank(x)));
  if (shape == x->shape) return Buffers{x};
  return Buffers{Map(builder, "matrix", x->dtype, shape,
                     [&](Indices i) { return Read(x, Unflatten(Flatten(i, shape), x->shape)); })};
}

// Returns the shape without dimensions of 1 before the last two.
Shape WithoutLeadingOnes(Shape shape) {
  while (shape.size() > 2 && shape.front() == 1) shape.erase(shape.begin());
  return shape;
}

// alpha * A' * B' + beta * C; A and B may be transposed.
OpResult Gemm(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  HONE_ASSIGN_OR_RETURN(const Buffers left, AsMatrix(args.inputs[0], builder));
  HONE_ASSIGN_OR_RETURN(const Buffers right, AsMatrix(args.inputs[1], builder));
  const Buffer &a = left[0], &b = right[0];
  const bool trans_a = args.Int("transA", 0) != 0, trans_b = args.Int("transB", 0) != 0;
  const double alpha = args.Float("alpha", 1), beta = args.Float("beta", 1);
  const Shape shape = {a->shape[trans_a ? 1 : 0], b->shape[trans_b ? 0 : 1]};
  const Size k = a->shape[trans_a ? 0 : 1];
  if (b->shape[trans_b ? 1 : 0] != k) return Malformed("the inner dimensions of inputs 0 and 1 differ");
  const DType dtype = a->dtype, wide = ComputeType(dtype);
  if (ir::IsInt(dtype) && (alpha != std::int64_t(alpha) || beta != std::int64_t(beta))) {
    return Unsupported("attribute alpha or beta is not an integer, which is not supported for integer inputs");
  }
  const bool add = args.Has(2) && beta != 0;
  const Shape added = add ? WithoutLeadingOnes(args.inputs[2]->shape) : Shape{};
  if (add && !BroadcastsTo(added, shape)) return Malformed("input 2 does not broadcast to the product");
  Buffer sum = builder.Reduce("gemm", wide, shape, {k}, Reduction::kSum, [&](Indices i, Indices r) {
    return Read(a, trans_a ? Exprs{r[0], i[0]} : Exprs{i[0], r[0]}) *
           Read(b, trans_b ? Exprs{i[1], r[0]} : Exprs{r[0], i[1]});
  });
  if (!add && alpha == 1 && wide == dtype) return Buffers{sum};
  return Buffers{Map(builder, "gemm_add", dtype, shape, [&](Indices i) {
    Expr value = ReadHere(sum, i);
    if (alpha != 1) value = value * Number(wide, alpha);
    if (!add) return value;
    Exprs place(Rank(args.inputs[2]) - added.size(), Expr(0));
    for (size_t d = 0; d < added.size(); ++d) {
      place.push_back(added[d] == 1 ? Expr(0) : i[d + shape.size() - added.size()]);
    }
    Expr c = Read(args.inputs[2], std::move(place));
    return value + (beta == 1 ? c : c * Number(wide, beta));
  })};
}

// Elements of a quantized operand as i32, minus the zero point. There is one zero point, or one per row (left operand)
// or column (right operand).
absl::StatusOr<Element> Dequantized(const OpArgs& args, size_t operand, size_t zero_point, bool left) {
  const DType i32 = DType::kInt32;
  if (!HasOffset(args, zero_point)) {
    return [](const Buffer& buffer, Exprs place) { return ReadAs(DType::kInt32, buffer, std::move(place)); };
  }
  const Buffer& zero = args.inputs[zero_point];
  const Buffer& x = args.inputs[operand];
  if (Product(zero->shape) == 1) {
    return [zero](const Buffer& buffer, Exprs place) {
      return ReadAs(i32, buffer, std::move(place)) - To(i32, ReadScalar(zero));
    };
  }
  const size_t axis = left ? Rank(x) - 2 : Rank(x) - 1;
  if (Rank(x) < 2) return Malformed(fmt::format("the zero point (input {}) must be one number", zero_point));
  if (zero->shape == Shape{x->shape[axis]}) {
    return [zero, axis](const Buffer& buffer, Exprs place) {
      Expr offset = ReadAs(i32, zero, {place[axis]});
      return ReadAs(i32, buffer, std::move(place)) - offset;
    };
  }
  Shape expected = x->shape;
  expected[left ? Rank(x) - 1 : Rank(x) - 2] = 1;
  if (zero->shape != expected)
    return Malformed(fmt::format("the zero point (input {}) has shape [{}]; it must be [{}]", zero_point,
                                 fmt::join(zero->shape, ","), fmt::join(expected, ",")));
  return [zero](const Buffer& buffer, Exprs place) {
    Expr offset = To(i32, ReadBroadcast(zero, place));
    return ReadAs(i32, buffer, std::move(place)) - offset;
  };
}

absl::StatusOr<Buffer> EmitIntegerProduct(const OpArgs& args, StageBuilder& builder, size_t a, size_t b,
                                          size_t a_zero_point, size_t b_zero_point) {
  HONE_RETURN_IF_ERROR(CheckQuantizedOperands(args, a, b, a_zero_point, b_zero_point));
  HONE_ASSIGN_OR_RETURN(Product2D product, ReadProduct(args.inputs[a], args.inputs[b]));
  HONE_ASSIGN_OR_RETURN(Element left, Dequantized(args, a, a_zero_point, true));
  HONE_ASSIGN_OR_RETURN(Element right, Dequantized(args, b, b_zero_point, false));
  return EmitProduct(builder, product, args.inputs[a], args.inputs[b], DType::kInt32, left, right);
}

OpResult MatMulInteger(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(Buffer sum, EmitIntegerProduct(args, builder, 0, 1, 2, 3));
  return Buffers{sum};
}

// Checks that input k, a scale or zero point of a product, is one number, one per row or column ([n]), or one per row
// or column of each matrix ([..., n, 1] or [..., 1, n]).
absl::Status CheckProductParameter(const OpArgs& args, size_t k, const Product2D& product, bool rows) {
  const Shape& shape = args.inputs[k]->shape;
  const bool vector = rows ? product.left_vector : product.right_vector;
  const Size& count = rows ? product.m : product.n;
  if (Product(shape) == 1 || (!vector && shape == Shape{count})) return absl::OkStatus();
  if (!vector && shape.size() >= 2) {
    const Shape batch(shape.begin(), shape.end() - 2), last(shape.end() - 2, shape.end());
    if (last == (rows ? Shape{count, 1} : Shape{1, count}) && BroadcastsTo(batch, product.batch))
      return absl::OkStatus();
  }
  return Malformed(fmt::format("input {} has shape [{}]; it must be one number or one per {} ({})", k,
                               fmt::join(shape, ","), rows ? "row" : "column", count));
}

// The element of input k, which CheckProductParameter has passed, for element i of the product. f32.
Expr ReadProductParameter(const OpArgs& args, size_t k, const Product2D& product, bool rows, Indices i) {
  const DType f32 = DType::kFloat32;
  const Buffer& parameter = args.inputs[k];
  if (Product(parameter->shape) == 1) return To(f32, ReadScalar(parameter));
  const Expr place = i[rows ? product.MAxis() : product.NAxis()];
  if (Rank(parameter) == 1) return ReadAs(f32, parameter, {place});
  const Exprs last = rows ? Exprs{place, Expr(0)} : Exprs{Expr(0), place};
  return ReadAs(f32, parameter, OperandPlace(parameter, i.first(product.batch.size()), last));
}

// Inputs: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point. Those of b may have a number per
// column, those of a and y one per row.
OpResult QLinearMatMul(const OpArgs& args, StageBuilder& builder) {
  const DType out = args.inputs[7]->dtype;
  if (out != DType::kInt8 && out != DType::kUInt8) return Malformed("the zero point of y (input 7) must be 8-bit");
  HONE_ASSIGN_OR_RETURN(Buffer sum, EmitIntegerProduct(args, builder, 0, 3, 2, 5));
  HONE_ASSIGN_OR_RETURN(const Product2D product, ReadProduct(args.inputs[0], args.inputs[3]));
  for (const size_t k : {1, 4, 6, 7}) HONE_RETURN_IF_ERROR(CheckProductParameter(args, k, product, k != 4));
  return Buffers{builder.Compute("requantize", out, sum->shape, [&](Indices i) {
    const auto parameter = [&](size_t k) { return ReadProductParameter(args, k, product, k != 4, i); };
    return RequantizeBy({parameter(1), parameter(4), parameter(6), parameter(7)}, out, ReadHere(sum, i));
  })};
}

std::string MatMulLabel(const Graph& graph, const Node& node) {
  return graph.values[node.inputs[1]].type.shape.size() > 2 ? "batch_matmul" : "matmul";
}

constexpr OpDef kMatMulOps[] = {
    {"Gemm", Checked<Gemm, 2, Elements::kNumber>, {.label = {"matmul"}}},
    {"MatMul", Checked<MatMul, 2, Elements::kNumber>, {.label = {.of = MatMulLabel}}},
    {"MatMulInteger", Checked<MatMulInteger, 2, Elements::kInteger>, {}, QuantizedRange},
    {"QLinearMatMul", Checked<QLinearMatMul, 8, Elements::kInteger>, {.floats_differ = true}, QuantizedRange},
};

}  // namespace

std::span<const OpDef> MatMulOps() { return kMatMulOps; }

}  // namespace hone::graph
