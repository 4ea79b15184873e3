// SPDX-License-Identifier: Apache-2.0
// The bias of convolutions and transposed ones: a number per output channel.
#ifndef HONE_COMPILER_GRAPH_OPS_BIAS_H_
#define HONE_COMPILER_GRAPH_OPS_BIAS_H_

#include <functional>

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// InvalidArgument where input `input` is there and has not just one number per channel.
absl::Status CheckBias(const OpArgs& args, size_t input, int64_t channels);

// `sum` in the type of input 0, with the bias (input 2) of the channel that an index is of, if there is one.
OpResult AddBias(const OpArgs& args, StageBuilder& builder, const ir::Buffer& sum,
                 const std::function<ir::Expr(Indices)>& channel);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_BIAS_H_
