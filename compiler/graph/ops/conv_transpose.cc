// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/graph/ops/bias.h"
#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/window.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

// Transposed convolution, formulated per output element: the inputs and taps that contribute to it.
//
// Output o and tap k use input (o + pad - k * dilation) / stride if that division is exact. Without dilation, the
// contributing taps are k = phase + stride * t with phase = (o + pad) mod stride, and the input is (o + pad) / stride -
// t: a plain convolution per phase, over padded data and padded weights. With stride 1 every tap contributes. Both are
// sums of products of two loads, as schedules require; only stride and dilation together need a test of the division.
// The padding of the weights is never multiplied by data, only by 0, because an infinity would give NaN.

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

struct TransposedConv {
  Layout layout;
  Size batch;
  int64_t in_channels, out_channels, groups;
  Dims kernel, strides, dilations;
  Shape input, before, output;

  int64_t GroupIn() const { return in_channels / groups; }
  int64_t GroupOut() const { return out_channels / groups; }
};

// Pads and output shape: either determines the other.
absl::Status ReadExtents(const OpArgs& args, TransposedConv& conv) {
  const size_t rank = conv.kernel.size();
  HONE_ASSIGN_OR_RETURN(conv.strides, ReadSizes(args, "strides", rank, 1));
  HONE_ASSIGN_OR_RETURN(conv.dilations, ReadSizes(args, "dilations", rank, 1));
  HONE_ASSIGN_OR_RETURN(Dims extra, ReadSizes(args, "output_padding", rank, 0));
  HONE_ASSIGN_OR_RETURN(Dims pads, ReadSizes(args, "pads", 2 * rank, 0));
  const std::string auto_pad = args.String("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty()) {
    return Malformed(
        fmt::format("attribute auto_pad is '{}'; it must be NOTSET, VALID, SAME_UPPER or SAME_LOWER", auto_pad));
  }
  Dims wanted = args.Ints("output_shape", {});
  if (wanted.size() == conv.layout.rank) wanted.erase(wanted.begin(), wanted.begin() + 2);  // removes batch and channel
  if (!wanted.empty() && wanted.size() != rank) return Malformed("attribute output_shape does not fit the rank");
  for (size_t d = 0; d < rank; ++d) {
    if (conv.input[d].max() > kDimensionMax)
      return Malformed(
          fmt::format("spatial dimension {} is {}; it must be at most {}", d, conv.input[d], kDimensionMax));
    const int64_t reach = (conv.kernel[d] - 1) * conv.dilations[d] + 1;
    const Size full = conv.strides[d] * (conv.input[d] - 1) + extra[d] + reach;
    const int64_t before = auto_pad == "VALID" ? 0 : pads[d], after = auto_pad == "VALID" ? 0 : pads[rank + d];
    const Size output = !wanted.empty() ? Size(wanted[d])
                        : same          ? conv.input[d] * conv.strides[d]
                                        : full - before - after;
    if (output.min() < 0 || output.max() > kDimensionMax) {
      return Malformed(fmt::format("spatial dimension {} of the output would be {}; it must be from 0 to {}", d, output,
                                   kDimensionMax));
    }
    const Size total = Max(full - output, 0);
    const bool follows = wanted.empty() && !same;  // the output shape follows from the pads
    conv.before.push_back(follows ? Size(before) : auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2);
    conv.output.push_back(output);
  }
  return absl::OkStatus();
}

absl::StatusOr<TransposedConv> ReadTransposedConv(const OpArgs& args) {
  const Shape& x = args.inputs[0]->shape;
  const Shape& w = args.inputs[1]->shape;
  TransposedConv conv;
  HONE_ASSIGN_OR_RETURN(conv.layout, ReadLayout(args, 0));
  conv.groups = args.Int("group", 1);
  conv.batch = x[0];
  HONE_ASSIGN_OR_RETURN(conv.in_channels, FixedSize(x[conv.layout.channel()], "the number of channels"));
  if (w.size() != x.size() || w[0] != conv.in_channels || conv.groups < 1 || conv.in_channels % conv.groups != 0) {
    return Malformed(fmt::format("weights [{}] do not fit {} channels in {} groups", fmt::join(w, ","),
                                 conv.in_channels, conv.groups));
  }
  HONE_ASSIGN_OR_RETURN(const int64_t group_out, FixedSize(w[1], "the number of output channels"));
  HONE_ASSIGN_OR_RETURN(conv.out_channels, CheckedProduct(group_out, conv.groups));
  HONE_ASSIGN_OR_RETURN(conv.kernel, FixedSizes(std::span(w).subspan(2), "a size of the kernel"));
  if (args.Ints("kernel_shape", conv.kernel) != conv.kernel) {
    return Malformed("attribute kernel_shape differs from the shape of the weights");
  }
  for (int64_t size : conv.kernel) {
    if (size < 1 || size > kDimensionMax)
      return Malformed(fmt::format("the kernel has a size of {}; it must be from 1 to {}", size, kDimensionMax));
  }
  conv.input = conv.layout.SpaceOf(x);
  HONE_RETURN_IF_ERROR(ReadExtents(args, conv));
  return conv;
}

