// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/status.h"
#include "tests/bench/operators/library_ways.h"

namespace hone::models {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using Dims = memory::dims;
using Arguments = std::unordered_map<int, memory>;

constexpr auto kF32 = memory::data_type::f32;
constexpr auto kInference = prop_kind::forward_inference;

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// Strides of a row-major tensor.
Dims StridesOf(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

memory::desc Plain(const Dims& dims) { return {dims, kF32, StridesOf(dims)}; }
memory::desc Any(const Dims& dims) { return {dims, kF32, memory::format_tag::any}; }

// Channels in blocks as wide as a vector, the layout for which the library's pooling is written.
memory::desc Blocked(const Dims& dims) {
  using Tag = memory::format_tag;
  const bool wide = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
  const Tag tags[3][2] = {{Tag::nCw8c, Tag::nCw16c}, {Tag::nChw8c, Tag::nChw16c}, {Tag::nCdhw8c, Tag::nCdhw16c}};
  return {dims, kF32, tags[dims.size() - 3][wide ? 1 : 0]};
}

memory Reordered(memory from, const memory::desc& layout) {
  if (from.get_desc() == layout) return from;
  memory to(layout, Engine());
  dnnl::stream stream(Engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  return to;
}

// Copies the values into the library's memory in `layout`. as: the layout of the values.
memory Packed(const std::vector<float>& values, const memory::desc& as, const memory::desc& layout) {
  memory copy(as, Engine());
  std::copy(values.begin(), values.end(), static_cast<float*>(copy.get_data_handle()));
  return Reordered(copy, layout);
}

// A computation: a primitive, the layouts that it was made for, and its arguments other than input and output.
struct Kernel {
  dnnl::primitive primitive;
  memory::desc x, y;
  Arguments constants;
};

// The layout of input and output: the model's, or the library's preferred one.
enum class Layout { kModel, kOwn };

struct Windows {
  explicit Windows(const OnnxOperator& op) : kernel(op.Ints("kernel_shape", {})) {
    const size_t rank = kernel.size();
    strides = op.Ints("strides", Dims(rank, 1));
    const Dims pads = op.Ints("pads", Dims(2 * rank, 0));
    before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
    after.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
    for (const int64_t d : op.Ints("dilations", Dims(rank, 1))) dilates.push_back(d - 1);
  }
  Dims Outputs(const Dims& x, int64_t channels) const {
    Dims y = {x[0], channels};
    for (size_t d = 0; d < kernel.size(); ++d) {
      const int64_t span = (kernel[d] - 1) * (dilates[d] + 1) + 1;
      y.push_back((x[d + 2] + before[d] + after[d] - span) / strides[d] + 1);
    }
    return y;
  }
  Dims TransposedOutputs(const Dims& x, int64_t channels) const {
    Dims y = {x[0], channels};
    for (size_t d = 0; d < kernel.size(); ++d) {
      const int64_t span = (kernel[d] - 1) * (dilates[d] + 1) + 1;
      y.push_back((x[d + 2] - 1) * strides[d] + span - before[d] - after[d]);
    }
    return y;
  }
  Dims kernel, strides, before, after, dilates;  // dilates: as the library counts, 0 for none
};

// Dimensions of the weights; several groups become a dimension of their own.
Dims Grouped(int64_t groups, int64_t out, int64_t in, const Dims& kernel) {
  Dims dims = {out / groups, in / groups};
  if (groups > 1) dims.insert(dims.begin(), groups);
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  return dims;
}

// ONNX has the input channels of a transposed convolution as the outer dimension.
memory::desc TransposedWeights(int64_t groups, const Dims& dims) {
  const auto rank = static_cast<std::ptrdiff_t>(dims.size()), first = groups > 1 ? std::ptrdiff_t{1} : 0;
  Dims given = dims;
  std::swap(given[static_cast<size_t>(first)], given[static_cast<size_t>(first) + 1]);
  Dims strides = StridesOf(given);
  if (rank > first + 1) std::swap(strides[static_cast<size_t>(first)], strides[static_cast<size_t>(first) + 1]);
  return {dims, kF32, strides};
}

template <typename Forward>
Kernel WithWeights(const typename Forward::desc& description, const OnnxOperator& op, const memory::desc& weights) {
  const typename Forward::primitive_desc pd(description, Engine());
  Kernel kernel{Forward(pd), pd.src_desc(), pd.dst_desc(), {}};
  const memory::desc bias = Plain({static_cast<int64_t>(op.constants[1].values.size())});
  kernel.constants = {{DNNL_ARG_WEIGHTS, Packed(op.constants[0].values, weights, pd.weights_desc())},
                      {DNNL_ARG_BIAS, Packed(op.constants[1].values, bias, bias)}};
  return kernel;
}

std::optional<Kernel> Convolution(const OnnxOperator& op, Layout layout) {
  const auto place = layout == Layout::kModel ? Plain : Any;
  const Windows w(op);
  const int64_t groups = op.Int("group", 1), in = op.shape[1], out = op.constants[1].shape[0];
  const Dims weights = Grouped(groups, out, in, w.kernel);
  if (op.node.op_type() == "Conv") {
    using Forward = dnnl::convolution_forward;
    const Forward::desc d(kInference, algorithm::convolution_auto, place(op.shape), Any(weights), Plain({out}),
                          place(w.Outputs(op.shape, out)), w.strides, w.dilates, w.before, w.after);
    return WithWeights<Forward>(d, op, Plain(weights));
  }
  using Forward = dnnl::deconvolution_forward;
  const Forward::desc d(kInference, algorithm::deconvolution_direct, place(op.shape), Any(weights), Plain({out}),
                        place(w.TransposedOutputs(op.shape, out)), w.strides, w.dilates, w.before, w.after);
  return WithWeights<Forward>(d, op, TransposedWeights(groups, weights));
}

std::optional<Kernel> Pooling(const OnnxOperator& op, Layout layout) {
  using Forward = dnnl::pooling_forward;
  const auto place = layout == Layout::kModel ? Plain : Blocked;
  Windows w(op);
  if (op.node.op_type() == "GlobalAveragePool") {
    w.kernel.assign(op.shape.begin() + 2, op.shape.end());
    w.strides = Dims(w.kernel.size(), 1);
    w.before = w.after = w.dilates = Dims(w.kernel.size(), 0);
  }
  const auto how = op.node.op_type() == "MaxPool" ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding;
  const Forward::primitive_desc pd({kInference, how, place(op.shape), place(w.Outputs(op.shape, op.shape[1])),
                                    w.strides, w.kernel, w.before, w.after},
                                   Engine());
  return Kernel{Forward(pd), pd.src_desc(), pd.dst_desc(), {}};
}

// With constant weights the batch only adds rows.
std::optional<Kernel> Product(const OnnxOperator& op, Layout layout, const std::vector<float>& x) {
  const auto place = layout == Layout::kModel ? Plain : Any;
  if (op.by_itself_transposed) {
    if (layout == Layout::kOwn) return std::nullopt;
    Dims turned = op.shape, result = op.shape, strides = StridesOf(op.shape);
    const size_t last = op.shape.size() - 1;
    std::swap(turned[last - 1], turned[last]);
    std::swap(strides[last - 1], strides[last]);
    result[last] = op.shape[last - 1];
    const memory::desc second(turned, kF32, strides);
    const dnnl::matmul::primitive_desc pd({Plain(op.shape), second, Plain(result)}, Engine());
    return Kernel{dnnl::matmul(pd),
                  pd.src_desc(),
                  pd.dst_desc(),
                  {{DNNL_ARG_WEIGHTS, memory(second, Engine(), const_cast<float*>(x.data()))}}};
  }
  const Dims weights = op.constants[0].shape;
  const int64_t rows = ElementsOf(op.shape) / weights[0];
  const dnnl::matmul::primitive_desc pd({place({rows, weights[0]}), Any(weights), place({rows, weights[1]})}, Engine());
  return Kernel{dnnl::matmul(pd),
                pd.src_desc(),
                pd.dst_desc(),
                {{DNNL_ARG_WEIGHTS, Packed(op.constants[0].values, Plain(weights), pd.weights_desc())}}};
}

Kernel Rows(const OnnxOperator& op) {
  const memory::desc plain = Plain(op.shape);
  const auto last = static_cast<int>(op.shape.size()) - 1;
  if (op.node.op_type() != "LayerNormalization") {
    using Forward = dnnl::softmax_v2_forward;
    const auto how = op.node.op_type() == "Softmax" ? algorithm::softmax_accurate : algorithm::softmax_log;
    const Forward::primitive_desc pd({kInference, how, plain, plain, last}, Engine());
    return {Forward(pd), plain, plain, {}};
  }
  using Forward = dnnl::layer_normalization_forward;
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  const Forward::primitive_desc pd({kInference, plain, op.Float("epsilon", 1e-5F), flags}, Engine());
  const memory::desc row = Plain({op.shape.back()});
  return {Forward(pd),
          plain,
          plain,
          {{DNNL_ARG_SCALE, Packed(op.constants[0].values, row, row)},
           {DNNL_ARG_SHIFT, Packed(op.constants[1].values, row, row)}}};
}

Kernel Reduction(const OnnxOperator& op) {
  const std::string& name = op.node.op_type();
  const auto how = name == "ReduceMax"   ? algorithm::reduction_max
                   : name == "ReduceSum" ? algorithm::reduction_sum
                                         : algorithm::reduction_mean;
  Dims result = op.shape;
  for (const int64_t axis : op.Ints("axes", {})) result[static_cast<size_t>(axis)] = 1;
  const dnnl::reduction::primitive_desc pd({how, Plain(op.shape), Plain(result), 0, 0}, Engine());
  return {dnnl::reduction(pd), Plain(op.shape), Plain(result), {}};
}

Kernel Transposition(const OnnxOperator& op) {
  const Dims order = op.Ints("perm", {}), strides = StridesOf(op.shape);
  Dims dims, turned;
  for (const int64_t d : order) {
    dims.push_back(op.shape[static_cast<size_t>(d)]);
    turned.push_back(strides[static_cast<size_t>(d)]);
  }
  const memory::desc from(dims, kF32, turned), to = Plain(dims);
  return {dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), from, Engine(), to)), from, to, {}};
}

