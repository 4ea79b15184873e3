// SPDX-License-Identifier: Apache-2.0
// The passes over graphs: what each does and needs. Each has a source file of its own beside this header, and its place
// in the order is in pipeline.cc. What several passes use is in channels_last.h, permute.h and view.h.
#ifndef HONE_COMPILER_GRAPH_PASSES_PASSES_H_
#define HONE_COMPILER_GRAPH_PASSES_PASSES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Constant folding: computes at compile time the nodes that depend on constants only.
//
// Replaces nodes with constant inputs by constants. Two kinds stay: nodes that would take the interpreter too long, one
// by one or all together; and nodes whose results have more elements than any constant input and are much larger than
// all inputs (an Expand of a scalar is better fused than stored). Writes one log line if nodes stay because all
// together take too long.
absl::Status FoldConstants(Graph& graph);
// The same with a limit on the evaluations of elements for all nodes together.
absl::Status FoldConstants(Graph& graph, int64_t steps_max);

// Models in QDQ form: what stands between DequantizeLinear and QuantizeLinear computes with 8-bit integers.
//
// Conv, MatMul and Gemm of two dequantized operands become ConvInteger or MatMulInteger and one MultiplyAdd with the
// scales and the bias. The scale of the first operand must be one number; that of the second may be one number for
// each channel of the output. This needs an instruction of the target that sums products of 8-bit integers. Grouped
// convolutions stay. Nodes that only move or select elements move the integers. A QuantizeLinear that would give the
// integers of a DequantizeLinear back is left out. A QuantizeLinear of an element-wise function of such a product
// multiplies by the reciprocal of its scale. A quantized result differs by at most one step from the original graph.
//
// Runs before FoldConstants, which would dequantize constant weights.
absl::Status LowerQuantizedOps(Graph& graph);

// Folds batch normalization and other per-channel scaling into the weights of the preceding layer.
//
// Folds a BatchNormalization in inference mode, or a product or sum with per-channel constants, into the weights and
// bias of a Conv, ConvTranspose or Gemm. The layer's weights must be constant, the folded node must be its only reader,
// and the weights' type must be able to hold the results. Every remaining BatchNormalization in inference mode with
// constant parameters becomes a product and a sum.
absl::Status FoldScale(Graph& graph);

// Simplification: removes nodes without effect, merges chains of transposes and reshapes, and rewrites some nodes to
// cheaper ones.
//
// Repeats its rules until nothing changes. Afterwards Squeeze, Unsqueeze and Flatten are Reshapes with a constant
// shape; no Reshape reads a Reshape and no Transpose reads a Transpose; reductions over several dimensions keep them
// with extent 1; and unused outputs are kAbsent.
absl::Status Simplify(Graph& graph);

// Common-subexpression elimination: equal nodes become one node, and equal constants one constant.
//
// Assumes that nodes are deterministic. Import rejects operators that draw random numbers.
absl::Status ShareCommonSubexpressions(Graph& graph);

// Recognizes operators that a model spells out as several nodes, and replaces each such pattern by one node.
//
// Models do this when their opset lacks the operator. The kernel of a layer norm is faster than one fused from nine
// nodes, and its workload has a telling label.
//
// Recognizes GELU (by erf or tanh), SiLU, Mish, hard swish, layer norm and RMS norm. A pattern stays if other nodes
// read one of its inner values.
absl::Status RecognizePatterns(Graph& graph);

// Replaces selections with constant conditions by constants or gathers.
//
// A Compress becomes a Gather with constant indices, and a NonZero becomes a constant. Their conditions are always
// known at compile time. The original operators would write all positions into their expressions; for a long list the
// workload's text would exceed the parser's size limit.
absl::Status LowerSelections(Graph& graph);

// Rewrites scatters to forms that search less or, if the indices are constant, not at all.
//
// A Scatter, ScatterElements or ScatterND with constant indices becomes Gather and Where. For each place, Gather takes
// the last update that goes there; Where keeps the data if there is none. The original operator makes every element
// look at all updates; the new form takes linear time. If the updates are combined (attribute reduction), the indices
// must be distinct. Scatters with repeated indices and a reduction, with more than 2^25 places or updates, or with open
// sizes among the places, stay. A ScatterElements whose indices are equal along each row becomes a ScatterND.
absl::Status LowerScatters(Graph& graph);

// Rewrites grouped convolutions so that the groups are a dimension of their own.
//
// A Conv with several groups and more than one output channel per group becomes GroupedConv and Reshape. The output of
// GroupedConv, [N, groups, channels of a group, D...] (in NHWC [N, D..., groups, channels of a group]), has the same
// memory order as the original. In the original form, an output channel finds its inputs by a division of its index,
// and a tile may cover channels of several groups.
absl::Status LowerGroupedConvs(Graph& graph);

