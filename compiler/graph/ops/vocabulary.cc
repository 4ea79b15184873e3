// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/ops/vocabulary.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/half_float.h"
#include "compiler/ir/numeric.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::graph {

using ir::Buffer;
using ir::DType;
using ir::Expr;

absl::Status Malformed(std::string reason) { return absl::InvalidArgumentError(reason); }
absl::Status Unsupported(std::string reason) { return absl::UnimplementedError(reason); }

// --- Types and values.

namespace {

bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

}  // namespace

DType ComputeType(DType storage) { return IsHalf(storage) ? DType::kFloat32 : storage; }

absl::StatusOr<DType> FromOnnxType(int64_t onnx_type) {
  if (onnx_type == 0) return Malformed("the attribute that names an element type is missing");
  for (const DTypeRow& row : kDTypeRows) {
    if (OnnxNumber(row.dtype) == onnx_type) return row.dtype;
  }
  return Unsupported(
      fmt::format("element type {} of ONNX (strings, complex, float8 and 4-bit types) is not supported", onnx_type));
}

int64_t ToOnnxType(DType dtype) { return OnnxNumber(dtype); }

DType NarrowestIndex(const Size& extent) {
  return extent.max() <= std::numeric_limits<int32_t>::max() ? DType::kInt32 : DType::kInt64;
}

namespace {

// Rounds an f64 to odd: drops the last 40 bits and sets the lowest remaining bit if any of them was set (sticky bit).
// f32 represents the result exactly wherever it matters, and rounding that to f16 gives the same as rounding x.
Expr RoundToOdd(const Expr& x) {
  constexpr int64_t kLast = (int64_t{1} << 40) - 1;
  const ir::Type type{DType::kInt64, 1};
  const Expr bits = MakeCall(type, ir::Intrinsic::kReinterpret, {x}), last = ir::MakeInt(type, kLast);
  const Expr odd = MakeBinary(ir::BinaryOp::kOr, bits, MakeBinary(ir::BinaryOp::kAnd, bits, last) + last);
  return MakeCall(x.type(), ir::Intrinsic::kReinterpret,
                  {MakeBinary(ir::BinaryOp::kAnd, odd, ir::MakeInt(type, ~kLast))});
}

}  // namespace

// Casts to f16 by way of f32. That compiles to vector instructions, whereas a direct cast from f64 calls a function of
// the compiler's runtime library, which not every program links. Integers are exact: every integer below 65520 is an
// f32, and f16 is infinity from there on.
Expr To(DType dtype, Expr value) {
  const DType from = value.type().dtype;
  if (from == dtype) return value;
  if (dtype == DType::kFloat16 && from == DType::kFloat64) value = RoundToOdd(value);
  const bool by_float = IsHalf(from) || (dtype == DType::kFloat16 && from != DType::kFloat32);
  if (by_float) value = MakeCast({DType::kFloat32, 1}, std::move(value));
  return MakeCast({dtype, 1}, std::move(value));
}

Expr Number(DType dtype, double value) { return ir::MakeConst({dtype, 1}, value); }

Expr Number(DType dtype, const Size& value) {
  return value.IsFixed() ? Number(dtype, static_cast<double>(value.value())) : To(dtype, Expr(value));
}

Expr Like(const Expr& x, double value) { return Number(x.type().dtype, value); }

Expr Apply(ir::Intrinsic function, Expr a) {
  const bool test = function == ir::Intrinsic::kIsNan || function == ir::Intrinsic::kIsInf;
  const ir::Type type = test ? ir::kBoolType : a.type();
  return MakeCall(type, function, {std::move(a)});
}

Expr Power(Expr a, Expr b) {
  const ir::Type type = a.type();
  return MakeCall(type, ir::Intrinsic::kPow, {std::move(a), std::move(b)});
}

// Below 1/4 the Taylor series 1 + x / 2! + x^2 / 3! ..., times x; its next term is below half a last bit of 1. From
// there on the difference keeps all digits but two bits.
Expr ExpMinusOne(const Expr& x) {
  const int terms = x.type().dtype == DType::kFloat64 ? 12 : 7;
  double factorial = 1;
  for (int k = 2; k <= terms; ++k) factorial *= k;
  Expr series = Like(x, 1 / factorial);
  for (int k = terms; k >= 2; --k) {
    factorial /= k;
    series = series * x + Like(x, 1 / factorial);
  }
  const Expr near = MakeUnary(ir::UnaryOp::kAbs, x) < Like(x, 0.25);
  return MakeSelect(near, series * x, Apply(ir::Intrinsic::kExp, x) - Like(x, 1));
}