std::optional<Kernel> Elementwise(const OnnxOperator& op) {
  const memory::desc plain = Plain(op.shape);
  const std::string& name = op.node.op_type();
  if (name == "Add" || name == "Mul") {
    const memory::desc other = Plain(op.constants[0].shape);
    const auto how = name == "Add" ? algorithm::binary_add : algorithm::binary_mul;
    const dnnl::binary::primitive_desc pd({how, plain, other, plain}, Engine());
    return Kernel{dnnl::binary(pd), plain, plain, {{DNNL_ARG_SRC_1, Packed(op.constants[0].values, other, other)}}};
  }
  const std::unordered_map<std::string, algorithm> known = {{"Relu", algorithm::eltwise_relu},
                                                            {"Sigmoid", algorithm::eltwise_logistic},
                                                            {"Tanh", algorithm::eltwise_tanh},
                                                            {"Exp", algorithm::eltwise_exp},
                                                            {"HardSwish", algorithm::eltwise_hardswish}};
  const auto how = known.find(name);
  if (how == known.end()) return std::nullopt;
  const dnnl::eltwise_forward::primitive_desc pd({kInference, how->second, plain}, Engine());
  return Kernel{dnnl::eltwise_forward(pd), plain, plain, {}};
}

std::optional<Kernel> MakeKernel(const OnnxOperator& op, Layout layout, const std::vector<float>& x) {
  const std::string& name = op.node.op_type();
  if (name == "Conv" || name == "ConvTranspose") return Convolution(op, layout);
  if (name == "MaxPool" || name == "AveragePool" || name == "GlobalAveragePool") return Pooling(op, layout);
  if (name == "MatMul") return Product(op, layout, x);
  if (layout == Layout::kOwn) return std::nullopt;
  if (name == "Softmax" || name == "LogSoftmax" || name == "LayerNormalization") return Rows(op);
  if (name.starts_with("Reduce")) return Reduction(op);
  if (name == "Transpose") return Transposition(op);
  return Elementwise(op);
}

