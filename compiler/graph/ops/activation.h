// SPDX-License-Identifier: Apache-2.0
// Activation functions as expressions of one float value, shared by the activation operators and the recurrent cells.
//
// Not here: the operators and their attributes (activation.cc).
#ifndef HONE_COMPILER_GRAPH_OPS_ACTIVATION_H_
#define HONE_COMPILER_GRAPH_OPS_ACTIVATION_H_

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

ir::Expr ReluOf(const ir::Expr& x);
ir::Expr LeakyReluOf(const ir::Expr& x, double alpha);
ir::Expr ThresholdedReluOf(const ir::Expr& x, double alpha);
ir::Expr EluOf(const ir::Expr& x, double alpha);
ir::Expr HardSigmoidOf(const ir::Expr& x, double alpha, double beta);
ir::Expr SoftplusOf(const ir::Expr& x);  // log(1 + exp(x)), without overflow for large x
ir::Expr SoftsignOf(const ir::Expr& x);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_ACTIVATION_H_
