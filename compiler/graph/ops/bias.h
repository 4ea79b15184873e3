// SPDX-License-Identifier: Apache-2.0
// The bias of convolutions and transposed convolutions: one number per output channel.
#ifndef HONE_COMPILER_GRAPH_OPS_BIAS_H_
#define HONE_COMPILER_GRAPH_OPS_BIAS_H_

#include <functional>

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// InvalidArgument if the input is present and does not have exactly one number per channel.
absl::Status CheckBias(const OpArgs& args, size_t input, const Size& channels);

// Appends a stage that converts `sum` to the type of input 0 and adds the bias (input 2), if present. Returns `sum`
// itself, without a stage, if there is nothing to do. `channel` maps an index of the output to its output channel.
OpResult AddBias(const OpArgs& args, StageBuilder& builder, const ir::Buffer& sum,
                 const std::function<ir::Expr(Indices)>& channel);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_BIAS_H_
