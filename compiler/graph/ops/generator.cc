// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;

// Limit on the elements of a result whose size is a number in the model.
constexpr int64_t kGeneratedLengthMax = int64_t{1} << 32;

OpResult ShapeOf(const OpArgs& args, StageBuilder& builder) {
  const Shape& dims = args.inputs[0]->shape;
  const int64_t rank = static_cast<int64_t>(dims.size());
  int64_t start = args.Int("start", 0), end = args.Int("end", rank);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? end + rank : end, 0, rank);
  const Shape part(dims.begin() + start, dims.begin() + std::max(start, end));
  return Buffers{builder.Compute("shape", DType::kInt64, {static_cast<int64_t>(part.size())}, [&](Indices i) {
    return part.empty() ? Expr(0) : Choose(i[0], Exprs(part.begin(), part.end()));
  })};
}

OpResult SizeOf(const OpArgs& args, StageBuilder& builder) {
  const Size size = Product(args.inputs[0]->shape);
  return Buffers{builder.Compute("size", DType::kInt64, {}, [&](Indices) { return Expr(size); })};
}

OpResult ConstantOfShape(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(Shape shape, args.ConstantSizes(0));
  HONE_RETURN_IF_ERROR(CheckNotNegative(shape));
  Expr value = Number(DType::kFloat32, 0);
  DType dtype = DType::kFloat32;
  if (const Constant* constant = FindAttribute<Constant>(args, "value", "a tensor")) {
    if (constant->type.elements() != 1 || constant->data == nullptr) {
      return Malformed("attribute value must be a tensor of one element");
    }
    dtype = constant->type.dtype;
    value = ConstantElement(*constant, 0);
  }
  return Buffers{Map(builder, "fill", dtype, std::move(shape), [&](Indices) { return value; })};
}

// The number of elements of a range of integers some of which are open sizes.
absl::StatusOr<Size> OpenRangeLength(const OpArgs& args) {
  Shape bounds;
  for (size_t k = 0; k < 3; ++k) {
    HONE_ASSIGN_OR_RETURN(const Shape numbers, args.ConstantSizes(k));
    if (numbers.size() != 1) return Malformed(fmt::format("input {} must be one number", k));
    bounds.push_back(numbers[0]);
  }
  HONE_ASSIGN_OR_RETURN(const int64_t step, FixedSize(bounds[2], "the step"));
  if (step == 0) return Malformed("a range in steps of 0 has no end");
  return step > 0 ? Max(CeilDiv(bounds[1] - bounds[0], step), 0) : Max(CeilDiv(bounds[0] - bounds[1], -step), 0);
}

// The number of elements of a range of integers, at most kGeneratedLengthMax; 0 for an empty one. `delta` is not 0.
int64_t CountIntegers(__int128 start, __int128 limit, __int128 delta) {
  if (delta > 0 ? limit <= start : limit >= start) return 0;
  const __int128 count = (limit - start + delta + (delta > 0 ? -1 : 1)) / delta;
  return static_cast<int64_t>(std::min(count, __int128{kGeneratedLengthMax}));
}

// The exact value of element 0 of a constant of integers.
__int128 FirstInteger(const OpArgs& args, size_t i) {
  const ir::DType dtype = args.inputs[i]->dtype;
  const Expr element = ConstantElement({{dtype, args.inputs[i]->shape}, args.constants[i]}, 0);
  const int64_t bits = element.As<ir::IntImm>()->value;
  return dtype == DType::kUInt64 ? __int128{static_cast<uint64_t>(bits)} : __int128{bits};
}

OpResult RangeOf(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  const bool open =
      std::ranges::any_of(args.elements, [](const ElementExprs& elements) { return elements != nullptr; });
  if (open) {
    HONE_ASSIGN_OR_RETURN(const Size length, OpenRangeLength(args));
    const DType dtype = args.inputs[0]->dtype;
    return Buffers{Map(builder, "range", dtype, {length}, [&](Indices i) {
      return ReadScalar(args.inputs[0]) + To(ComputeType(dtype), i[0]) * ReadScalar(args.inputs[2]);
    })};
  }
  double bounds[3];
  for (size_t k = 0; k < 3; ++k) {
    HONE_ASSIGN_OR_RETURN(std::vector<double> numbers, ConstantNumbers(args, k));
    if (numbers.size() != 1) return Malformed(fmt::format("input {} must be one number", k));
    bounds[k] = numbers[0];
  }
  const DType dtype = args.inputs[0]->dtype;
  double count = std::ceil((bounds[1] - bounds[0]) / bounds[2]);
  if (ir::IsInt(dtype) && bounds[2] != 0) {  // f64 does not hold all integers
    count = static_cast<double>(CountIntegers(FirstInteger(args, 0), FirstInteger(args, 1), FirstInteger(args, 2)));
  }
  if (bounds[2] == 0 || !(count < static_cast<double>(kGeneratedLengthMax))) {
    return Malformed(fmt::format("a range from {} to {} in steps of {} has no end or too many elements", bounds[0],
                                 bounds[1], bounds[2]));
  }
  const int64_t length = static_cast<int64_t>(std::max(count, 0.0));
  return Buffers{Map(builder, "range", dtype, {length}, [&](Indices i) {
    return ReadScalar(args.inputs[0]) + To(ComputeType(dtype), i[0]) * ReadScalar(args.inputs[2]);
  })};
}

