// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

Exprs Own(Indices i) { return Exprs(i.begin(), i.end()); }

// All dimensions from `first` on.
Dims AxesAfter(const Buffer& x, size_t first) {
  Dims axes(Rank(x) - first);
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(first));
  return axes;
}

// The dimension of the channels: the last one with attribute layout="NHWC", which the layout pass sets.
size_t ChannelDimension(const OpArgs& args) {
  return args.String("layout", "NCHW") == "NHWC" ? Rank(args.inputs[0]) - 1 : 1;
}

// The number of channels; 1 for a batch without a channel dimension.
Size CountChannels(const OpArgs& args) {
  return Rank(args.inputs[0]) < 2 ? Size(1) : args.inputs[0]->shape[ChannelDimension(args)];
}

// All dimensions except batch and channels.
Dims SpaceAxes(const Buffer& x, size_t channel) {
  if (Rank(x) < 2) return {};
  Dims axes = AxesAfter(x, 1);
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(channel) - 1);
  return axes;
}

Size Count(const Buffer& x, const Dims& axes) {
  Size count = 1;
  for (int64_t axis : axes) count *= x->shape[static_cast<size_t>(axis)];
  return count;
}

// Mean and population variance over the axes, dimensions kept. The mean is shift + rest. `shift` is one element of the
// data: near it x - shift is exact, so that sums of it lose nothing to a mean that is large beside the deviation. An
// element takes no pass over the data, as a first mean would, and the middle one is no border of an image and no first
// token.
struct Moments {
  Buffer shift, rest, variance;
};

// The distance of element x from the mean, at the full indices i.
Expr Center(const Moments& moments, const Expr& x, Indices i) {
  return x - ReadBroadcast(moments.shift, i) - ReadBroadcast(moments.rest, i);
}

// The middle element along the axes; 0 if there is no element.
Buffer EmitShift(StageBuilder& builder, const Buffer& x, const Dims& axes, DType work) {
  Shape shape = x->shape;
  for (int64_t axis : axes) shape[static_cast<size_t>(axis)] = 1;
  return Map(builder, "shift", work, std::move(shape), [&](Indices i) {
    Exprs middle = Own(i);
    Expr has_elements;  // undefined: it has
    for (int64_t axis : axes) {
      const Size& extent = x->shape[static_cast<size_t>(axis)];
      if (extent == 0) return Number(work, 0);
      middle[static_cast<size_t>(axis)] = Expr(extent / 2);
      if (AlwaysLess(0, extent)) continue;
      const Expr has_some = Expr(0) < Expr(extent);
      has_elements = has_elements.defined() ? has_elements && has_some : has_some;
    }
    const Expr value = ReadAs(work, x, std::move(middle));
    return has_elements.defined() ? MakeSelect(has_elements, value, Number(work, 0)) : value;
  });
}

Moments EmitMoments(StageBuilder& builder, const Buffer& x, const Dims& axes, DType work) {
  const Size count = Count(x, axes);
  auto read = [&](Indices i) { return ReadAs(work, x, Own(i)); };
  auto average = [&](std::string_view hint, const Buffer& sum) {
    return Map(builder, hint, work, sum->shape, [&](Indices i) { return ReadHere(sum, i) / Number(work, count); });
  };
  Moments moments;
  moments.shift = EmitShift(builder, x, axes, work);
  moments.rest = average("rest", ReduceOver(builder, "sum", work, x->shape, axes, true, Reduction::kSum,
                                            [&](Indices i) { return read(i) - ReadBroadcast(moments.shift, i); }));
  moments.variance =
      average("variance", ReduceOver(builder, "squares", work, x->shape, axes, true, Reduction::kSum, [&](Indices i) {
                const Expr distance = Center(moments, read(i), i);
                return distance * distance;
              }));
  return moments;
}

// The mean as one number.
Buffer EmitMean(StageBuilder& builder, const Moments& moments) {
  return Map(builder, "mean", moments.shift->dtype, moments.shift->shape,
             [&](Indices i) { return ReadHere(moments.shift, i) + ReadHere(moments.rest, i); });
}

Buffer EmitInverseDeviation(StageBuilder& builder, const Buffer& variance, double epsilon) {
  const DType work = variance->dtype;
  return Map(builder, "inverse_deviation", work, variance->shape,
             [&](Indices i) { return Number(work, 1) / Sqrt(ReadHere(variance, i) + Number(work, epsilon)); });
}