// The rounded sum u is 1 + x - rest exactly, and log(1 + x) is log(u) + log(1 + rest / u): rest, because u is near 1
// where rest matters.
Expr LogOfOnePlus(const Expr& x) {
  const Expr one = Like(x, 1), u = x + one, rest = x - (u - one);
  return Apply(ir::Intrinsic::kLog, u) + rest;
}

Expr Negate(Expr a) { return MakeUnary(ir::UnaryOp::kNeg, std::move(a)); }
Expr Sqrt(Expr a) { return MakeUnary(ir::UnaryOp::kSqrt, std::move(a)); }
Expr Not(Expr a) { return MakeUnary(ir::UnaryOp::kNot, std::move(a)); }

namespace {

Expr ChooseFrom(const Expr& index, std::span<const Expr> values, int64_t first) {
  if (values.size() == 1) return values[0];
  const size_t half = values.size() / 2;
  const int64_t middle = first + static_cast<int64_t>(half);
  return MakeSelect(index < Expr(middle), ChooseFrom(index, values.first(half), first),
                    ChooseFrom(index, values.subspan(half), middle));
}

}  // namespace

Expr Choose(const Expr& index, std::span<const Expr> values) {
  HONE_CHECK(!values.empty());
  return ChooseFrom(index, values, 0);
}

Expr Table(const Expr& index, std::span<const int64_t> values) {
  return Choose(index, Exprs(values.begin(), values.end()));
}

// --- Reads.

Expr Read(const Buffer& buffer, Exprs indices) {
  return To(ComputeType(buffer->dtype), MakeLoad(buffer, std::move(indices)));
}

Expr ReadHere(const Buffer& buffer, Indices indices) { return Read(buffer, Exprs(indices.begin(), indices.end())); }

Expr ReadBroadcast(const Buffer& buffer, Indices indices) {
  Exprs own;
  const size_t skip = indices.size() - Rank(buffer);
  for (size_t d = 0; d < Rank(buffer); ++d) own.push_back(buffer->shape[d] == 1 ? Expr(0) : indices[skip + d]);
  return Read(buffer, std::move(own));
}

Expr ReadAs(DType dtype, const Buffer& buffer, Exprs indices) { return To(dtype, Read(buffer, std::move(indices))); }

Expr ReadScalar(const Buffer& buffer) { return Read(buffer, Exprs(Rank(buffer), Expr(0))); }

Expr ReadIndex(const Buffer& buffer, Exprs indices, const Size& extent) {
  return FloorMod(To(DType::kInt64, Read(buffer, std::move(indices))), Expr(extent));
}

// --- Stages.

Buffer Map(StageBuilder& builder, std::string_view hint, DType dtype, Shape shape, const StageBuilder::Body& value) {
  return builder.Compute(hint, dtype, std::move(shape), [&](Indices i) { return To(dtype, value(i)); });
}

Buffer MapInput(const OpArgs& args, StageBuilder& builder, const std::function<Expr(Expr)>& function) {
  const Buffer& x = args.inputs[0];
  return Map(builder, args.node.op, x->dtype, x->shape, [&](Indices i) { return function(ReadHere(x, i)); });
}

Buffer Reduce(StageBuilder& builder, std::string_view hint, DType dtype, Shape shape, Shape reduce_extents,
              ir::Reduction reduction, const StageBuilder::ReduceBody& value) {
  const DType wide = ComputeType(dtype);
  if (reduce_extents.empty()) {
    return Map(builder, hint, dtype, std::move(shape), [&](Indices i) { return value(i, {}); });
  }
  Buffer sum = builder.Reduce(hint, wide, shape, std::move(reduce_extents), reduction,
                              [&](Indices i, Indices r) { return To(wide, value(i, r)); });
  if (wide == dtype) return sum;
  return Map(builder, hint, dtype, shape, [&](Indices i) { return ReadHere(sum, i); });
}

Buffer ReduceOver(StageBuilder& builder, std::string_view hint, DType dtype, const Shape& shape, const Dims& axes,
                  bool keep, ir::Reduction reduction, const StageBuilder::Body& value) {
  Shape result, extents;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool reduced = Contains(axes, static_cast<int64_t>(d));
    if (reduced) extents.push_back(shape[d]);
    if (!reduced || keep) result.push_back(reduced ? Size(1) : shape[d]);
  }
  return Reduce(builder, hint, dtype, result, extents, reduction, [&](Indices i, Indices r) {
    Exprs full;
    size_t next = 0, next_reduced = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool reduced = Contains(axes, static_cast<int64_t>(d));
      full.push_back(reduced ? r[next_reduced++] : i[next]);
      if (!reduced || keep) ++next;
    }
    return value(full);
  });
}