// Rewrites matrix products to the one form that is tuned best: rows x K times a constant K x N.
//
// Images in NCHW use the mirrored form: constant rows x K times K x pixels.
//
// Gemm with constant weights becomes MatMul and Add. A 1x1 convolution (constant weights, stride 1, no padding, one
// group) and a MatMul of more than two dimensions with a constant matrix become Reshape, MatMul, Add if there is a
// bias, and Reshape. So does MatMulNBits, whose scales and zero points become matrices with one row per column of the
// result. A 1x1 convolution after a depthwise convolution with channels last gets no Reshapes, so that one
// kernel can compute both (fuse.h).
absl::Status LowerMatMuls(Graph& graph);

// Rewrites transposed convolutions so that their sums need no division: as one small convolution per phase, or as one
// matrix product followed by sums of its elements.
//
// Rewrites each ConvTranspose in NHWC with constant weights, a plane of fixed size, a stride over 1, no dilation and
// one group. It becomes PhasedConvTranspose, or, if it has few output channels or a kernel that the stride does not
// divide, MatMul, Reshape and SumTaps. The result of either, [N, D / stride, stride, ..., C], has the same memory order
// as the original output. Reshape restores its shape, with Add before it for a bias and Slice after it if the stride
// does not divide the output.
absl::Status LowerConvTransposes(Graph& graph);

// Channel shuffles. Models write them as Reshape, Transpose, Reshape with five dimensions, which no other pass can
// handle.
//
// Replaces the three nodes by one Gather along the channels, which the layout pass can move like any other node.
absl::Status NameShuffles(Graph& graph);
// Replaces each Gather whose constant indices are a shuffle by Reshape, Transpose, Reshape along its current axis. This
// form needs no index table at run time.
absl::Status SpellShuffles(Graph& graph);

// Layout selection: moves activations of convolutional networks to channels last (NHWC), for which the CPU kernels are
// written.
//
// Vectors run along the output channels, so a convolution is a matrix product of pixels and channels. Nodes with
// channels (convolutions, pools) and nodes that work in any order form connected regions. A region changes as a whole
// if the estimated gain exceeds the cost of the Transposes where tensors enter or leave it. Weights keep their order.
//
// Requires a graph that Simplify has processed. Run Simplify afterwards as well: it cancels pairs of Transposes that
// meet at the borders of regions.
absl::Status ChooseLayouts(Graph& graph);

// Moves reshapes behind the element-wise nodes that read them, so that these nodes can be fused with the kernel before
// the reshape.
//
// f(Reshape(x), y) becomes Reshape(f(x, Reshape(y))) if x has fewer dimensions than its reshape (a matrix product as
// rows) and the new reshapes are free, that is, move no bytes. Requires a graph that Simplify has processed, and keeps
// its properties.
absl::Status SinkReshapes(Graph& graph);

// Rewrites reductions over several trailing dimensions, the last of which is short, as reductions over one long
// dimension.
//
// A reduction over axes or a global pool (NCHW) over trailing, adjacent dimensions becomes Reshape, the same reduction
// over one dimension, and Reshape. The pass applies only if the last dimension is shorter than two vectors, or twice
// the lanes that run in step on a device: partial results along it would leave most of them unused. Longer ones stay,
// because a Reshape would keep element-wise operators out of the reduction's kernel. On a device with lanes, longer
// reductions to a single number are rewritten nevertheless, because they are split over groups.
absl::Status FlattenReductions(Graph& graph);

// Makes a Concat of more than 32 inputs a tree of Concats of at most 16.
//
// An element of a concatenation asks for every part whether it lies in it, and groups of equal shapes are one workload.
absl::Status GroupConcats(Graph& graph);

// Splits long axes into blocks for operators whose work is quadratic in the axis length.
//
// TopK compares each element with all others, and CumSum sums all elements before each one. On a long axis
//   - CumSum becomes a CumSum within every block and one of the blocks' sums; f16 and bf16 are summed in f32;
//   - TopK of the largest elements, if k is small, becomes a TopK of the groups' maxima and then a TopK of the elements
//     of the chosen groups;
//   - TopK of the smallest elements, if k is small, becomes a TopK of every block and then a TopK of those results.
// The new nodes are split again while their axes are long. An axis of open length stays.
absl::Status SplitAxes(Graph& graph);

// Splits recurrences over long sequences into pieces.
//
// An RNN, GRU or LSTM over more than 32 steps becomes a chain of nodes over 16 to 32 steps each; the last may have
// fewer. Each node starts with the final state of the one before. A node is compiled with all its steps in one block,
// whose compile time grows with the square of the number of steps; pieces of equal length are one workload, compiled
// and tuned once. Each of two directions becomes a chain of its own. States between pieces have the model's type, f16
// for example. Nodes with two directions whose activations have coefficients, or with an open number of steps,
// are not split.
absl::Status SplitRecurrences(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_PASSES_H_