OpResult OneHot(const OpArgs& args, StageBuilder& builder) {
  const Buffer& indices = args.inputs[0];
  const Buffer& values = args.inputs[2];
  HONE_ASSIGN_OR_RETURN(std::vector<double> depths, ConstantNumbers(args, 1));
  if (depths.size() != 1 || !(depths[0] >= 0 && depths[0] <= static_cast<double>(kGeneratedLengthMax))) {
    return Malformed("the depth (input 1) must be one number that is not negative");
  }
  if (values->shape != Shape{2}) return Malformed("the values (input 2) must be two numbers");
  const int64_t depth = static_cast<int64_t>(depths[0]);
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", -1), Rank(indices) + 1));
  Shape shape = indices->shape;
  shape.insert(shape.begin() + axis, depth);
  return Buffers{Map(builder, "one_hot", values->dtype, std::move(shape), [&](Indices i) {
    Exprs rest(i.begin(), i.end());
    rest.erase(rest.begin() + axis);
    Expr index = To(DType::kInt64, Read(indices, std::move(rest)));
    // Before opset 11 a negative index was out of range.
    const bool from_end = args.node.opset >= 11 && !ir::IsUnsignedInt(indices->dtype);
    if (from_end) index = MakeSelect(index < Expr(0), index + Expr(depth), index);
    return MakeSelect(Equals(index, i[static_cast<size_t>(axis)]), Read(values, {Expr(1)}), Read(values, {Expr(0)}));
  })};
}

OpResult EyeLike(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  if (Rank(x) != 2) return Malformed("input 0 must be a matrix");
  DType dtype = x->dtype;
  if (HasAttribute(args, "dtype")) {
    HONE_ASSIGN_OR_RETURN(dtype, FromOnnxType(args.Int("dtype", 0)));
  }
  const int64_t diagonal = args.Int("k", 0);
  return Buffers{Map(builder, "eye", dtype, x->shape, [&](Indices i) {
    const DType wide = ComputeType(dtype);
    return MakeSelect(Equals(i[1] - i[0], Expr(diagonal)), Number(wide, 1), Number(wide, 0));
  })};
}

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N) with the value a0 - a1 + a2 = at_end for n = 0. It is computed from
// h = sin^2(pi n / N), so that no difference cancels near the ends: cos(2 t) = 1 - 2 h and cos(4 t) = 1 - 8 h (1 - h).
// The window is symmetric, so the angle is taken from the nearer end, where it is small and precise.
OpResult CosineWindow(const OpArgs& args, StageBuilder& builder, double at_end, double a1, double a2) {
  HONE_ASSIGN_OR_RETURN(Dims sizes, args.ConstantInts(0));
  if (sizes.size() != 1 || sizes[0] < 0) return Malformed("the size (input 0) must be one number, not negative");
  HONE_ASSIGN_OR_RETURN(DType dtype, FromOnnxType(args.Int("output_datatype", 1)));
  const bool periodic = args.Int("periodic", 1) != 0;
  const int64_t period = std::max<int64_t>(periodic ? sizes[0] : sizes[0] - 1, 1);
  const DType wide = dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  return Buffers{Map(builder, "window", dtype, {sizes[0]}, [&](Indices i) {
    const Expr nearer = Min(i[0], Expr(period) - i[0]);
    const Expr sine = Apply(Intrinsic::kSin, To(wide, nearer) * Number(wide, M_PI / static_cast<double>(period)));
    const Expr h = sine * sine;
    Expr factor = Number(wide, 2 * a1);
    if (a2 != 0) factor = factor - Number(wide, 8 * a2) * (Number(wide, 1) - h);
    return Number(wide, at_end) + factor * h;
  })};
}

OpResult HannWindow(const OpArgs& args, StageBuilder& builder) { return CosineWindow(args, builder, 0, 0.5, 0); }

OpResult HammingWindow(const OpArgs& args, StageBuilder& builder) {
  return CosineWindow(args, builder, 4.0 / 46, 21.0 / 46, 0);
}

OpResult BlackmanWindow(const OpArgs& args, StageBuilder& builder) { return CosineWindow(args, builder, 0, 0.5, 0.08); }

// The range for random test data: indices of OneHot must be below its depth, so only 0 and 1 are used.
void SmallIndices(const OpArgs& args, size_t input, double* low, double* high) {
  if (input != 0) return;
  *low = 0;
  *high = 1;
  absl::StatusOr<std::vector<double>> depth = ConstantNumbers(args, 1);
  if (depth.ok() && depth->size() == 1) *high = std::max(depth->front() - 1, 0.0);
}

constexpr OpDef kGeneratorOps[] = {
    {"BlackmanWindow", Checked<BlackmanWindow, 1>},
    {"ConstantOfShape", Checked<ConstantOfShape, 1>},
    {"EyeLike", Checked<EyeLike, 1>},
    {"HammingWindow", Checked<HammingWindow, 1>},
    {"HannWindow", Checked<HannWindow, 1>},
    {"OneHot", Checked<OneHot, 3, Elements::kNumber>, {}, SmallIndices},
    {"Range", Checked<RangeOf, 3, Elements::kNumber>},
    {"Shape", Checked<ShapeOf, 1>},
    {"Size", Checked<SizeOf, 1>},
};

}  // namespace

std::span<const OpDef> GeneratorOps() { return kGeneratorOps; }

}  // namespace hone::graph