// (x - mean) / deviation as (x - shift) * inverse + offset, so that the second part of the mean costs nothing per
// element.
class Normalizer {
 public:
  Normalizer(StageBuilder& builder, const Moments& moments, double epsilon)
      : shift_(moments.shift), inverse_(EmitInverseDeviation(builder, moments.variance, epsilon)) {
    offset_ = Map(builder, "offset", inverse_->dtype, inverse_->shape,
                  [&](Indices i) { return Negate(ReadHere(moments.rest, i) * ReadHere(inverse_, i)); });
  }
  // The value for element x at the full indices i.
  Expr Apply(const Expr& x, Indices i) const {
    return (x - ReadBroadcast(shift_, i)) * ReadBroadcast(inverse_, i) + ReadBroadcast(offset_, i);
  }
  const Buffer& inverse() const { return inverse_; }

 private:
  Buffer shift_, inverse_, offset_;
};

absl::Status CheckPerChannel(const OpArgs& args, size_t first, size_t last) {
  if (Rank(args.inputs[0]) == 0) return Malformed("input 0 has no dimension for the batch");
  const Size channels = CountChannels(args);
  for (size_t i = first; i <= last; ++i) {
    if (args.inputs[i]->shape != Shape{channels}) {
      return Malformed(fmt::format("input {} must have one number per channel ({})", i, channels));
    }
  }
  return absl::OkStatus();
}

// y = x * factor[c] + offset[c]: both are computed once per channel.
Buffer EmitChannelScale(StageBuilder& builder, const OpArgs& args, const Buffer& mean, const Buffer& variance,
                        double epsilon) {
  const Buffer& x = args.inputs[0];
  const DType wide = ComputeType(x->dtype);
  const size_t channel = ChannelDimension(args);
  const Shape per_channel = {CountChannels(args)};
  Buffer factor = Map(builder, "factor", wide, per_channel, [&](Indices i) {
    return ReadAs(wide, args.inputs[1], Own(i)) / Sqrt(ReadAs(wide, variance, Own(i)) + Number(wide, epsilon));
  });
  Buffer offset = Map(builder, "offset", wide, per_channel, [&](Indices i) {
    return ReadAs(wide, args.inputs[2], Own(i)) - ReadAs(wide, mean, Own(i)) * ReadHere(factor, i);
  });
  return Map(builder, "batch_norm", x->dtype, x->shape, [&](Indices i) {
    const Expr own = Rank(x) < 2 ? Expr(0) : i[channel];
    return ReadHere(x, i) * Read(factor, {own}) + Read(offset, {own});
  });
}

OpResult BatchNormalization(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckPerChannel(args, 1, 4));
  const Buffer& x = args.inputs[0];
  const DType wide = ComputeType(x->dtype);
  const double epsilon = args.Float("epsilon", 1e-5), momentum = args.Float("momentum", 0.9);
  if (args.Int("training_mode", 0) == 0) {
    return Buffers{EmitChannelScale(builder, args, args.inputs[3], args.inputs[4], epsilon)};
  }
  const size_t channel = ChannelDimension(args);
  Dims axes = SpaceAxes(x, channel);
  axes.insert(axes.begin(), 0);
  const Moments moments = EmitMoments(builder, x, axes, wide);
  auto per_channel = [&](std::string_view hint, const Buffer& kept, const Buffer& running) {
    return Map(builder, hint, running->dtype, {CountChannels(args)}, [&](Indices i) {
      Exprs source(Rank(x), Expr(0));
      if (Rank(x) > 1) source[channel] = i[0];
      Expr value = Read(kept, std::move(source));
      return ReadAs(wide, running, Own(i)) * Number(wide, momentum) + value * Number(wide, 1 - momentum);
    });
  };
  const Normalizer normalizer(builder, moments, epsilon);
  Buffers outputs = {Map(builder, "batch_norm", x->dtype, x->shape, [&](Indices i) {
    const Expr own = Rank(x) < 2 ? Expr(0) : i[channel];
    return normalizer.Apply(ReadHere(x, i), i) * ReadAs(wide, args.inputs[1], {own}) +
           ReadAs(wide, args.inputs[2], {own});
  })};
  if (IsOutputUsed(args, 1) || IsOutputUsed(args, 2)) {
    outputs.push_back(per_channel("running_mean", EmitMean(builder, moments), args.inputs[3]));
    outputs.push_back(per_channel("running_variance", moments.variance, args.inputs[4]));
  }
  return outputs;
}

OpResult InstanceNormalization(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  if (Rank(x) < 2) return Malformed("input 0 must have at least the dimensions batch and channel");
  HONE_RETURN_IF_ERROR(CheckPerChannel(args, 1, 2));
  const DType wide = ComputeType(x->dtype);
  const size_t channel = ChannelDimension(args);
  const Moments moments = EmitMoments(builder, x, SpaceAxes(x, channel), wide);
  const Normalizer normalizer(builder, moments, args.Float("epsilon", 1e-5));
  return Buffers{Map(builder, "instance_norm", x->dtype, x->shape, [&](Indices i) {
    return normalizer.Apply(ReadHere(x, i), i) * ReadAs(wide, args.inputs[1], {i[channel]}) +
           ReadAs(wide, args.inputs[2], {i[channel]});
  })};
}

