// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <numeric>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

// Maps indices of a reshape's result (`to`) to those of its input (`from`). Dimensions are matched in groups of equal
// product, so that unchanged dimensions keep their plain index. The groups of open sizes are equal as expressions.
Exprs ReshapedIndices(Indices indices, const Shape& to, const Shape& from) {
  Exprs source(from.size(), Expr(0));
  size_t t = 0, f = 0;
  while (f < from.size()) {
    Shape to_group, from_group;
    Exprs group;
    Size to_product = 1, from_product = from[f];
    from_group.push_back(from[f++]);
    while (to_product != from_product) {
      const bool more_from = AlwaysLess(from_product, to_product) || (t == to.size() && f < from.size());
      if (!more_from && t < to.size()) {
        to_product *= to[t];
        to_group.push_back(to[t]);
        group.push_back(indices[t++]);
      } else {
        HONE_CHECK(f < from.size());
        from_product *= from[f];
        from_group.push_back(from[f++]);
      }
    }
    Exprs part = Unflatten(Flatten(group, to_group), from_group);
    for (size_t k = 0; k < part.size(); ++k) source[f - part.size() + k] = part[k];
  }
  return source;
}

OpResult ReshapeTo(const OpArgs& args, StageBuilder& builder, Shape shape) {
  const Buffer& x = args.inputs[0];
  if (shape == x->shape) return Buffers{x};
  if (Product(shape) != Product(x->shape)) {
    return Malformed(fmt::format("cannot reshape [{}] to [{}]: the numbers of elements differ",
                                 fmt::join(x->shape, ","), fmt::join(shape, ",")));
  }
  const bool empty = Product(shape) == 0;
  return Buffers{Map(builder, "reshape", x->dtype, shape, [&](Indices i) {
    return Read(x, empty ? Exprs(Rank(x), Expr(0)) : ReshapedIndices(i, shape, x->shape));
  })};
}

OpResult Reshape(const OpArgs& args, StageBuilder& builder) {
  Shape shape(args.Ints("shape", {}));  // an input since opset 5
  if (!HasAttribute(args, "shape")) {
    HONE_ASSIGN_OR_RETURN(shape, args.ConstantSizes(1));
  }
  const Shape& from = args.inputs[0]->shape;
  const bool allow_zero = args.Int("allowzero", 0) != 0;
  Size known = 1;
  std::ptrdiff_t unknown = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !allow_zero) {
      if (d >= from.size())
        return Malformed(fmt::format("dimension {} of the shape is 0, but input 0 has no such dimension", d));
      shape[d] = from[d];
    }
    if (shape[d].min() < -1)
      return Malformed(fmt::format("dimension {} of the shape is {}; it must be -1 or more", d, shape[d]));
    if (shape[d] != -1) {
      known *= shape[d];
      if (known.max() == std::numeric_limits<int64_t>::max())
        return Malformed("the shape is too large: it has more than 2^63 elements");
    } else if (unknown >= 0) {
      return Malformed("the shape has more than one -1");
    } else {
      unknown = static_cast<std::ptrdiff_t>(d);
    }
  }
  if (unknown >= 0) {
    if (known == 0 || !Divides(known, Product(from))) {
      return Malformed(fmt::format("the -1 in the shape [{}] cannot be derived from [{}]", fmt::join(shape, ","),
                                   fmt::join(from, ",")));
    }
    shape[static_cast<size_t>(unknown)] = ExactQuotient(Product(from), known);
  }
  return ReshapeTo(args, builder, std::move(shape));
}

OpResult Flatten2D(const OpArgs& args, StageBuilder& builder) {
  const Shape& from = args.inputs[0]->shape;
  int64_t axis = args.Int("axis", 1);
  const int64_t rank = static_cast<int64_t>(from.size());
  if (axis < -rank || axis > rank) return Malformed(fmt::format("axis {} is out of range for rank {}", axis, rank));
  if (axis < 0) axis += rank;
  const std::span<const Size> dims = from;
  const size_t split = static_cast<size_t>(axis);
  return ReshapeTo(args, builder, {Product(dims.first(split)), Product(dims.subspan(split))});
}

// As in ONNX Runtime, an empty list of axes means all dimensions of 1, and an axis may be named twice.
OpResult Squeeze(const OpArgs& args, StageBuilder& builder) {
  const Shape& from = args.inputs[0]->shape;
  HONE_ASSIGN_OR_RETURN(Dims axes, AxesFrom(args, 1));
  const bool all = axes.empty();
  for (int64_t& axis : axes) {
    HONE_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, from.size()));
  }
  Shape shape;
  for (size_t d = 0; d < from.size(); ++d) {
    const bool named = Contains(axes, static_cast<int64_t>(d));
    if (named && from[d] != 1)
      return Malformed(fmt::format("dimension {} is {}, not 1; it cannot be removed", d, from[d]));
    if (all && !from[d].IsFixed() && from[d].min() <= 1) {
      return Unsupported(
          fmt::format("without axes, and dimension {} ({}) may be 1: whether it is removed is known only at run time; "
                      "name the axes, "
                      "or give the dimension a range from 2 on with --shape",
                      d, from[d]));
    }
    if (!named && !(all && from[d] == 1)) shape.push_back(from[d]);
  }
  return ReshapeTo(args, builder, std::move(shape));
}

OpResult Unsqueeze(const OpArgs& args, StageBuilder& builder) {
  const Shape& from = args.inputs[0]->shape;
  if (!HasAttribute(args, "axes") && !args.Has(1)) return Malformed("axes are missing");
  HONE_ASSIGN_OR_RETURN(Dims axes, AxesFrom(args, 1));
  const size_t rank = from.size() + axes.size();
  HONE_ASSIGN_OR_RETURN(axes, NormalizeAxes(axes, rank));
  Shape shape;
  size_t next = 0;
  for (size_t d = 0; d < rank; ++d) {
    shape.push_back(Contains(axes, static_cast<int64_t>(d)) ? 1 : from[next++]);
  }
  return ReshapeTo(args, builder, std::move(shape));
}

constexpr OpDef kReshapeOps[] = {
    {"Flatten", Checked<Flatten2D, 1>, {.movement = Movement::kView}},
    {"Reshape", Checked<Reshape, 1>, {.movement = Movement::kView}},
    {"Squeeze", Checked<Squeeze, 1>, {.movement = Movement::kView}},
    {"Unsqueeze", Checked<Unsqueeze, 1>, {.movement = Movement::kView}},
};

}  // namespace

std::span<const OpDef> ReshapeOps() { return kReshapeOps; }

}  // namespace hone::graph
