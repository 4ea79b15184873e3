// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/graph/graph_edit.h"
#include "compiler/graph/ops/bias.h"
#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/quantize.h"
#include "compiler/graph/ops/window.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

// A convolution of x with w = [out channels, in channels per group, kernel...].
struct Convolution {
  Layout layout;
  Window window;
  Size batch;
  int64_t in_channels, out_channels, groups;

  int64_t GroupIn() const { return in_channels / groups; }
  int64_t GroupOut() const { return out_channels / groups; }
  bool Depthwise() const { return groups > 1 && GroupIn() == 1 && GroupOut() == 1; }
  Shape OutputShape() const { return layout.Assemble(batch, out_channels, window.output); }
};

absl::StatusOr<Convolution> ReadConvolution(const OpArgs& args, size_t x_input, size_t w_input) {
  const Shape& x = args.inputs[x_input]->shape;
  const Shape& w = args.inputs[w_input]->shape;
  Convolution conv;
  HONE_ASSIGN_OR_RETURN(conv.layout, ReadLayout(args, x_input));
  if (w.size() != x.size())
    return Malformed(fmt::format("the weights have rank {}, but the data has rank {}", w.size(), x.size()));
  conv.batch = x[0];
  HONE_ASSIGN_OR_RETURN(conv.in_channels, FixedSize(x[conv.layout.channel()], "the number of channels"));
  HONE_ASSIGN_OR_RETURN(conv.out_channels, FixedSize(w[0], "the number of output channels"));
  conv.groups = args.Int("group", 1);
  if (conv.groups < 1 || conv.out_channels % conv.groups != 0 || conv.in_channels % conv.groups != 0 ||
      conv.GroupIn() != w[1]) {
    return Malformed(fmt::format("{} channels do not fit weights [{}, {}, ...] in {} groups", conv.in_channels, w[0],
                                 w[1], conv.groups));
  }
  HONE_ASSIGN_OR_RETURN(const Dims kernel, FixedSizes(std::span(w).subspan(2), "a size of the kernel"));
  if (args.Ints("kernel_shape", kernel) != kernel)
    return Malformed("attribute kernel_shape differs from the shape of the weights");
  HONE_ASSIGN_OR_RETURN(conv.window, ReadWindow(args, conv.layout.SpaceOf(x), kernel));
  return conv;
}

using Multiply = std::function<Expr(Exprs x_place, Exprs w_place)>;

// The sums of products over the group's channels and the taps. If every channel is a group of its own, the sum runs
// over the taps only and the channel is indexed directly.
Buffer EmitSums(StageBuilder& builder, const Convolution& conv, DType dtype, const Multiply& product) {
  const Layout& layout = conv.layout;
  const bool depthwise = conv.Depthwise();
  Shape extents = conv.window.kernel;
  if (!depthwise) extents.insert(extents.begin(), conv.GroupIn());
  return builder.Reduce("conv", dtype, conv.OutputShape(), extents, Reduction::kSum, [&](Indices i, Indices r) {
    Indices taps = depthwise ? r : r.subspan(1);
    const Expr& out_channel = i[layout.channel()];
    Expr channel = depthwise ? out_channel : r[0];
    if (!depthwise && conv.groups > 1) {
      channel = FloorDiv(out_channel, Expr(conv.GroupOut())) * Expr(conv.GroupIn()) + r[0];
    }
    Exprs w_place = {out_channel, depthwise ? Expr(0) : r[0]};
    w_place.insert(w_place.end(), taps.begin(), taps.end());
    Exprs space = TapPlace(conv.window, i.subspan(layout.space(), layout.spatial()), taps);
    return product(layout.Place(i[0], channel, space), std::move(w_place));
  });
}

