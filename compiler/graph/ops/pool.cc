// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/window.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

struct Pool {
  Layout layout;
  Window window;
  Shape shape;  // of the output

  // The indices in the padded input of tap r of the window for output i.
  Exprs Place(Indices i, Indices r) const {
    Exprs space = TapPlace(window, i.subspan(layout.space(), layout.spatial()), r);
    return layout.Place(i[0], i[layout.channel()], space);
  }
};

absl::StatusOr<Pool> ReadPool(const OpArgs& args) {
  const Buffer& x = args.inputs[0];
  Pool pool;
  HONE_ASSIGN_OR_RETURN(pool.layout, ReadLayout(args, 0));
  if (!HasAttribute(args, "kernel_shape")) return Malformed("attribute kernel_shape is missing");
  HONE_ASSIGN_OR_RETURN(pool.window, ReadWindow(args, pool.layout.SpaceOf(x->shape), args.Ints("kernel_shape", {})));
  pool.shape = pool.layout.Assemble(x->shape[0], x->shape[pool.layout.channel()], pool.window.output);
  return pool;
}

// --- MaxPool

// A condition that is true if an index of the padded input is not padding; undefined if no window reaches the padding.
Expr IsInput(const Pool& pool, Indices place) {
  const Window& window = pool.window;
  const Dims reach = window.Reach();
  Expr inside;
  auto require = [&](Expr condition) { inside = inside.defined() ? inside && condition : condition; };
  for (size_t d = 0; d < reach.size(); ++d) {
    const Expr& at = place[pool.layout.space() + d];
    const Size end = window.before[d] + window.input[d];
    if (window.before[d] != 0) require(at >= Expr(window.before[d]));
    if (!AlwaysAtMost((window.output[d] - 1) * window.strides[d] + reach[d], end)) require(at < Expr(end));
  }
  return inside;
}

// The position in the whole tensor of each window's first maximum, or of its first NaN. Padding is as small as the
// smallest elements, so it is excluded explicitly.
Buffer EmitMaxPositions(const OpArgs& args, StageBuilder& builder, const Pool& pool, const Buffer& padded,
                        const Buffer& maxima) {
  const Window& window = pool.window;
  const bool column_major = args.Int("storage_order", 0) != 0;
  Buffer first =
      builder.Reduce("tap", DType::kInt64, pool.shape, window.kernel, Reduction::kMin, [&](Indices i, Indices r) {
        const Exprs place = pool.Place(i, r);
        const Expr value = ReadHere(padded, place), inside = IsInput(pool, place);
        Expr found = Equals(value, ReadHere(maxima, i));
        if (ir::IsFloat(value.type().dtype)) found = found || Apply(ir::Intrinsic::kIsNan, value);
        if (inside.defined()) found = inside && found;
        return MakeSelect(found, Flatten(r, window.kernel), Expr(window.taps() - 1));
      });
  return builder.Compute("position", DType::kInt64, pool.shape, [&](Indices i) {
    Exprs tap = Unflatten(ReadHere(first, i), window.kernel);
    Exprs place = pool.Place(i, tap);
    Shape extents = args.inputs[0]->shape;
    for (size_t d = 0; d < window.kernel.size(); ++d) {
      Expr& position = place[pool.layout.space() + d];
      position = position - Expr(window.before[d]);
    }
    if (column_major) {
      auto space = place.begin() + static_cast<std::ptrdiff_t>(pool.layout.space());
      auto extent = extents.begin() + static_cast<std::ptrdiff_t>(pool.layout.space());
      std::reverse(space, space + static_cast<std::ptrdiff_t>(pool.layout.spatial()));
      std::reverse(extent, extent + static_cast<std::ptrdiff_t>(pool.layout.spatial()));
    }
    return Flatten(place, extents);
  });
}

OpResult MaxPool(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(Pool pool, ReadPool(args));
  const Buffer& x = args.inputs[0];
  const DType wide = ComputeType(x->dtype);
  Expr lowest = ir::Identity(Reduction::kMax, {wide, 1});
  Buffer padded = PadForWindow(builder, x, pool.layout, pool.window, lowest);
  Buffer maxima = Reduce(builder, "max_pool", x->dtype, pool.shape, pool.window.kernel, Reduction::kMax,
                         [&](Indices i, Indices r) { return Read(padded, pool.Place(i, r)); });
  Buffers outputs = {maxima};
  if (IsOutputUsed(args, 1)) {
    if (pool.layout.channels_last) return Unsupported("output Indices is not supported with layout NHWC");
    outputs.push_back(EmitMaxPositions(args, builder, pool, padded, maxima));
  }
  return outputs;
}

// --- AveragePool and LpPool

// The number of taps of a window starting at `start` (in the unpadded input) that lie in [low, high), along one
// dimension.
Expr CountTaps(const Window& window, size_t d, const Expr& start, const Size& low, const Size& high) {
  const Expr dilation(window.dilations[d]);
  Expr first = Max(FloorDiv(Expr(low) - start + dilation - Expr(1), dilation), Expr(0));
  Expr last = Min(FloorDiv(Expr(high) - start + dilation - Expr(1), dilation), Expr(window.kernel[d]));
  return Max(last - first, Expr(0));
}