Exprs Places(const TransposedConv& conv, Indices i, const Expr& channel, const Exprs& space) {
  Expr source = channel;
  if (conv.groups > 1) {
    source = FloorDiv(i[conv.layout.channel()], Expr(conv.GroupOut())) * Expr(conv.GroupIn()) + channel;
  }
  return conv.layout.Place(i[0], source, space);
}

// The indices into w = [in channels, out channels per group, kernel...].
Exprs WeightPlace(const TransposedConv& conv, Indices i, const Expr& in_channel, const Exprs& taps) {
  const Expr& out_channel = i[conv.layout.channel()];
  Expr within = conv.groups > 1 ? FloorMod(out_channel, Expr(conv.GroupOut())) : out_channel;
  Exprs place = {in_channel, within};
  place.insert(place.end(), taps.begin(), taps.end());
  return place;
}

// One spatial dimension with stride or dilation 1: taps are phase + stride * t, or all; see the head of the file.
struct PhasedAxis {
  int64_t taps;            // number of taps to sum over
  int64_t step;            // input step per tap: 1, or the dilation (the stride is then 1)
  Size before, after;      // padding elements of the input
  int64_t weight_padding;  // padding elements of the weights
};

PhasedAxis PlanAxis(const TransposedConv& conv, size_t d) {
  const int64_t stride = conv.strides[d];
  const Size& pad = conv.before[d];
  PhasedAxis axis;
  axis.step = stride == 1 ? conv.dilations[d] : 1;
  axis.taps = (conv.kernel[d] + stride - 1) / stride;
  axis.weight_padding = axis.taps * stride - conv.kernel[d];
  const Size lowest = pad / stride - (axis.taps - 1) * axis.step;
  const Size highest = (conv.output[d] - 1 + pad) / stride;
  axis.before = Max(0 - lowest, 0);
  axis.after = Max(highest - (conv.input[d] - 1), 0);
  return axis;
}

Buffer EmitPhased(const OpArgs& args, StageBuilder& builder, const TransposedConv& conv) {
  const Layout& layout = conv.layout;
  const DType wide = ComputeType(args.inputs[0]->dtype);
  Shape before(layout.rank, 0), after(layout.rank, 0), none(layout.rank, 0), weight_after(layout.rank, 0);
  Shape extents = {conv.GroupIn()};
  std::vector<PhasedAxis> axes;
  for (size_t d = 0; d < conv.kernel.size(); ++d) {
    axes.push_back(PlanAxis(conv, d));
    before[layout.space() + d] = axes[d].before;
    after[layout.space() + d] = axes[d].after;
    weight_after[2 + d] = axes[d].weight_padding;
    extents.push_back(axes[d].taps);
  }
  Buffer x = PadWith(builder, args.inputs[0], before, after, Number(wide, 0));
  Buffer w = PadWith(builder, args.inputs[1], none, weight_after, Number(wide, 0));
  const Shape shape = layout.Assemble(conv.batch, conv.out_channels, conv.output);
  return builder.Reduce("conv_transpose", wide, shape, extents, Reduction::kSum, [&](Indices i, Indices r) {
    Exprs space, taps;
    Expr meets;  // undefined if every tap is inside the kernel
    for (size_t d = 0; d < axes.size(); ++d) {
      const Expr stride(conv.strides[d]);
      Expr position = i[layout.space() + d];
      if (conv.before[d] != 0) position = position + Expr(conv.before[d]);
      const bool plain = conv.strides[d] == 1;
      taps.push_back(plain ? r[1 + d] : FloorMod(position, stride) + stride * r[1 + d]);
      if (axes[d].weight_padding > 0) {
        Expr here = taps[d] < Expr(conv.kernel[d]);
        meets = meets.defined() ? meets && here : here;
      }
      Expr start = (plain ? position : FloorDiv(position, stride)) + Expr(axes[d].before);
      space.push_back(start - (axes[d].step == 1 ? r[1 + d] : r[1 + d] * Expr(axes[d].step)));
    }
    Exprs x_place = Places(conv, i, r[0], space);
    Expr in_channel = x_place[layout.channel()];
    Expr value = Read(x, std::move(x_place));
    if (meets.defined()) value = MakeSelect(meets, value, Number(wide, 0));
    return value * Read(w, WeightPlace(conv, i, in_channel, taps));
  });
}

