// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/ops/bias.h"

#include "fmt/format.h"

namespace hone::graph {

absl::Status CheckBias(const OpArgs& args, size_t input, const Size& channels) {
  if (args.Has(input) && args.inputs[input]->shape != Shape{channels}) {
    return Malformed(fmt::format("the bias (input {}) must have one number per channel ({})", input, channels));
  }
  return absl::OkStatus();
}

OpResult AddBias(const OpArgs& args, StageBuilder& builder, const ir::Buffer& sum,
                 const std::function<ir::Expr(Indices)>& channel) {
  const ir::DType dtype = args.inputs[0]->dtype;
  if (!args.Has(2) && sum->dtype == dtype) return Buffers{sum};
  return Buffers{Map(builder, "bias", dtype, sum->shape, [&](Indices i) {
    ir::Expr value = ReadHere(sum, i);
    return args.Has(2) ? value + Read(args.inputs[2], {channel(i)}) : value;
  })};
}

}  // namespace hone::graph