// The number of elements that a window averages: those in the input, or those in the input and its padding.
Expr CountUnder(const Pool& pool, Indices i, bool include_pad, DType dtype) {
  const Window& window = pool.window;
  const Dims reach = window.Reach();
  int64_t constant = 1;
  Expr count;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const Size low = include_pad ? 0 - window.before[d] : Size(0);
    const Size high = window.input[d] + (include_pad ? window.after[d] : Size(0));
    const Size last = (window.output[d] - 1) * window.strides[d] - window.before[d] + reach[d];
    if (low + window.before[d] == 0 && AlwaysAtMost(last, high)) {
      constant *= window.kernel[d];  // no window leaves [low, high)
      continue;
    }
    Expr start = i[pool.layout.space() + d] * Expr(window.strides[d]) - Expr(window.before[d]);
    Expr taps = CountTaps(window, d, start, low, high);
    count = count.defined() ? count * taps : taps;
  }
  if (!count.defined()) return Number(dtype, static_cast<double>(constant));
  return To(dtype, constant == 1 ? count : count * Expr(constant));
}

OpResult AveragePool(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(Pool pool, ReadPool(args));
  const Buffer& x = args.inputs[0];
  const DType wide = ComputeType(x->dtype);
  const bool include_pad = args.Int("count_include_pad", 0) != 0;
  Buffer padded = PadForWindow(builder, x, pool.layout, pool.window, Number(wide, 0));
  Buffer sum = builder.Reduce("pool_sum", wide, pool.shape, pool.window.kernel, Reduction::kSum,
                              [&](Indices i, Indices r) { return Read(padded, pool.Place(i, r)); });
  return Buffers{Map(builder, "average_pool", x->dtype, pool.shape,
                     [&](Indices i) { return ReadHere(sum, i) / CountUnder(pool, i, include_pad, wide); })};
}

Expr AbsolutePower(const Expr& x, double p) {
  Expr magnitude = MakeUnary(ir::UnaryOp::kAbs, x);
  if (p == 1) return magnitude;
  if (p == 2) return x * x;
  return Power(magnitude, Number(x.type().dtype, p));
}

Expr Root(const Expr& x, double p) {
  if (p == 1) return x;
  if (p == 2) return Sqrt(x);
  return Power(x, Number(x.type().dtype, 1 / p));
}

absl::StatusOr<double> ReadP(const OpArgs& args) {
  const double p = IsAttribute<double>(args, "p") ? args.Float("p", 2) : static_cast<double>(args.Int("p", 2));
  if (!(p > 0)) return Malformed(fmt::format("attribute p is {}; it must be positive", p));
  return p;
}

OpResult LpPool(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(Pool pool, ReadPool(args));
  HONE_ASSIGN_OR_RETURN(double p, ReadP(args));
  const Buffer& x = args.inputs[0];
  const DType wide = ComputeType(x->dtype);
  Buffer padded = PadForWindow(builder, x, pool.layout, pool.window, Number(wide, 0));
  Buffer sum = builder.Reduce("pool_sum", wide, pool.shape, pool.window.kernel, Reduction::kSum,
                              [&](Indices i, Indices r) { return AbsolutePower(Read(padded, pool.Place(i, r)), p); });
  return Buffers{Map(builder, "lp_pool", x->dtype, pool.shape, [&](Indices i) { return Root(ReadHere(sum, i), p); })};
}

// --- Global pools

struct GlobalPool {
  Dims axes;  // the spatial axes
  Size count;
};

absl::StatusOr<GlobalPool> ReadGlobalPool(const OpArgs& args) {
  HONE_ASSIGN_OR_RETURN(Layout layout, ReadLayout(args, 0));
  GlobalPool pool{Dims(layout.spatial()), 1};
  std::iota(pool.axes.begin(), pool.axes.end(), static_cast<int64_t>(layout.space()));
  pool.count = Product(layout.SpaceOf(args.inputs[0]->shape));
  return pool;
}

OpResult GlobalMaxPool(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(GlobalPool pool, ReadGlobalPool(args));
  const Buffer& x = args.inputs[0];
  return Buffers{ReduceOver(builder, "global_max", x->dtype, x->shape, pool.axes, true, Reduction::kMax,
                            [&](Indices i) { return ReadHere(x, i); })};
}

// after(sum of before(x)) over the spatial axes, dimensions kept.
Buffer EmitGlobalSum(const OpArgs& args, StageBuilder& builder, const GlobalPool& pool,
                     const std::function<Expr(Expr)>& before, const std::function<Expr(Expr)>& after) {
  const Buffer& x = args.inputs[0];
  Buffer sum = ReduceOver(builder, "global_sum", ComputeType(x->dtype), x->shape, pool.axes, true, Reduction::kSum,
                          [&](Indices i) { return before(ReadHere(x, i)); });
  return Map(builder, "global_pool", x->dtype, sum->shape, [&](Indices i) { return after(ReadHere(sum, i)); });
}