absl::Status CheckScale(const OpArgs& args, size_t input) {
  if (args.Has(input) && !BroadcastsTo(args.inputs[input]->shape, args.inputs[0]->shape)) {
    return Malformed(fmt::format("input {} does not broadcast to input 0", input));
  }
  return absl::OkStatus();
}

OpResult LayerNormalization(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckScale(args, 1));
  HONE_RETURN_IF_ERROR(CheckScale(args, 2));
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", -1), Rank(x)));
  const DType wide = ComputeType(x->dtype);
  const Moments moments = EmitMoments(builder, x, AxesAfter(x, static_cast<size_t>(axis)), wide);
  const Normalizer normalizer(builder, moments, args.Float("epsilon", 1e-5));
  Buffer y = Map(builder, "layer_norm", x->dtype, x->shape, [&](Indices i) {
    Expr value = normalizer.Apply(ReadHere(x, i), i);
    value = value * To(wide, ReadBroadcast(args.inputs[1], i));
    return args.Has(2) ? value + To(wide, ReadBroadcast(args.inputs[2], i)) : value;
  });
  HONE_ASSIGN_OR_RETURN(const DType stash, FromOnnxType(args.Int("stash_type", 1)));
  if (!ir::IsFloat(stash))
    return Malformed(fmt::format("attribute stash_type is {}; it must be a float type", ir::Name(stash)));
  const auto stashed = [&](size_t output, const Buffer& statistic) {
    if (stash == wide || !IsOutputUsed(args, output)) return statistic;
    return Map(builder, "stash", stash, statistic->shape, [&](Indices i) { return ReadHere(statistic, i); });
  };
  return Buffers{y, stashed(1, EmitMean(builder, moments)), stashed(2, normalizer.inverse())};
}

OpResult RMSNormalization(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckScale(args, 1));
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", -1), Rank(x)));
  const DType wide = ComputeType(x->dtype);
  const Dims axes = AxesAfter(x, static_cast<size_t>(axis));
  Buffer squares = ReduceOver(builder, "squares", wide, x->shape, axes, true, Reduction::kSum,
                              [&](Indices i) { return ReadHere(x, i) * ReadHere(x, i); });
  Buffer mean = Map(builder, "mean_square", wide, squares->shape,
                    [&](Indices i) { return ReadHere(squares, i) / Number(wide, Count(x, axes)); });
  Buffer inverse = EmitInverseDeviation(builder, mean, args.Float("epsilon", 1e-5));
  return Buffers{Map(builder, "rms_norm", args.inputs[1]->dtype, x->shape, [&](Indices i) {
    return ReadHere(x, i) * ReadBroadcast(inverse, i) * To(wide, ReadBroadcast(args.inputs[1], i));
  })};
}

// Scale and bias are per group before opset 21 and per channel since; their shapes tell which.
OpResult GroupNormalization(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  const int64_t groups = args.Int("num_groups", 0);
  if (Rank(x) < 2 || groups < 1 || !Divides(groups, x->shape[1])) {
    return Malformed(fmt::format("attribute num_groups is {}; it must divide the channels", groups));
  }
  const Size size = x->shape[1] / groups;
  for (size_t i : {1, 2}) {
    if (args.inputs[i]->shape != Shape{groups} && args.inputs[i]->shape != Shape{x->shape[1]}) {
      return Malformed(fmt::format("input {} must have one number per group or per channel", i));
    }
  }
  const DType wide = ComputeType(x->dtype);
  Shape grouped = x->shape;  // [batch, group, channel of the group, ...]
  grouped[1] = size;
  grouped.insert(grouped.begin() + 1, groups);
  Buffer split = Map(builder, "grouped", wide, grouped, [&](Indices i) {
    Exprs source(i.begin(), i.end());
    source[2] = i[1] * Expr(size) + i[2];
    source.erase(source.begin() + 1);
    return Read(x, std::move(source));
  });
  const Moments moments = EmitMoments(builder, split, AxesAfter(split, 2), wide);
  const Normalizer normalizer(builder, moments, args.Float("epsilon", 1e-5));
  return Buffers{Map(builder, "group_norm", x->dtype, x->shape, [&](Indices i) {
    Expr group = FloorDiv(i[1], Expr(size));
    Exprs statistic(Rank(split), Expr(0));
    statistic[0] = i[0];
    statistic[1] = group;
    auto parameter = [&](size_t k) {
      return ReadAs(wide, args.inputs[k], {args.inputs[k]->shape[0] == groups && groups != x->shape[1] ? group : i[1]});
    };
    return normalizer.Apply(ReadHere(x, i), statistic) * parameter(1) + parameter(2);
  })};
}

