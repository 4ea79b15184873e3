// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::Expr;

// How the elements of a head are rotated: in pairs of neighbours, or in pairs of one element from each half. Elements
// after `turned` are copied.
struct Turning {
  bool split;       // input 0 is [batch, heads, positions, size], else [batch, positions, heads * size]
  bool neighbours;  // attribute interleaved
  int64_t size, turned;

  int64_t Pairs() const { return turned / 2; }
  size_t PositionAxis() const { return split ? 2 : 1; }
};

absl::StatusOr<Turning> ReadTurning(const OpArgs& args) {
  const Buffer& x = args.inputs[0];
  if (Rank(x) != 3 && Rank(x) != 4) return Malformed("input 0 must have 3 or 4 dimensions");
  Turning turning{.split = Rank(x) == 4, .neighbours = args.Int("interleaved", 0) != 0, .size = 0, .turned = 0};
  const int64_t heads = turning.split ? 1 : args.Int("num_heads", 0);
  if (heads < 1 || !Divides(heads, x->shape.back())) {
    return Malformed(fmt::format("attribute num_heads is {}; it must divide the last dimension", heads));
  }
  HONE_ASSIGN_OR_RETURN(const int64_t width, FixedSize(x->shape.back(), "the last dimension"));
  turning.size = width / heads;
  turning.turned = args.Int("rotary_embedding_dim", 0);
  if (turning.turned == 0) turning.turned = turning.size;
  if (turning.turned < 0 || turning.turned > turning.size || turning.turned % 2 != 0) {
    return Malformed(
        fmt::format("{} of the {} elements of a head cannot be rotated in pairs", turning.turned, turning.size));
  }
  return turning;
}

// Angles are given per batch entry and position, or as a table indexed by position ids (input 3).
absl::Status CheckAngles(const OpArgs& args, const Turning& turning) {
  const Buffer& x = args.inputs[0];
  const Shape positions = {x->shape[0], x->shape[turning.PositionAxis()]};
  const Shape& shape = args.inputs[1]->shape;
  Shape wanted = {positions[0], positions[1], turning.Pairs()};
  if (args.Has(3)) {
    if (args.inputs[3]->shape != positions || !ir::IsInt(args.inputs[3]->dtype)) {
      return Malformed("the position ids (input 3) must be one integer per entry of the batch and position");
    }
    if (shape.empty() || shape[0] == 0) return Malformed("the table of cosines (input 1) is empty");
    wanted = {shape[0], turning.Pairs()};
    HONE_RETURN_IF_ERROR(CheckConstantIndices(args, 3, {shape[0]}));
  }
  for (size_t k : {1, 2}) {
    if (args.inputs[k]->shape != wanted || args.inputs[k]->dtype != x->dtype) {
      return Malformed(
          fmt::format("input {} must be of the type of input 0 and have {} numbers per position", k, turning.Pairs()));
    }
  }
  return absl::OkStatus();
}

// Rotates a pair (a, b): (a cos - b sin, a sin + b cos).
OpResult RotaryEmbedding(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(const Turning turning, ReadTurning(args));
  HONE_RETURN_IF_ERROR(CheckAngles(args, turning));
  const Buffer& x = args.inputs[0];
  const Expr pairs(turning.Pairs()), size(turning.size);
  if (turning.Pairs() == 0) return Buffers{x};
  return Buffers{Map(builder, "rotary", x->dtype, x->shape, [&](Indices i) {
    const Expr element = turning.split ? i.back() : FloorMod(i.back(), size);
    const Expr side = FloorMod(element, Expr(2));  // for neighbours
    const Expr pair = FloorMod(turning.neighbours ? FloorDiv(element, Expr(2)) : element, pairs);
    const Expr partner =
        turning.neighbours ? pair * Expr(2) + (Expr(1) - side) : FloorMod(element + pairs, Expr(turning.turned));
    const Expr first = turning.neighbours ? Equals(side, Expr(0)) : element < pairs;
    const auto angle = [&](const Buffer& table) {
      const Expr& position = i[turning.PositionAxis()];
      if (!args.Has(3)) return Read(table, {i[0], position, pair});
      return Read(table, {ReadIndex(args.inputs[3], {i[0], position}, table->shape[0]), pair});
    };
    Exprs other(i.begin(), i.end());
    other.back() = turning.split ? partner : FloorDiv(i.back(), size) * size + partner;
    const Expr sine = angle(args.inputs[2]);
    Expr value = ReadHere(x, i) * angle(args.inputs[1]) + Read(x, other) * MakeSelect(first, Negate(sine), sine);
    return turning.turned == turning.size ? value : MakeSelect(element < Expr(turning.turned), value, ReadHere(x, i));
  })};
}

// The range for random test data: position ids are rows of the table.
void PositionIdRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input != 3) return;
  *low = 0;
  *high =
      args.inputs[1]->shape.empty() ? 0 : static_cast<double>(std::max<int64_t>(args.inputs[1]->shape[0].max() - 1, 0));
}

constexpr OpDef kRotaryOps[] = {
    {"RotaryEmbedding", Checked<RotaryEmbedding, 3, Elements::kFloat>, {}, PositionIdRange},
};

}  // namespace

std::span<const OpDef> RotaryOps() { return kRotaryOps; }

}  // namespace hone::graph