OpResult GlobalAveragePool(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(GlobalPool pool, ReadGlobalPool(args));
  return Buffers{EmitGlobalSum(
      args, builder, pool, [](Expr x) { return x; },
      [&](Expr sum) { return sum / Number(sum.type().dtype, pool.count); })};
}

OpResult GlobalLpPool(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(GlobalPool pool, ReadGlobalPool(args));
  HONE_ASSIGN_OR_RETURN(double p, ReadP(args));
  return Buffers{EmitGlobalSum(
      args, builder, pool, [&](Expr x) { return AbsolutePower(x, p); }, [&](Expr sum) { return Root(sum, p); })};
}

// --- MaxUnpool: every output element looks for the input of its plane whose index points to it. Overlapping windows
// may have the same maximum, so an index may occur several times; the last input counts.

OpResult MaxUnpool(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  const Buffer& positions = args.inputs[1];
  HONE_ASSIGN_OR_RETURN(Layout layout, ReadLayout(args, 0));
  if (layout.channels_last) return Unsupported("layout NHWC is not supported");
  if (positions->shape != x->shape || !ir::IsInt(positions->dtype)) {
    return Malformed("the indices (input 1) must be integers of the shape of input 0");
  }
  const size_t rank = layout.spatial();
  if (!HasAttribute(args, "kernel_shape")) return Malformed("attribute kernel_shape is missing");
  HONE_ASSIGN_OR_RETURN(const Dims kernel, ReadSizes(args, "kernel_shape", rank, 1));
  HONE_ASSIGN_OR_RETURN(const Dims strides, ReadSizes(args, "strides", rank, 1));
  HONE_ASSIGN_OR_RETURN(const Dims pads, ReadSizes(args, "pads", 2 * rank, 0));
  const Shape space = layout.SpaceOf(x->shape);
  Shape pooled = {x->shape[0], x->shape[1]};  // the tensor whose elements the indices count
  for (size_t d = 0; d < rank; ++d) {
    if (space[d].max() > kDimensionMax)
      return Malformed(fmt::format("spatial dimension {} is {}; it must be at most {}", d, space[d], kDimensionMax));
    pooled.push_back((space[d] - 1) * strides[d] + kernel[d] - pads[d] - pads[rank + d]);
    if (pooled.back().min() < 1) return Malformed("the pads remove all elements of the output");
  }
  Shape shape = pooled;
  if (args.Has(2)) {
    HONE_ASSIGN_OR_RETURN(shape, args.ConstantInts(2));
    HONE_RETURN_IF_ERROR(CheckNotNegative(shape));
    if (shape.size() != pooled.size() || shape[0] != pooled[0] || shape[1] != pooled[1]) {
      return Malformed("the output shape (input 2) must have the rank, the batch and the channels of input 0");
    }
  }
  const DType wide = ComputeType(x->dtype), narrow = NarrowestIndex(Product(space));
  const Buffer last = builder.Reduce("last", narrow, shape, space, Reduction::kMax, [&](Indices i, Indices r) {
    Exprs source = layout.Place(i[0], i[1], r);
    Expr inside = ir::MakeBool(true);
    for (size_t d = 2; d < shape.size(); ++d) {
      if (!AlwaysAtMost(shape[d], pooled[d])) inside = inside && i[d] < Expr(pooled[d]);
    }
    Expr here = Equals(To(DType::kInt64, Read(positions, source)), Flatten(i, pooled));
    return MakeSelect(inside && here, To(narrow, Flatten(r, space)), Number(narrow, -1));
  });
  return Buffers{Map(builder, "unpool", x->dtype, shape, [&](Indices i) {
    const Expr position = To(DType::kInt64, ReadHere(last, i));
    const Exprs place = Unflatten(position, space);
    return MakeSelect(position < Expr(0), Number(wide, 0), Read(x, layout.Place(i[0], i[1], place)));
  })};
}

void PositionRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input != 1) return;
  *low = 0;
  *high = static_cast<double>(std::max<int64_t>(ir::NumElements(*args.inputs[0]) - 1, 0));
}

constexpr OpDef kPoolOps[] = {
    {"AveragePool", Checked<AveragePool, 1, Elements::kFloat>, {.axes = {AxisForm::kLayout}, .label = {"pool"}}},
    {"GlobalAveragePool",
     Checked<GlobalAveragePool, 1, Elements::kFloat>,
     {.axes = {AxisForm::kLayout}, .label = {"global_pool"}}},
    {"GlobalLpPool", Checked<GlobalLpPool, 1, Elements::kFloat>, {.label = {"global_pool"}}},
    {"GlobalMaxPool",
     Checked<GlobalMaxPool, 1, Elements::kFloat>,
     {.axes = {AxisForm::kLayout}, .label = {"global_pool"}}},
    {"LpPool", Checked<LpPool, 1, Elements::kFloat>, {.label = {"pool"}}},
    {"MaxPool", Checked<MaxPool, 1, Elements::kNumber>, {.axes = {AxisForm::kLayout}, .label = {"pool"}}},
    {"MaxUnpool", Checked<MaxUnpool, 2, Elements::kFloat>, {}, PositionRange},
};

}  // namespace

std::span<const OpDef> PoolOps() { return kPoolOps; }

}  // namespace hone::graph
