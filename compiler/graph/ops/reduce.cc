// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <numeric>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/softmax.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;
using ir::Reduction;

using ElementFunction = std::function<Expr(Expr)>;

struct ReduceAxes {
  Dims axes;  // sorted
  bool keep;
  Size count;  // number of elements reduced to one result
};

absl::StatusOr<ReduceAxes> ReadAxes(const OpArgs& args) {
  const Shape& shape = args.inputs[0]->shape;
  HONE_ASSIGN_OR_RETURN(Dims axes, AxesFrom(args, 1));
  if (axes.empty() && args.Int("noop_with_empty_axes", 0) == 0) {
    axes.resize(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  HONE_ASSIGN_OR_RETURN(axes, NormalizeAxes(axes, shape.size()));
  ReduceAxes result{axes, args.Int("keepdims", 1) != 0, 1};
  for (int64_t axis : result.axes) result.count *= shape[static_cast<size_t>(axis)];
  return result;
}

// Appends after(reduction(before(x))), computed in type `work` and stored in x's type. A null function is the identity.
Buffer EmitReduce(const OpArgs& args, StageBuilder& builder, const ReduceAxes& over, DType work, Reduction reduction,
                  const ElementFunction& before, const ElementFunction& after) {
  const Buffer& x = args.inputs[0];
  Buffer reduced = ReduceOver(builder, args.node.op, work, x->shape, over.axes, over.keep, reduction, [&](Indices i) {
    Expr value = ReadAs(work, x, Exprs(i.begin(), i.end()));
    return before ? before(value) : value;
  });
  if (work == x->dtype && !after) return reduced;
  return Map(builder, "finish", x->dtype, reduced->shape, [&](Indices i) {
    Expr value = ReadHere(reduced, i);
    return after ? after(value) : value;
  });
}

// The type in which float functions of integers are computed.
DType FloatType(DType dtype) { return ir::IsFloat(dtype) ? ComputeType(dtype) : DType::kFloat64; }

Expr Square(Expr x) { return x * x; }
Expr LogOf(Expr x) { return Apply(Intrinsic::kLog, std::move(x)); }

Expr Magnitude(Expr x) { return ir::IsUnsignedInt(x.type().dtype) ? x : MakeUnary(ir::UnaryOp::kAbs, std::move(x)); }

OpResult ReduceSimple(const OpArgs& args, StageBuilder& builder, Reduction reduction, const ElementFunction& before) {
  HONE_ASSIGN_OR_RETURN(ReduceAxes over, ReadAxes(args));
  const DType dtype = args.inputs[0]->dtype;
  return Buffers{EmitReduce(args, builder, over, ComputeType(dtype), reduction, before, nullptr)};
}

OpResult ReduceSum(const OpArgs& args, StageBuilder& builder) {
  return ReduceSimple(args, builder, Reduction::kSum, nullptr);
}

OpResult ReduceProd(const OpArgs& args, StageBuilder& builder) {
  return ReduceSimple(args, builder, Reduction::kProd, nullptr);
}

OpResult ReduceL1(const OpArgs& args, StageBuilder& builder) {
  return ReduceSimple(args, builder, Reduction::kSum, Magnitude);
}

OpResult ReduceSumSquare(const OpArgs& args, StageBuilder& builder) {
  return ReduceSimple(args, builder, Reduction::kSum, Square);
}

// Converts bool (allowed since opset 20) to 0 and 1.
template <Reduction reduction>
OpResult ReduceExtreme(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(ReduceAxes over, ReadAxes(args));
  const DType dtype = args.inputs[0]->dtype;
  const DType work = dtype == DType::kBool ? DType::kUInt8 : ComputeType(dtype);
  return Buffers{EmitReduce(args, builder, over, work, reduction, nullptr, nullptr)};
}

// The mean of 64-bit integers, exact and truncated towards 0, although their sum may take more than 64 bits. Upper and
// lower halves are summed apart; carry * 2^32 + low is the sum of all. The division goes by halves as well.
OpResult EmitLongMean(const OpArgs& args, StageBuilder& builder, const ReduceAxes& over) {
  constexpr int64_t kCountMax = int64_t{1} << 31, kHalf = 32, kLowHalf = 0xffffffff;
  if (over.count.max() > kCountMax) {
    return Unsupported(
        fmt::format("a mean of {} 64-bit integers is not supported; at most {} are", over.count, kCountMax));
  }
  const DType dtype = args.inputs[0]->dtype;
  const auto integer = [&](int64_t value) { return ir::MakeInt({dtype, 1}, value); };
  const auto lower = [&](Expr x) { return MakeBinary(ir::BinaryOp::kAnd, std::move(x), integer(kLowHalf)); };
  const auto upper = [&](Expr x) { return MakeBinary(ir::BinaryOp::kShr, std::move(x), integer(kHalf)); };
  const Expr count = To(dtype, Expr(over.count));
  const Buffer high = EmitReduce(args, builder, over, dtype, Reduction::kSum, upper, nullptr);
  const Buffer low = EmitReduce(args, builder, over, dtype, Reduction::kSum, lower, nullptr);
  const auto map = [&](std::string_view hint, const StageBuilder::Body& value) {
    return Map(builder, hint, dtype, low->shape, value);
  };
  const Buffer carry = map("carry", [&](Indices i) { return ReadHere(high, i) + upper(ReadHere(low, i)); });
  const Buffer top = map("top", [&](Indices i) { return FloorDiv(ReadHere(carry, i), count); });
  const Buffer rest = map("rest", [&](Indices i) {
    const Expr left = ReadHere(carry, i) - ReadHere(top, i) * count;  // from 0 to count - 1
    return MakeBinary(ir::BinaryOp::kShl, left, integer(kHalf)) + lower(ReadHere(low, i));
  });
  return Buffers{map("mean", [&](Indices i) {
    const Expr bottom = ReadHere(rest, i) / count;
    const Expr floor = MakeBinary(ir::BinaryOp::kShl, ReadHere(top, i), integer(kHalf)) + bottom;
    if (ir::IsUnsignedInt(dtype)) return floor;
    const Expr inexact = Not(Equals(bottom * count, ReadHere(rest, i)));
    return MakeSelect(ReadHere(top, i) < integer(0) && inexact, floor + integer(1), floor);
  })};
}

// Integers are summed in 64 bits, which no sum of narrower ones exceeds, and the quotient is truncated.
OpResult ReduceMean(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(ReduceAxes over, ReadAxes(args));
  const DType dtype = args.inputs[0]->dtype;
  if (ir::IsInt(dtype) && ir::SizeOf(dtype) == 8) return EmitLongMean(args, builder, over);
  const DType work = ir::IsInt(dtype) ? DType::kInt64 : ComputeType(dtype);
  auto divide = [&](Expr sum) { return sum / Number(work, over.count); };
  return Buffers{EmitReduce(args, builder, over, work, Reduction::kSum, nullptr, divide)};
}

OpResult ReduceL2(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(ReduceAxes over, ReadAxes(args));
  const DType work = FloatType(args.inputs[0]->dtype);
  return Buffers{EmitReduce(args, builder, over, work, Reduction::kSum, Square, Sqrt)};
}

OpResult ReduceLogSum(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(ReduceAxes over, ReadAxes(args));
  const DType work = FloatType(args.inputs[0]->dtype);
  return Buffers{EmitReduce(args, builder, over, work, Reduction::kSum, nullptr, LogOf)};
}

// log(sum(exp(x - max))) + max: exp cannot overflow.
OpResult ReduceLogSumExp(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(ReduceAxes over, ReadAxes(args));
  const Buffer& x = args.inputs[0];
  const DType work = FloatType(x->dtype);
  auto read = [&](Indices i) { return ReadAs(work, x, Exprs(i.begin(), i.end())); };
  Buffer top = ReduceOver(builder, "max", work, x->shape, over.axes, true, Reduction::kMax, read);
  Buffer log_sum = EmitLogOfExpSum(builder, read, top, x->shape, over.axes);
  Shape shape;
  for (size_t d = 0; d < Rank(x); ++d) {
    if (over.keep || !Contains(over.axes, static_cast<int64_t>(d))) shape.push_back(top->shape[d]);
  }
  return Buffers{Map(builder, "logsumexp", x->dtype, std::move(shape), [&](Indices i) {
    Exprs full;
    size_t next = 0;
    for (size_t d = 0; d < Rank(x); ++d) {
      const bool reduced = Contains(over.axes, static_cast<int64_t>(d));
      full.push_back(reduced ? Expr(0) : i[next]);
      if (!reduced || over.keep) ++next;
    }
    const Expr maximum = Read(top, full);  // if infinite, it is the result
    return MakeSelect(Apply(Intrinsic::kIsInf, maximum), maximum, Read(log_sum, full) + maximum);
  })};
}

// First finds the extreme (NaN if there is one), then the first (or last) position with this value.
template <Reduction reduction>
OpResult ArgExtreme(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", 0), Rank(x)));
  const size_t a = static_cast<size_t>(axis);
  const Size extent = x->shape[a];
  if (extent == 0) return Malformed("the dimension to search is 0");
  const bool keep = args.Int("keepdims", 1) != 0;
  const bool last = args.Int("select_last_index", 0) != 0;
  auto read = [&](Indices i) { return ReadHere(x, i); };
  Buffer extreme = ReduceOver(builder, "extreme", ComputeType(x->dtype), x->shape, {axis}, true, reduction, read);
  // Positions are searched in 32 bits, of which a vector holds twice as many.
  const DType work = extent.max() <= std::numeric_limits<int32_t>::max() ? DType::kInt32 : DType::kInt64;
  const Expr none = To(work, Expr(last ? Size(0) : extent - 1));
  const Buffer position = ReduceOver(builder, "position", work, x->shape, {axis}, keep,
                                     last ? Reduction::kMax : Reduction::kMin, [&](Indices i) {
                                       Expr value = read(i);
                                       Expr found = Equals(value, ReadBroadcast(extreme, i));
                                       if (ir::IsFloat(value.type().dtype))
                                         found = found || Apply(Intrinsic::kIsNan, value);
                                       return MakeSelect(found, To(work, i[a]), none);
                                     });
  if (work == DType::kInt64) return Buffers{position};
  return Buffers{Map(builder, "finish", DType::kInt64, position->shape,
                     [&](Indices i) { return To(DType::kInt64, ReadHere(position, i)); })};
}

// The sums or products of the elements up to each one along the axis.
template <Reduction reduction>
OpResult Cumulative(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(Dims axes, args.ConstantInts(1));
  if (axes.size() != 1) return Malformed("the axis (input 1) must be one number");
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(axes[0], Rank(x)));
  const size_t a = static_cast<size_t>(axis);
  const bool exclusive = args.Int("exclusive", 0) != 0, reverse = args.Int("reverse", 0) != 0;
  const Expr neutral = ir::Identity(reduction, {ComputeType(x->dtype), 1});
  return Buffers{Reduce(builder, "cumulative", x->dtype, x->shape, {x->shape[a]}, reduction, [&](Indices i, Indices r) {
    Exprs source(i.begin(), i.end());
    source[a] = r[0];
    Expr first = reverse ? i[a] : r[0], second = reverse ? r[0] : i[a];
    return MakeSelect(exclusive ? first < second : first <= second, Read(x, std::move(source)), neutral);
  })};
}

void PositiveInput(const OpArgs&, size_t, double* low, double* high) {
  *low = 0.01;
  *high = 1;
}

constexpr OpFacts kReduction = {.axes = {AxisForm::kAxes}, .label = {"reduce"}};

constexpr OpDef kReduceOps[] = {
    {"ArgMax", Checked<ArgExtreme<Reduction::kMax>, 1, Elements::kNumber>},
    {"ArgMin", Checked<ArgExtreme<Reduction::kMin>, 1, Elements::kNumber>},
    {"CumProd", Checked<Cumulative<Reduction::kProd>, 2, Elements::kNumber>},
    {"CumSum", Checked<Cumulative<Reduction::kSum>, 2, Elements::kNumber>},
    {"ReduceL1", Checked<ReduceL1, 1, Elements::kNumber>, kReduction},
    {"ReduceL2", Checked<ReduceL2, 1, Elements::kNumber>, kReduction},
    {"ReduceLogSum", Checked<ReduceLogSum, 1, Elements::kNumber>, kReduction, PositiveInput},
    {"ReduceLogSumExp", Checked<ReduceLogSumExp, 1, Elements::kNumber>, kReduction},
    {"ReduceMax", Checked<ReduceExtreme<Reduction::kMax>, 1>, kReduction},
    {"ReduceMean", Checked<ReduceMean, 1, Elements::kNumber>, kReduction},
    {"ReduceMin", Checked<ReduceExtreme<Reduction::kMin>, 1>, kReduction},
    {"ReduceProd", Checked<ReduceProd, 1, Elements::kNumber>, kReduction},
    {"ReduceSum", Checked<ReduceSum, 1, Elements::kNumber>, kReduction},
    {"ReduceSumSquare", Checked<ReduceSumSquare, 1, Elements::kNumber>, kReduction},
};

}  // namespace

std::span<const OpDef> ReduceOps() { return kReduceOps; }

}  // namespace hone::graph