Buffer EmitTested(const OpArgs& args, StageBuilder& builder, const TransposedConv& conv) {
  const Layout& layout = conv.layout;
  const DType wide = ComputeType(args.inputs[0]->dtype);
  Shape extents = conv.kernel;
  extents.insert(extents.begin(), conv.GroupIn());
  const Shape shape = layout.Assemble(conv.batch, conv.out_channels, conv.output);
  return builder.Reduce("conv_transpose", wide, shape, extents, Reduction::kSum, [&](Indices i, Indices r) {
    Exprs space, taps;
    Expr meets = ir::MakeBool(true);
    for (size_t d = 0; d < conv.kernel.size(); ++d) {
      const Expr stride(conv.strides[d]);
      Expr distance = i[layout.space() + d] + Expr(conv.before[d]) - r[1 + d] * Expr(conv.dilations[d]);
      Expr place = FloorDiv(distance, stride);
      Expr here = Equals(FloorMod(distance, stride), Expr(0)) && place >= Expr(0) && place < Expr(conv.input[d]);
      meets = d == 0 ? here : meets && here;
      space.push_back(place);
      taps.push_back(r[1 + d]);
    }
    Exprs x_place = Places(conv, i, r[0], space);
    Expr in_channel = x_place[layout.channel()];
    Expr product =
        Read(args.inputs[0], std::move(x_place)) * Read(args.inputs[1], WeightPlace(conv, i, in_channel, taps));
    return MakeSelect(meets, product, Number(wide, 0));
  });
}

OpResult ConvTranspose(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  HONE_ASSIGN_OR_RETURN(TransposedConv conv, ReadTransposedConv(args));
  HONE_RETURN_IF_ERROR(CheckBias(args, 2, conv.out_channels));
  bool phased = true;
  for (size_t d = 0; d < conv.kernel.size(); ++d) phased = phased && (conv.strides[d] == 1 || conv.dilations[d] == 1);
  Buffer sum = phased ? EmitPhased(args, builder, conv) : EmitTested(args, builder, conv);
  return AddBias(args, builder, sum, [&](Indices i) { return i[conv.layout.channel()]; });
}

// A transposed convolution in the form that the pass lower_conv_transpose makes, with channels last. The weights
// [stride..., taps..., in, out] are split by phase. Every spatial dimension of the output is two dimensions, [...,
// size, stride, ...]: output o has the indices o / stride and o mod stride. Each phase is a plain convolution without
// divisions in its sum.
OpResult PhasedConvTranspose(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  const Buffer& input = args.inputs[0];
  const Buffer& w = args.inputs[1];
  const size_t rank = Rank(input) - 2;
  const Dims pads = args.Ints("pads", {}), sizes = args.Ints("sizes", {});
  if (Rank(w) != 2 * rank + 2 || pads.size() != rank || sizes.size() != rank) {
    return Malformed("weights, pads and sizes must fit the rank of input 0");
  }
  Shape shape = {input->shape[0]}, before(rank + 2, 0), after(rank + 2, 0), extents = {input->shape.back()};
  for (size_t d = 0; d < rank; ++d) {
    const Size &stride = w->shape[d], &taps = w->shape[rank + d];
    shape.insert(shape.end(), {sizes[d], stride});
    extents.push_back(taps);
    before[1 + d] = Max(taps - 1 - pads[d] / stride, 0);
    after[1 + d] = Max(sizes[d] + (stride - 1 + pads[d]) / stride - input->shape[1 + d], 0);
  }
  shape.push_back(w->shape.back());
  const DType dtype = input->dtype;
  Buffer x = PadWith(builder, input, before, after, Number(ComputeType(dtype), 0));
  return Buffers{Reduce(builder, "conv_transpose", dtype, shape, extents, Reduction::kSum, [&](Indices i, Indices r) {
    Exprs x_place = {i[0]}, phase, taps;
    for (size_t d = 0; d < rank; ++d) {
      const Expr &position = i[1 + 2 * d], &p = i[2 + 2 * d];
      const Expr first = w->shape[d] == 1 ? Expr(pads[d]) : FloorDiv(p + Expr(pads[d]), Expr(w->shape[d]));
      x_place.push_back(position + first + Expr(before[1 + d]) - r[1 + d]);
      phase.push_back(p);
      taps.push_back(r[1 + d]);
    }
    x_place.push_back(r[0]);
    Exprs w_place = phase;
    w_place.insert(w_place.end(), taps.begin(), taps.end());
    w_place.insert(w_place.end(), {r[0], i[1 + 2 * rank]});
    return Read(x, std::move(x_place)) * Read(w, std::move(w_place));
  })};
}

