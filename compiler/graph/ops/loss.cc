// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/softmax.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

absl::Status CheckLoss(const OpArgs& args) {
  const Buffer& scores = args.inputs[0];
  const Buffer& target = args.inputs[1];
  if (Rank(scores) < 2) return Malformed("input 0 must have at least the dimensions batch and class");
  Shape expected = scores->shape;
  expected.erase(expected.begin() + 1);
  if (target->shape != expected)
    return Malformed("the shape of the target (input 1) must be that of input 0 without the class dimension");
  if (!ir::IsInt(target->dtype)) return Malformed("the target (input 1) must be integers");
  if (args.Has(2) && args.inputs[2]->shape != Shape{scores->shape[1]}) {
    return Malformed("the weights (input 2) must be one per class");
  }
  if (scores->shape[1] == 0) return Malformed("there are no classes");
  return absl::OkStatus();
}

// The loss for given log-probabilities: -weight[target] * log_prob[target], 0 for ignored targets. It is summed, or
// averaged over the weights, as the attribute `reduction` says.
OpResult EmitLoss(const OpArgs& args, StageBuilder& builder, const Buffer& log_prob) {
  const std::string reduction = args.String("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    return Malformed(fmt::format("attribute reduction is '{}'; it must be none, sum or mean", reduction));
  }
  const Buffer& target = args.inputs[1];
  const DType dtype = args.inputs[0]->dtype, wide = ComputeType(dtype);
  const bool ignores = HasAttribute(args, "ignore_index");
  const int64_t ignored = args.Int("ignore_index", 0);
  const Size classes = log_prob->shape[1];
  auto or_zero = [&](Indices i, Expr value) {
    if (!ignores) return value;
    Expr index = To(DType::kInt64, ReadHere(target, i));
    return MakeSelect(Equals(index, Expr(ignored)), Number(wide, 0), value);
  };
  auto weight = [&](Indices i) {
    Expr index = ReadIndex(target, Exprs(i.begin(), i.end()), classes);
    return args.Has(2) ? ReadAs(wide, args.inputs[2], {index}) : Number(wide, 1);
  };
  auto loss = [&](Indices i) {
    Exprs source = {i[0], ReadIndex(target, Exprs(i.begin(), i.end()), classes)};
    source.insert(source.end(), i.begin() + 1, i.end());
    Expr value = Negate(Read(log_prob, std::move(source)));
    return or_zero(i, args.Has(2) ? value * weight(i) : value);
  };
  if (reduction == "none") return Buffers{Map(builder, "loss", dtype, target->shape, loss)};
  Dims axes(Rank(target));
  std::iota(axes.begin(), axes.end(), 0);
  if (reduction == "sum") {
    return Buffers{ReduceOver(builder, "loss", dtype, target->shape, axes, false, Reduction::kSum, loss)};
  }
  Buffer sum = ReduceOver(builder, "loss", wide, target->shape, axes, false, Reduction::kSum, loss);
  Buffer total = ReduceOver(builder, "weight", wide, target->shape, axes, false, Reduction::kSum,
                            [&](Indices i) { return or_zero(i, weight(i)); });
  return Buffers{Map(builder, "mean", dtype, {}, [&](Indices) { return ReadScalar(sum) / ReadScalar(total); })};
}

OpResult NegativeLogLikelihoodLoss(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckLoss(args));
  return EmitLoss(args, builder, args.inputs[0]);
}

OpResult SoftmaxCrossEntropyLoss(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckLoss(args));
  Buffer log_prob = EmitLogSoftmax(builder, args.inputs[0], {1});
  HONE_ASSIGN_OR_RETURN(Buffers outputs, EmitLoss(args, builder, log_prob));
  outputs.push_back(log_prob);
  return outputs;
}

// The range for random test data: targets are class numbers.
void ClassRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input == 0) return;
  *low = input == 2 ? 0.5 : 0;
  *high = input == 2 ? 2 : (Rank(args.inputs[0]) > 1 ? static_cast<double>(args.inputs[0]->shape[1].max() - 1) : 0);
}

constexpr OpDef kLossOps[] = {
    {"NegativeLogLikelihoodLoss", Checked<NegativeLogLikelihoodLoss, 2, Elements::kFloat>, {}, ClassRange},
    {"SoftmaxCrossEntropyLoss", Checked<SoftmaxCrossEntropyLoss, 2, Elements::kFloat>, {}, ClassRange},
};

}  // namespace

std::span<const OpDef> LossOps() { return kLossOps; }

}  // namespace hone::graph
