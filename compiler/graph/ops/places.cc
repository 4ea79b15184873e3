// SPDX-License-Identifier: Apache-2.0
// Places, the internal operator that finds the selected elements of a list, given how many are selected up to each.
//
// Selections whose number a run decides (NonZero, Compress, Unique, ...) are made of it by decompose/selection.cc.
// Every output element does a binary search of its own, with the same number of steps for all of them, so the code is
// short and has no branches.
#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

// Inputs: counts i64[n], not decreasing; the output's shape, one size. Output: i64; element k is the first place where
// the count exceeds k, or n.
OpResult SelectedPlaces(const OpArgs& args, StageBuilder& builder) {
  const Buffer& counts = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(const Shape shape, args.ConstantSizes(1));
  if (Rank(counts) != 1 || counts->dtype != DType::kInt64 || shape.size() != 1) {
    return Malformed("input 0 must be a list of i64, and input 1 one size");
  }
  const Size& n = counts->shape[0];
  int64_t step = 1;
  while (step * 2 <= n.max()) step *= 2;
  Buffer place;
  for (; step > 0; step /= 2) {
    const Buffer before = place;
    place = builder.Compute("places", DType::kInt64, shape, [&](Indices i) {
      const Expr from = before == nullptr ? Expr(0) : ReadHere(before, i);
      const Expr next = from + Expr(step);
      const Expr last = Max(Min(next, Expr(n)) - Expr(1), Expr(0));
      return MakeSelect(next <= Expr(n) && Read(counts, {last}) <= i[0], next, from);
    });
  }
  return Buffers{place};
}

// As many elements are selected as there are for timing.
void CountRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input != 0) return;
  *low = 0;
  *high = static_cast<double>(args.inputs[0]->shape.empty() ? 1 : args.inputs[0]->shape[0].max());
}

constexpr OpDef kPlaceOps[] = {{"Places", Checked<SelectedPlaces, 2>, {}, CountRange}};

}  // namespace

std::span<const OpDef> PlaceOps() { return kPlaceOps; }

}  // namespace hone::graph