OpResult Conv(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  HONE_ASSIGN_OR_RETURN(Convolution conv, ReadConvolution(args, 0, 1));
  HONE_RETURN_IF_ERROR(CheckBias(args, 2, conv.out_channels));
  const DType dtype = args.inputs[0]->dtype, wide = ComputeType(dtype);
  Buffer x = PadForWindow(builder, args.inputs[0], conv.layout, conv.window, Number(wide, 0));
  Buffer sum = EmitSums(builder, conv, wide, [&](Exprs x_place, Exprs w_place) {
    return Read(x, std::move(x_place)) * Read(args.inputs[1], std::move(w_place));
  });
  return AddBias(args, builder, sum, [&](Indices i) { return i[conv.layout.channel()]; });
}

// A grouped convolution in the form that the pass lower_grouped_conv makes: weights [groups, out, in, kernel...], and
// two output dimensions [groups, out] instead of channels, so that no index needs a division.
OpResult GroupedConv(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  HONE_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(args, 0));
  const Shape& x = args.inputs[0]->shape;
  const Shape& w = args.inputs[1]->shape;
  if (w.size() != x.size() + 1 || x[layout.channel()] != w[0] * w[2]) {
    return Malformed("weights [groups, out, in, kernel...] must fit the channels of input 0");
  }
  HONE_ASSIGN_OR_RETURN(const Dims kernel, FixedSizes(std::span(w).subspan(3), "a size of the kernel"));
  HONE_ASSIGN_OR_RETURN(const Window window, ReadWindow(args, layout.SpaceOf(x), kernel));
  HONE_RETURN_IF_ERROR(CheckBias(args, 2, w[0] * w[1]));
  const DType wide = ComputeType(args.inputs[0]->dtype);
  const Buffer padded = PadForWindow(builder, args.inputs[0], layout, window, Number(wide, 0));
  const size_t group = layout.channel(), space = layout.channels_last ? layout.space() : layout.space() + 1;
  Shape shape = layout.Assemble(x[0], w[0], window.output), extents = window.kernel;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(group) + 1, w[1]);
  extents.insert(extents.begin(), w[2]);
  const Buffer sum = builder.Reduce("conv", wide, shape, extents, Reduction::kSum, [&](Indices i, Indices r) {
    const Exprs taps = TapPlace(window, i.subspan(space, layout.spatial()), r.subspan(1));
    Exprs w_place = {i[group], i[group + 1]};
    w_place.insert(w_place.end(), r.begin(), r.end());
    return Read(padded, layout.Place(i[0], i[group] * Expr(w[2]) + r[0], taps)) *
           Read(args.inputs[1], std::move(w_place));
  });
  return AddBias(args, builder, sum, [&](Indices i) { return i[group] * Expr(w[1]) + i[group + 1]; });
}

// Input indices of the operands of a quantized convolution. An absent zero point is 0.
struct QuantizedInputs {
  size_t x, w, x_zero_point, w_zero_point;
};

// Convolution sums of 8-bit integers as i32, each operand minus its zero point. Padding represents 0, so it is filled
// with the zero point.
absl::StatusOr<Buffer> EmitQuantizedSums(const OpArgs& args, StageBuilder& builder, const Convolution& conv,
                                         const QuantizedInputs& inputs) {
  HONE_RETURN_IF_ERROR(CheckQuantizedOperands(args, inputs.x, inputs.w, inputs.x_zero_point, inputs.w_zero_point));
  const DType i32 = DType::kInt32;
  const bool x_offset = HasOffset(args, inputs.x_zero_point), w_offset = HasOffset(args, inputs.w_zero_point);
  if (args.Has(inputs.x_zero_point)) HONE_RETURN_IF_ERROR(CheckScalar(args, inputs.x_zero_point));
  bool per_channel = false;
  if (w_offset && Product(args.inputs[inputs.w_zero_point]->shape) != 1) {
    HONE_RETURN_IF_ERROR(CheckBias(args, inputs.w_zero_point, conv.out_channels));
    per_channel = true;
  }
  const Buffer& data = args.inputs[inputs.x];
  Expr fill = x_offset ? ReadScalar(args.inputs[inputs.x_zero_point]) : Number(data->dtype, 0);
  Buffer x = PadForWindow(builder, data, conv.layout, conv.window, fill);
  return EmitSums(builder, conv, i32, [&](Exprs x_place, Exprs w_place) {
    Exprs channel = {w_place[0]};
    Expr left = ReadAs(i32, x, std::move(x_place));
    Expr right = ReadAs(i32, args.inputs[inputs.w], std::move(w_place));
    if (x_offset) left = left - To(i32, ReadScalar(args.inputs[inputs.x_zero_point]));
    if (per_channel) {
      right = right - ReadAs(i32, args.inputs[inputs.w_zero_point], std::move(channel));
    } else if (w_offset) {
      right = right - To(i32, ReadScalar(args.inputs[inputs.w_zero_point]));
    }
    return left * right;
  });
}

