// SPDX-License-Identifier: Apache-2.0
// The tables of all operators, one per family and domain. Only FindOp (op.h) searches them.
//
// Not here: the operators' meaning, which is in the file of the family, in the function named by the table. To add an
// operator, write its function beside similar ones and add one line to the table at the end of that file.
#ifndef HONE_COMPILER_GRAPH_OPS_FAMILIES_H_
#define HONE_COMPILER_GRAPH_OPS_FAMILIES_H_

#include <span>
#include <string_view>

#include "compiler/graph/op.h"

namespace hone::graph {

// The operators of one family in one domain ("" means ai.onnx, "hone" is Hone's own). Names are unique within a domain
// over all families.
struct OpFamily {
  std::string_view domain;
  std::span<const OpDef> ops;
};

// All families; the spans point to static tables. Thread-safe.
std::span<const OpFamily> AllFamilies();

// One function per family, defined in the file that the comment names.
std::span<const OpDef> UnaryOps();           // unary.cc: mathematics of one input
std::span<const OpDef> ActivationOps();      // activation.cc: Relu and its relatives
std::span<const OpDef> HoneActivationOps();  // activation.cc: domain "hone"
std::span<const OpDef> BinaryOps();          // binary.cc: broadcasting arithmetic, comparison, logic
std::span<const OpDef> CastOps();            // cast.cc: types, Where, Clip, Identity, Dropout
std::span<const OpDef> ReshapeOps();         // reshape.cc: same elements in the same order
std::span<const OpDef> MovementOps();        // movement.cc: Transpose, Concat, Split, Slice, Pad, Tile, ...
std::span<const OpDef> GatherOps();          // gather.cc: Gather*, Compress, NonZero, ReverseSequence
std::span<const OpDef> ScatterOps();         // scatter.cc: Scatter*
std::span<const OpDef> GeneratorOps();       // generator.cc: ConstantOfShape, Range, OneHot, EyeLike, windows, ...
std::span<const OpDef> ReduceOps();          // reduce.cc: Reduce*, ArgMax, ArgMin, CumSum, CumProd
std::span<const OpDef> SortOps();            // sort.cc: TopK
std::span<const OpDef> DigitSortOps();       // sort.cc: domain "hone"
std::span<const OpDef> SoftmaxOps();         // softmax.cc: Softmax, LogSoftmax, Hardmax
std::span<const OpDef> LossOps();            // loss.cc: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss
std::span<const OpDef> NormOps();            // norm.cc: batch, layer, instance, group, ... normalization
std::span<const OpDef> EinsumOps();          // einsum.cc: Einsum, Det
std::span<const OpDef> ConvOps();            // conv.cc: Conv, ConvInteger, QLinearConv
std::span<const OpDef> ConvTransposeOps();   // conv_transpose.cc
std::span<const OpDef> PhasedConvOps();      // conv_transpose.cc: domain "hone"
std::span<const OpDef> GroupedConvOps();     // conv.cc: domain "hone"
std::span<const OpDef> PoolOps();            // pool.cc: pools and MaxUnpool
std::span<const OpDef> ResizeOps();          // resize.cc: Resize, Upsample
std::span<const OpDef> SampleOps();          // sample.cc: RoiAlign, GridSample
std::span<const OpDef> SignalOps();          // signal.cc: DFT, STFT, MelWeightMatrix
std::span<const OpDef> MatMulOps();          // matmul.cc: MatMul, Gemm, MatMulInteger, QLinearMatMul
std::span<const OpDef> QuantizeOps();        // quantize.cc: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear
std::span<const OpDef> ReciprocalOps();      // quantize.cc: domain "hone"
std::span<const OpDef> RecurrentOps();       // recurrent.cc: RNN, GRU, LSTM
std::span<const OpDef> ProjectedOps();       // recurrent.cc: domain "hone"
std::span<const OpDef> RotaryOps();          // rotary.cc: RotaryEmbedding
std::span<const OpDef> MultiplyAddOps();     // multiply_add.cc: domain "hone"
std::span<const OpDef> TreeOps();            // tree_walk.cc: domain "hone"
std::span<const OpDef> PlaceOps();           // places.cc: domain "hone"
std::span<const OpDef> SmallFloatOps();      // small_float.cc: domain "hone"
std::span<const OpDef> ExpressionOps();      // expression.cc: domain "hone"

std::span<const OpDef> CacheOps();            // cache.cc: TensorScatter
std::span<const OpDef> Col2ImOps();           // col2im.cc
std::span<const OpDef> LinearAttentionOps();  // linear_attention.cc
std::span<const OpDef> RandomOps();           // random.cc: Random*, Bernoulli, Multinomial
std::span<const OpDef> RegionPoolOps();       // region_pool.cc: MaxRoiPool
std::span<const OpDef> CropOps();             // crop.cc: domain "com.microsoft"
std::span<const OpDef> InverseOps();          // inverse.cc: domain "com.microsoft"
std::span<const OpDef> MatMulNBitsOps();      // matmul_nbits.cc: domain "com.microsoft"
std::span<const OpDef> WarpOps();             // warp.cc: AffineGrid, DeformConv

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_FAMILIES_H_
