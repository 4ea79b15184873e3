// SPDX-License-Identifier: Apache-2.0
// The logarithm of a softmax as stages, shared by LogSoftmax and the cross-entropy loss.
//
// Not here: the operators themselves (softmax.cc, loss.cc).
#ifndef HONE_COMPILER_GRAPH_OPS_SOFTMAX_H_
#define HONE_COMPILER_GRAPH_OPS_SOFTMAX_H_

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// Appends log(softmax(x)), normalized over all dimensions in `axes` (sorted) together. x has a float type; the result
// has its shape and type.
ir::Buffer EmitLogSoftmax(StageBuilder& builder, const ir::Buffer& x, const Dims& axes);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_SOFTMAX_H_