Buffer PadWith(StageBuilder& builder, const Buffer& x, const Shape& before, const Shape& after, const Expr& fill) {
  Shape shape = x->shape;
  bool any = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    any = any || before[d] != 0 || after[d] != 0;
    shape[d] += before[d] + after[d];
  }
  if (!any) return x;
  return Map(builder, "pad", x->dtype, shape, [&](Indices i) {
    Exprs source(i.begin(), i.end());
    Expr inside;
    auto require = [&](Expr condition) { inside = inside.defined() ? inside && condition : condition; };
    for (size_t d = 0; d < shape.size(); ++d) {
      if (before[d] != 0) {
        source[d] = i[d] - Expr(before[d]);
        require(i[d] >= Expr(before[d]));
      }
      if (after[d] != 0) require(i[d] < Expr(before[d] + x->shape[d]));
    }
    return MakeSelect(inside, Read(x, std::move(source)), fill);
  });
}

// --- Shapes.

absl::StatusOr<int64_t> CheckedProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return Malformed(fmt::format("a size of {} times {} is too large; use smaller sizes", a, b));
}

absl::Status CheckNotNegative(const Shape& shape) {
  for (const Size& extent : shape) {
    if (extent.min() >= 0) continue;
    if (extent.IsFixed()) return Malformed(fmt::format("a dimension of {} is negative", extent));
    return Malformed(
        fmt::format("a dimension of {} may be negative, down to {}; let its range begin higher", extent, extent.min()));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> FixedSize(const Size& size, std::string_view what) {
  if (size.IsFixed()) return size.value();
  return Unsupported(fmt::format("{} is {}, an open size; give the model fixed shapes with --shape", what, size));
}

absl::StatusOr<Dims> FixedSizes(std::span<const Size> sizes, std::string_view what) {
  Dims numbers;
  for (const Size& size : sizes) {
    HONE_ASSIGN_OR_RETURN(const int64_t number, FixedSize(size, what));
    numbers.push_back(number);
  }
  return numbers;
}

int64_t Product(std::span<const int64_t> numbers) {
  int64_t product = 1;
  for (int64_t number : numbers) product *= number;
  return product;
}

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t k = 0; k < result.size(); ++k) {  // k counts from the last dimension
    const Size da = k < a.size() ? a[a.size() - 1 - k] : 1;
    const Size db = k < b.size() ? b[b.size() - 1 - k] : 1;
    if (da != db && da != 1 && db != 1) {
      return Malformed(fmt::format("shapes [{}] and [{}] cannot be broadcast", fmt::join(a, ","), fmt::join(b, ",")));
    }
    result[result.size() - 1 - k] = da == 1 ? db : da;
  }
  return result;
}

bool BroadcastsTo(const Shape& from, const Shape& to) {
  absl::StatusOr<Shape> result = BroadcastShapes(from, to);
  return result.ok() && *result == to;
}

absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, size_t rank) {
  const int64_t n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n) return Malformed(fmt::format("axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + n : axis;
}

absl::StatusOr<Dims> NormalizeAxes(const Dims& axes, size_t rank) {
  Dims result;
  for (int64_t axis : axes) {
    HONE_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
    result.push_back(axis);
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    return Malformed(fmt::format("axes [{}] name a dimension twice", fmt::join(axes, ",")));
  }
  return result;
}

absl::StatusOr<Dims> AxesFrom(const OpArgs& args, size_t input) {
  if (HasAttribute(args, "axes")) return args.Ints("axes", {});
  if (args.Has(input)) return args.ConstantInts(input);
  return Dims{};
}

bool Contains(const Dims& dims, int64_t value) { return std::find(dims.begin(), dims.end(), value) != dims.end(); }

Expr Flatten(Indices indices, const Shape& shape) {
  Expr position;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (shape[d] == 1) continue;
    position = position.defined() ? position * Expr(shape[d]) + indices[d] : indices[d];
  }
  return position.defined() ? position : Expr(0);
}

Exprs Unflatten(const Expr& position, const Shape& shape) {
  Exprs indices(shape.size(), Expr(0));
  Size stride = 1;
  size_t first = 0;  // the outermost dimension of extent over 1 needs no modulus
  while (first < shape.size() && shape[first] == 1) ++first;
  for (size_t k = shape.size(); k-- > 0;) {
    if (shape[k].max() <= 1) continue;
    Expr index = stride == 1 ? position : FloorDiv(position, Expr(stride));
    indices[k] = k == first ? index : FloorMod(index, Expr(shape[k]));
    stride *= shape[k];
  }
  return indices;
}

// --- The node.

bool IsOutputUsed(const OpArgs& args, size_t output) {
  return output < args.node.outputs.size() && args.node.outputs[output] != kAbsent;
}