OpResult ConvInteger(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(Convolution conv, ReadConvolution(args, 0, 1));
  HONE_ASSIGN_OR_RETURN(Buffer sum, EmitQuantizedSums(args, builder, conv, {0, 1, 2, 3}));
  return Buffers{sum};
}

// Inputs: x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, bias (i32).
OpResult QLinearConv(const OpArgs& args, StageBuilder& builder) {
  for (size_t i : {1, 6, 7}) HONE_RETURN_IF_ERROR(CheckScalar(args, i));
  HONE_ASSIGN_OR_RETURN(Convolution conv, ReadConvolution(args, 0, 3));
  HONE_RETURN_IF_ERROR(CheckBias(args, 8, conv.out_channels));
  if (Product(args.inputs[4]->shape) != 1) HONE_RETURN_IF_ERROR(CheckBias(args, 4, conv.out_channels));
  const DType out = args.inputs[7]->dtype;
  if (out != DType::kInt8 && out != DType::kUInt8) return Malformed("the zero point of y (input 7) must be 8-bit");
  HONE_ASSIGN_OR_RETURN(Buffer sum, EmitQuantizedSums(args, builder, conv, {0, 3, 2, 5}));
  return Buffers{builder.Compute("requantize", out, sum->shape, [&](Indices i) {
    const Requantization inputs{.a_scale = 1, .b_scale = 4, .y_scale = 6, .y_zero_point = 7};
    const Expr& channel = i[conv.layout.channel()];
    Expr value = ReadHere(sum, i);
    if (args.Has(8)) value = value + ReadAs(DType::kInt32, args.inputs[8], {channel});
    return Requantize(args, inputs, value, channel);
  })};
}

std::string GroupedLabel(const Graph& graph, const Node& node) {
  return fmt::format("grouped_conv{}d", graph.values[node.inputs[0]].type.shape.size() - 2);
}

// "conv2d", "depthwise_conv1d", "grouped_conv3d".
std::string ConvLabel(const Graph& graph, const Node& node) {
  const Shape& weights = graph.values[node.inputs[1]].type.shape;
  const int64_t group = IntAttribute(node, "group", 1);
  const std::string kind = group > 1 && weights[1] == 1 ? "depthwise_conv" : group > 1 ? "grouped_conv" : "conv";
  return fmt::format("{}{}d", kind, weights.size() - 2);
}

constexpr OpDef kConvOps[] = {
    {"Conv", Checked<Conv, 2, Elements::kFloat>, {.axes = {AxisForm::kLayout}, .label = {.of = ConvLabel}}},
    {"ConvInteger", Checked<ConvInteger, 2, Elements::kInteger>, {.axes = {AxisForm::kLayout}}, QuantizedRange},
    {"QLinearConv",
     Checked<QLinearConv, 8, Elements::kInteger>,
     {.axes = {AxisForm::kLayout}, .floats_differ = true},
     QuantizedRange},
};
constexpr OpDef kGroupedConvOps[] = {
    {"GroupedConv", Checked<GroupedConv, 2, Elements::kFloat>, {.label = {.of = GroupedLabel}}},
};

}  // namespace

std::span<const OpDef> ConvOps() { return kConvOps; }
std::span<const OpDef> GroupedConvOps() { return kGroupedConvOps; }

}  // namespace hone::graph
