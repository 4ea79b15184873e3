// SPDX-License-Identifier: Apache-2.0
// The logarithm of a softmax as stages: what LogSoftmax and the cross-entropy loss share.
//
// Not here: the operators themselves (softmax.cc, loss.cc).
#ifndef HONE_COMPILER_GRAPH_OPS_SOFTMAX_H_
#define HONE_COMPILER_GRAPH_OPS_SOFTMAX_H_

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// log(softmax(x)) over the dimensions `axes` (sorted) taken together; of x's shape and type. x is of floats.
ir::Buffer EmitLogSoftmax(StageBuilder& builder, const ir::Buffer& x, const Dims& axes);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_SOFTMAX_H_