namespace {

template <typename T>
T LoadAs(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

double ElementToDouble(DType dtype, const std::byte* data) {
  switch (dtype) {
    case DType::kBool:
      return LoadAs<uint8_t>(data) != 0;
    case DType::kInt8:
      return LoadAs<int8_t>(data);
    case DType::kInt16:
      return LoadAs<int16_t>(data);
    case DType::kInt32:
      return LoadAs<int32_t>(data);
    case DType::kInt64:
      return static_cast<double>(LoadAs<int64_t>(data));
    case DType::kUInt8:
      return LoadAs<uint8_t>(data);
    case DType::kUInt16:
      return LoadAs<uint16_t>(data);
    case DType::kUInt32:
      return LoadAs<uint32_t>(data);
    case DType::kUInt64:
      return static_cast<double>(LoadAs<uint64_t>(data));
    case DType::kFloat16:
      return FromHalfBits(LoadAs<uint16_t>(data));
    case DType::kBFloat16:
      return FromBFloatBits(LoadAs<uint16_t>(data));
    case DType::kFloat32:
      return LoadAs<float>(data);
    case DType::kFloat64:
      return LoadAs<double>(data);
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::vector<double>> ConstantNumbers(const OpArgs& args, size_t i) {
  if (!args.Has(i)) return Malformed(fmt::format("input {} is missing", i));
  if (i >= args.constants.size() || args.constants[i] == nullptr) {
    return Unsupported(OpArgs::NotConstantMessage(i));
  }
  const DType dtype = args.inputs[i]->dtype;
  const size_t size = static_cast<size_t>(ir::SizeOf(dtype));
  const size_t count = static_cast<size_t>(ir::NumElements(*args.inputs[i]));
  if (args.constants[i]->size() < count * size) {
    return Malformed(
        fmt::format("input {} holds {} bytes, but its shape needs {}", i, args.constants[i]->size(), count * size));
  }
  std::vector<double> numbers(count);
  for (size_t k = 0; k < count; ++k) numbers[k] = ElementToDouble(dtype, args.constants[i]->data() + k * size);
  return numbers;
}

absl::Status CheckConstantIndices(const OpArgs& args, size_t i, const Shape& extents) {
  const absl::StatusOr<std::vector<double>> indices = ConstantNumbers(args, i);
  if (!indices.ok()) return absl::OkStatus();
  for (size_t k = 0; k < indices->size(); ++k) {
    const Size& extent = extents[k % extents.size()];
    const double index = (*indices)[k], bound = static_cast<double>(extent.max());
    if (index < -bound || index >= bound) return Malformed(fmt::format("index {} is outside of {}", index, extent));
  }
  return absl::OkStatus();
}

Expr ConstantElement(const Constant& constant, size_t i) {
  const DType dtype = constant.type.dtype;
  const size_t size = static_cast<size_t>(ir::SizeOf(dtype));
  const std::byte* element = constant.data->data() + i * size;
  if (ir::IsFloat(dtype)) return Number(ComputeType(dtype), ElementToDouble(dtype, element));
  int64_t bits = 0;
  std::memcpy(&bits, element, size);
  return ir::MakeInt({dtype, 1}, bits);
}

bool HasAttribute(const OpArgs& args, std::string_view name) {
  return args.node.attributes.count(std::string(name)) > 0;
}

namespace {

bool IsOf(DType dtype, Elements elements) {
  switch (elements) {
    case Elements::kAny:
      return true;
    case Elements::kNumber:
      return dtype != DType::kBool;
    case Elements::kInteger:
      return ir::IsInt(dtype);
    case Elements::kFloat:
      return ir::IsFloat(dtype);
    case Elements::kBool:
      return dtype == DType::kBool;
  }
  return false;
}

std::string_view NameOf(Elements elements) {
  switch (elements) {
    case Elements::kAny:
      return "of any type";
    case Elements::kNumber:
      return "numbers";
    case Elements::kInteger:
      return "integers";
    case Elements::kFloat:
      return "floats";
    case Elements::kBool:
      return "bool";
  }
  return "";
}

}  // namespace

absl::Status CheckInputs(const OpArgs& args, size_t required, Elements elements) {
  for (size_t i = 0; i < required; ++i) {
    if (!args.Has(i)) return Malformed(fmt::format("input {} is missing; the operator needs {}", i, required));
  }
  if (required > 0 && !IsOf(args.inputs[0]->dtype, elements)) {
    return Malformed(
        fmt::format("input 0 is {}; its elements must be {}", ir::Name(args.inputs[0]->dtype), NameOf(elements)));
  }
  return absl::OkStatus();
}

absl::Status CheckSameTypes(const OpArgs& args) {
  for (size_t i = 1; i < args.inputs.size(); ++i) {
    if (args.Has(i) && args.inputs[i]->dtype != args.inputs[0]->dtype) {
      return Malformed(fmt::format("input {} is {}, but input 0 is {}; they must be of one type", i,
                                   ir::Name(args.inputs[i]->dtype), ir::Name(args.inputs[0]->dtype)));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::graph