// Returns nullopt if the library lacks the operator. An invalid request is an error.
absl::StatusOr<std::optional<Kernel>> TryKernel(const OnnxOperator& op, Layout layout, const std::vector<float>& x) {
  try {
    return MakeKernel(op, layout, x);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return std::optional<Kernel>();
    return absl::InternalError(fmt::format("oneDNN: {}", error.what()));
  }
}

void Execute(const Kernel& kernel, dnnl::stream& stream, const memory& x, const memory& y) {
  Arguments arguments = kernel.constants;
  arguments.insert({{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
  kernel.primitive.execute(stream, arguments);
}

}  // namespace

absl::StatusOr<LibraryOperator> MakeOneDnn(const OnnxOperator& op, const std::vector<float>& input) {
  LibraryOperator made;
  HONE_ASSIGN_OR_RETURN(const std::optional<Kernel> plain, TryKernel(op, Layout::kModel, input));
  HONE_ASSIGN_OR_RETURN(const std::optional<Kernel> own, TryKernel(op, Layout::kOwn, input));
  if (!plain.has_value()) return made;
  made.shape = plain->y.dims();
  made.output.resize(static_cast<size_t>(ElementsOf(made.shape)));
  const memory x(plain->x, Engine(), const_cast<float*>(input.data())), y(plain->y, Engine(), made.output.data());
  dnnl::stream stream(Engine());
  made.ways.push_back({"onednn_plain", true, [=, kernel = *plain]() mutable {
                         Execute(kernel, stream, x, y);
                         stream.wait();
                       }});
  if (!own.has_value() || (own->x == plain->x && own->y == plain->y)) return made;
  const memory own_x = Reordered(x, own->x), own_y = own->y == plain->y ? y : memory(own->y, Engine());
  made.ways.push_back({"onednn_own_layout", false, [=, kernel = *own]() mutable {
                         Execute(kernel, stream, own_x, own_y);
                         stream.wait();
                       }});
  const dnnl::reorder there(x, own_x), back(own_y, y);
  made.ways.push_back({"onednn_reordered", true,
                       [=, kernel = *own, changes_x = own->x != plain->x, changes_y = own->y != plain->y]() mutable {
                         memory from = x, in = own_x, out = own_y, to = y;
                         if (changes_x) there.execute(stream, from, in);
                         Execute(kernel, stream, own_x, own_y);
                         if (changes_y) back.execute(stream, out, to);
                         stream.wait();
                       }});
  return made;
}

}  // namespace hone::models