// Sums the products that the pass lower_conv_transpose computes by a matrix product, [batch, space..., taps...,
// channels]. Element o * stride + phase of each dimension is the sum of the products whose input and tap contribute to
// it, plus the channel's bias (input 1, optional). As in PhasedConvTranspose, every spatial dimension of the output is
// two dimensions.
OpResult SumTaps(const OpArgs& args, StageBuilder& builder) {
  const Buffer& products = args.inputs[0];
  const Shape& from = products->shape;
  const size_t rank = Rank(products) / 2 - 1;
  const Dims pads = args.Ints("pads", {}), sizes = args.Ints("sizes", {}), strides = args.Ints("strides", {});
  if (Rank(products) != 2 * rank + 2 || pads.size() != rank || sizes.size() != rank || strides.size() != rank) {
    return Malformed("pads, sizes and strides must fit the rank of input 0");
  }
  HONE_ASSIGN_OR_RETURN(const Dims taps_of, FixedSizes(std::span(from).subspan(1 + rank, rank), "a number of taps"));
  Shape shape = {from[0]};
  Dims most;  // taps per phase
  for (size_t d = 0; d < rank; ++d) {
    shape.insert(shape.end(), {sizes[d], strides[d]});
    most.push_back((taps_of[d] + strides[d] - 1) / strides[d]);
  }
  shape.push_back(from.back());
  const DType dtype = products->dtype;
  HONE_RETURN_IF_ERROR(CheckBias(args, 1, from.back()));
  return Buffers{Map(builder, "sum_taps", dtype, shape, [&](Indices i) {
    Expr sum = args.Has(1) ? Read(args.inputs[1], {i[1 + 2 * rank]}) : Number(ComputeType(dtype), 0);
    for (int64_t tap = 0; tap < Product(most); ++tap) {
      Exprs place = {i[0]}, taps;
      Expr meets = ir::MakeBool(true);
      int64_t rest = tap;
      for (size_t d = rank; d-- > 0; rest /= most[d]) {
        const Expr at = i[2 + 2 * d] + Expr(pads[d]), t(rest % most[d]), stride(strides[d]);
        const Expr input = i[1 + 2 * d] + FloorDiv(at, stride) - t, k = FloorMod(at, stride) + stride * t;
        place.insert(place.begin() + 1, input);
        taps.insert(taps.begin(), k);
        meets = meets && input >= Expr(0) && input < Expr(from[1 + d]) && k < Expr(from[1 + rank + d]);
      }
      place.insert(place.end(), taps.begin(), taps.end());
      place.push_back(i[1 + 2 * rank]);
      sum = sum + MakeSelect(meets, Read(products, std::move(place)), Number(ComputeType(dtype), 0));
    }
    return sum;
  })};
}

constexpr OpDef kConvTransposeOps[] = {
    {"ConvTranspose", Checked<ConvTranspose, 2, Elements::kFloat>, {.axes = {AxisForm::kLayout}}},
};
constexpr OpDef kPhasedConvOps[] = {
    {"PhasedConvTranspose", Checked<PhasedConvTranspose, 2, Elements::kFloat>, {.label = {"conv_transpose"}}},
    {"SumTaps", Checked<SumTaps, 1, Elements::kFloat>},
};

}  // namespace

std::span<const OpDef> ConvTransposeOps() { return kConvTransposeOps; }
std::span<const OpDef> PhasedConvOps() { return kPhasedConvOps; }

}  // namespace hone::graph
