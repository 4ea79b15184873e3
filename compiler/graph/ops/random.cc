// SPDX-License-Identifier: Apache-2.0
// Operators whose results are random: Random*, Bernoulli, Multinomial. Dropout, which is random in training, is in
// cast.cc. The generator and what a run may rely on are in philox.h.
#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/philox.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;
using ir::Reduction;

// The element type that attribute dtype names; `fallback` if it is absent.
absl::StatusOr<DType> RandomType(const OpArgs& args, DType fallback) {
  if (!HasAttribute(args, "dtype")) return fallback;
  return FromOnnxType(args.Int("dtype", 0));
}

absl::StatusOr<Dims> RandomShape(const OpArgs& args) {
  if (!HasAttribute(args, "shape")) return Malformed("attribute shape is missing");
  const Dims shape = args.Ints("shape", {});
  HONE_RETURN_IF_ERROR(CheckNotNegative(shape));
  return shape;
}

// The type in which random numbers are made.
DType RandomWork(DType dtype) { return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

OpResult EmitRandom(const OpArgs& args, StageBuilder& builder, bool normal, DType dtype, const Shape& shape) {
  if (!ir::IsFloat(dtype)) return Malformed(fmt::format("attribute dtype is {}; it must be a float", ir::Name(dtype)));
  const DType work = RandomWork(dtype);
  const uint32_t key = PhiloxKey(args);
  const Buffer base = normal ? EmitNormal(builder, key, work, shape) : EmitUniform(builder, key, work, shape);
  const double low = normal ? args.Float("mean", 0) : args.Float("low", 0);
  const double span = normal ? args.Float("scale", 1) : args.Float("high", 1) - low;
  return Buffers{Map(builder, "random", dtype, shape,
                     [&](Indices i) { return ReadHere(base, i) * Number(work, span) + Number(work, low); })};
}

template <bool normal>
OpResult Random(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(const DType dtype, RandomType(args, DType::kFloat32));
  HONE_ASSIGN_OR_RETURN(const Dims shape, RandomShape(args));
  return EmitRandom(args, builder, normal, dtype, shape);
}

template <bool normal>
OpResult RandomLike(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(const DType dtype, RandomType(args, args.inputs[0]->dtype));
  return EmitRandom(args, builder, normal, dtype, args.inputs[0]->shape);
}

// 1 with the probability that the input gives, else 0.
OpResult Bernoulli(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(const DType dtype, RandomType(args, x->dtype));
  const Buffer uniform = EmitUniform(builder, PhiloxKey(args), RandomWork(x->dtype), x->shape);
  const DType wide = ComputeType(dtype);
  return Buffers{Map(builder, "bernoulli", dtype, x->shape, [&](Indices i) {
    return MakeSelect(ReadHere(uniform, i) < ReadHere(x, i), Number(wide, 1), Number(wide, 0));
  })};
}

// Input: unnormalized logarithms of probabilities [batch, classes]. A sample is the class with the largest sum of its
// logarithm and a number of Gumbel's distribution, which has the wanted probability.
OpResult Multinomial(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  const int64_t samples = args.Int("sample_size", 1);
  if (Rank(x) != 2 || x->shape[1] == 0) return Malformed("input 0 must be [batch, classes]");
  if (samples < 0 || samples > kDimensionMax) {
    return Malformed(fmt::format("attribute sample_size is {}; it must be from 0 to {}", samples, kDimensionMax));
  }
  HONE_ASSIGN_OR_RETURN(const DType dtype, RandomType(args, DType::kInt32));
  if (dtype != DType::kInt32 && dtype != DType::kInt64) return Malformed("attribute dtype must be i32 or i64");
  const DType work = RandomWork(x->dtype);
  const Size classes = x->shape[1];
  const Shape shape = {x->shape[0], samples, classes};
  const Buffer uniform = EmitUniform(builder, PhiloxKey(args), work, shape);
  const Buffer scores = builder.Compute("scores", work, shape, [&](Indices i) {
    const Expr positive = Number(work, 1) - ReadHere(uniform, i);  // in (0, 1]
    const auto log = [](Expr value) { return Apply(Intrinsic::kLog, std::move(value)); };
    return Read(x, {i[0], i[2]}) - log(Negate(log(positive)));
  });
  const Buffer top = ReduceOver(builder, "top", work, shape, {2}, true, Reduction::kMax,
                                [&](Indices i) { return ReadHere(scores, i); });
  return Buffers{ReduceOver(builder, "sample", dtype, shape, {2}, false, Reduction::kMin, [&](Indices i) {
    const Expr found = Equals(ReadHere(scores, i), ReadBroadcast(top, i));
    return To(dtype, MakeSelect(found, i[2], Expr(classes - 1)));
  })};
}

// The range for random test data: probabilities.
void ProbabilityRange(const OpArgs&, size_t, double* low, double* high) {
  *low = 0;
  *high = 1;
}

constexpr OpDef kRandomOps[] = {
    {"Bernoulli", Checked<Bernoulli, 1, Elements::kFloat>, {}, ProbabilityRange},
    {"Multinomial", Checked<Multinomial, 1, Elements::kFloat>},
    {"RandomNormal", Checked<Random<true>, 0>},
    {"RandomNormalLike", Checked<RandomLike<true>, 1>},
    {"RandomUniform", Checked<Random<false>, 0>},
    {"RandomUniformLike", Checked<RandomLike<false>, 1>},
};

}  // namespace

std::span<const OpDef> RandomOps() { return kRandomOps; }

}  // namespace hone::graph