OpResult MeanVarianceNormalization(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(Dims axes, NormalizeAxes(args.Ints("axes", {0, 2, 3}), Rank(x)));
  const DType wide = ComputeType(x->dtype);
  const Moments moments = EmitMoments(builder, x, axes, wide);
  return Buffers{Map(builder, "mvn", x->dtype, x->shape, [&](Indices i) {
    return Center(moments, ReadHere(x, i), i) / (Sqrt(ReadBroadcast(moments.variance, i)) + Number(wide, 1e-9));
  })};
}

OpResult LpNormalization(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", -1), Rank(x)));
  const int64_t p = args.Int("p", 2);
  if (p != 1 && p != 2) return Malformed(fmt::format("attribute p is {}; it must be 1 or 2", p));
  const DType wide = ComputeType(x->dtype);
  Buffer sum = ReduceOver(builder, "sum", wide, x->shape, {axis}, true, Reduction::kSum, [&](Indices i) {
    Expr value = ReadHere(x, i);
    return p == 1 ? MakeUnary(ir::UnaryOp::kAbs, value) : value * value;
  });
  return Buffers{Map(builder, "lp_norm", x->dtype, x->shape, [&](Indices i) {
    Expr norm = p == 1 ? ReadBroadcast(sum, i) : Sqrt(ReadBroadcast(sum, i));
    return MakeSelect(Equals(norm, Number(wide, 0)), Number(wide, 0), ReadHere(x, i) / norm);
  })};
}

OpResult LRN(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  const int64_t size = args.Int("size", 0);
  if (size < 1 || size > kDimensionMax)
    return Malformed(fmt::format("attribute size is {}; it must be from 1 to {}", size, kDimensionMax));
  if (Rank(x) < 2) return Malformed("input 0 must have at least the dimensions batch and channel");
  const double alpha = args.Float("alpha", 1e-4), beta = args.Float("beta", 0.75), bias = args.Float("bias", 1.0);
  const DType wide = ComputeType(x->dtype);
  const size_t channel = ChannelDimension(args);
  Shape before(Rank(x), 0), after(Rank(x), 0);
  before[channel] = (size - 1) / 2;
  after[channel] = size - 1 - before[channel];
  Buffer padded = PadWith(builder, x, before, after, Number(wide, 0));
  Buffer sum = Reduce(builder, "squares", wide, x->shape, {size}, Reduction::kSum, [&](Indices i, Indices r) {
    Exprs source(i.begin(), i.end());
    source[channel] = i[channel] + r[0];
    Expr value = Read(padded, std::move(source));
    return value * value;
  });
  return Buffers{Map(builder, "lrn", x->dtype, x->shape, [&](Indices i) {
    Expr base = Number(wide, bias) + Number(wide, alpha / static_cast<double>(size)) * ReadHere(sum, i);
    return ReadHere(x, i) / Power(base, Number(wide, beta));
  })};
}

// The range for random test data: the variance is not negative.
void VarianceRange(const OpArgs&, size_t input, double* low, double* high) {
  if (input != 4) return;
  *low = 0.1;
  *high = 1;
}

constexpr OpDef kNormOps[] = {
    {"BatchNormalization",
     Checked<BatchNormalization, 5, Elements::kFloat>,
     {.axes = {AxisForm::kLayout}},
     VarianceRange},
    {"GroupNormalization", Checked<GroupNormalization, 3, Elements::kFloat>, {.label = {"group_norm"}}},
    {"InstanceNormalization",
     Checked<InstanceNormalization, 3, Elements::kFloat>,
     {.axes = {AxisForm::kLayout}, .label = {"instance_norm"}}},
    {"LRN", Checked<LRN, 1, Elements::kFloat>, {.axes = {AxisForm::kLayout}}},
    {"LayerNormalization", Checked<LayerNormalization, 2, Elements::kFloat>, {.label = {"layer_norm"}}},
    {"LpNormalization", Checked<LpNormalization, 1, Elements::kFloat>},
    {"MeanVarianceNormalization", Checked<MeanVarianceNormalization, 1, Elements::kFloat>},
    {"RMSNormalization", Checked<RMSNormalization, 2, Elements::kFloat>},
};

}  // namespace

std::span<const OpDef> NormOps() { return kNormOps; }

}  // namespace hone::graph
