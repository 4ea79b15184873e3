// SPDX-License-Identifier: Apache-2.0
// Logarithms of sums of exponentials as stages, shared by LogSoftmax, the cross-entropy loss and ReduceLogSumExp.
//
// Not here: the operators themselves (softmax.cc, loss.cc).
#ifndef HONE_COMPILER_GRAPH_OPS_SOFTMAX_H_
#define HONE_COMPILER_GRAPH_OPS_SOFTMAX_H_

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// Appends log(sum of e^(x - top)) over `axes` (sorted) of an index space `shape`, with the reduced dimensions kept. `x`
// gives an element of top's type at its full indices, and `top` is the maximum over the axes, dimensions kept. Elements
// equal to the maximum are counted apart from the others, because a single one would hide the digits of a small rest.
// The result is NaN where top is infinite.
ir::Buffer EmitLogOfExpSum(StageBuilder& builder, const StageBuilder::Body& x, const ir::Buffer& top,
                           const Shape& shape, const Dims& axes);

// Appends log(softmax(x)), normalized over all dimensions in `axes` (sorted) together. x has a float type; the result
// has its shape and type.
ir::Buffer EmitLogSoftmax(StageBuilder& builder, const ir::Buffer& x, const Dims& axes);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_SOFTMAX_H_
