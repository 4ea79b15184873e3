// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/sort_network.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

// Scatters, formulated per result element: each element finds its updates. They are therefore deterministic, need no
// atomics, and are tensor expressions like all other operators. With few updates, every element checks all updates that
// may hit it, by a reduction. Otherwise the updates are sorted by destination, and an element finds its own by binary
// search. For constant indices passes/lower_scatter.h has a form without any search.

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

// How several updates of one element are combined; kNone: the last one wins.
absl::StatusOr<Reduction> ReadReduction(const OpArgs& args) {
  const std::string name = args.String("reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kSum;
  if (name == "mul") return Reduction::kProd;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  return Malformed(fmt::format("attribute reduction is '{}'; it must be none, add, mul, max or min", name));
}

// The updates that may hit an element: the index space `extents` to search, a predicate for the ones that hit, and the
// value of each. A hit depends on the element's first `indexed` dimensions only.
struct Updates {
  Shape extents;
  size_t indexed;
  std::function<Expr(Indices element, Indices update)> hits;
  std::function<Expr(Indices element, Indices update)> value;  // in compute type
  // For each update its place (destination number, below `count`) along `axis`; all other dimensions are the element's
  // own. Null if updates cannot be grouped into such lines.
  Buffer places;
  size_t axis = 0;
  Size count = 0;
  // Convert between an element's indices and those of `places`: the axes of `places` with the place at `axis`, then
  // axes that only the values have. to_element is the inverse; its result is for `value`, which reads only those axes
  // of the indexed dimensions.
  std::function<Exprs(Indices element)> to_line;
  std::function<Exprs(Indices line)> to_element;
  Shape line;  // extents of the line space, with the number of updates at `axis`
};

// Returns true if comparing all elements with all updates takes longer than sorting the updates. Sorting costs about
// fifty stages plus 1,500 comparisons per update.
bool ShouldSort(const Updates& updates, const Size& elements) {
  constexpr int64_t kStages = int64_t{1} << 26, kOfOne = 1500, kMost = int64_t{1} << 24;
  if (updates.places == nullptr || ir::SizeOf(updates.places->dtype) > 4) return false;
  const int64_t searched = Product(updates.extents).max(), sorted = Product(updates.places->shape).max();
  return sorted <= kMost && elements.max() > (kStages + kOfOne * sorted) / searched;
}

// The updates sorted by place, and the start of each place's updates.
struct SortedUpdates {
  SortedAxis order;
  Buffer first;  // count + 1 entries along the axis

  // The position in sorted order at which the updates of the place in `line` begin; with `after`, of a later place.
  Expr Begin(const Updates& updates, Indices line, int64_t after) const {
    Exprs place(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(Rank(first)));
    place[updates.axis] = place[updates.axis] + Expr(after);
    return MakeLoad(first, std::move(place));
  }
};

SortedUpdates SortUpdates(StageBuilder& builder, const Updates& updates) {
  SortedAxis order = SortByNetwork(builder, updates.places, updates.axis, /*descending=*/false);
  Buffer first = FirstOfKeys(builder, order, updates.places->shape, updates.count + 1);
  return {std::move(order), std::move(first)};
}

// The number of the last update of each place; -1 if there is none.
Buffer FindLast(StageBuilder& builder, const Buffer& data, const Updates& updates) {
  const DType narrow = NarrowestIndex(Product(updates.extents));
  const auto indexed = static_cast<std::ptrdiff_t>(updates.indexed);
  const Shape places(data->shape.begin(), data->shape.begin() + indexed);
  if (ShouldSort(updates, Product(places))) {
    const SortedUpdates sorted = SortUpdates(builder, updates);
    return builder.Compute("last", narrow, places, [&](Indices i) {
      Exprs element(i.begin(), i.end());
      element.resize(Rank(data), Expr(0));
      const Exprs line = updates.to_line(element);
      const Expr end = sorted.Begin(updates, line, 1);
      const Expr update = sorted.order.PlaceAt(Indices(line).first(Rank(sorted.first)), end - Expr(1));
      return MakeSelect(sorted.Begin(updates, line, 0) < end, To(narrow, update), Number(narrow, -1));
    });
  }
  return builder.Reduce("last", narrow, places, updates.extents, Reduction::kMax, [&](Indices i, Indices r) {
    const Expr update = To(narrow, Flatten(r, updates.extents));
    return MakeSelect(updates.hits(i, r), update, Number(narrow, -1));
  });
}

Buffer ScatterLast(StageBuilder& builder, const Buffer& data, const Updates& updates) {
  const auto indexed = static_cast<std::ptrdiff_t>(updates.indexed);
  const Buffer last = FindLast(builder, data, updates);
  return Map(builder, "scatter", data->dtype, data->shape, [&](Indices i) {
    const Exprs own(i.begin(), i.end());
    const Expr position = To(DType::kInt64, MakeLoad(last, {i.begin(), i.begin() + indexed}));
    return MakeSelect(position < Expr(0), Read(data, own), updates.value(i, Unflatten(position, updates.extents)));
  });
}

// A tree of partial results over 1, 2, 4, ... consecutive sorted updates. The updates of one element are covered by at
// most two nodes of each level, without overlap.
Buffer CombineSorted(StageBuilder& builder, const Buffer& data, const Updates& updates, Reduction reduction) {
  const DType wide = ComputeType(data->dtype);
  const Expr nothing = ir::Identity(reduction, {wide, 1});
  const SortedUpdates sorted = SortUpdates(builder, updates);
  const size_t a = updates.axis;
  Shape shape = updates.line;
  shape[a] = sorted.order.Length();
  Buffers levels = {builder.Compute("sorted", wide, shape, [&](Indices i) {
    const Expr update = sorted.order.PlaceAt(i.first(Rank(sorted.first)), i[a]);
    const Expr value = updates.value(updates.to_element(i), Unflatten(update, updates.extents));
    return MakeSelect(i[a] < Expr(Product(updates.extents)), value, nothing);
  })};
  for (int64_t nodes = sorted.order.Length() / 2; nodes >= 1; nodes /= 2) {
    shape[a] = nodes;
    levels.push_back(builder.Compute("pairs", wide, shape, [&](Indices i) {
      Exprs left(i.begin(), i.end()), right = left;
      left[a] = i[a] * Expr(2);
      right[a] = i[a] * Expr(2) + Expr(1);
      return ir::Combine(reduction, MakeLoad(levels.back(), left), MakeLoad(levels.back(), right));
    }));
  }
  return builder.Compute("updates", wide, data->shape, [&](Indices i) {
    const Exprs line = updates.to_line(i);
    const Expr begin = sorted.Begin(updates, line, 0), end = sorted.Begin(updates, line, 1);
    Expr all = nothing;
    for (size_t k = 0; k < levels.size(); ++k) {
      const int64_t size = int64_t{1} << k;
      const Expr from = FloorDiv(begin + Expr(size - 1), Expr(size)), to = FloorDiv(end, Expr(size));
      const auto node = [&](const Expr& odd, const Expr& number) {
        Exprs place = line;
        place[a] = number;
        const Expr is_there = from < to && Equals(FloorMod(odd, Expr(2)), Expr(1));
        return MakeSelect(is_there, MakeLoad(levels[k], std::move(place)), nothing);
      };
      all = ir::Combine(reduction, ir::Combine(reduction, all, node(from, from)), node(to, to - Expr(1)));
    }
    return all;
  });
}

Buffer ScatterCombined(StageBuilder& builder, const Buffer& data, const Updates& updates, Reduction reduction) {
  const DType wide = ComputeType(data->dtype);
  Buffer combined;
  if (ShouldSort(updates, Product(data->shape))) {
    combined = CombineSorted(builder, data, updates, reduction);
  } else {
    combined = builder.Reduce("updates", wide, data->shape, updates.extents, reduction, [&](Indices i, Indices r) {
      return MakeSelect(updates.hits(i, r), updates.value(i, r), ir::Identity(reduction, {wide, 1}));
    });
  }
  return Map(builder, "scatter", data->dtype, data->shape, [&](Indices i) {
    const Exprs own(i.begin(), i.end());
    return ir::Combine(reduction, Read(data, own), Read(combined, own));
  });
}

OpResult Scatter(const OpArgs& args, StageBuilder& builder, const Updates& updates) {
  const Buffer& data = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(Reduction reduction, ReadReduction(args));
  if (Product(updates.extents) == 0) return Buffers{data};
  if (reduction == Reduction::kNone) return Buffers{ScatterLast(builder, data, updates)};
  if (data->dtype == DType::kBool) return Malformed("bool elements cannot be reduced");
  return Buffers{ScatterCombined(builder, data, updates, reduction)};
}

absl::Status CheckScatter(const OpArgs& args) {
  if (!ir::IsInt(args.inputs[1]->dtype)) return Malformed("the indices (input 1) must be integers");
  if (args.inputs[2]->dtype != args.inputs[0]->dtype)
    return Malformed("the updates (input 2) must be of the type of input 0");
  return absl::OkStatus();
}

OpResult ScatterElements(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckScatter(args));
  const Buffer& data = args.inputs[0];
  const Buffer& indices = args.inputs[1];
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", 0), Rank(data)));
  const size_t a = static_cast<size_t>(axis);
  if (indices->shape != args.inputs[2]->shape || Rank(indices) != Rank(data)) {
    return Malformed("indices and updates must be of one shape, of the rank of input 0");
  }
  HONE_RETURN_IF_ERROR(CheckConstantIndices(args, 1, {data->shape[a]}));
  Shape rest = indices->shape;
  rest[a] = data->shape[a];
  for (size_t d = 0; d < Rank(data); ++d) {
    if (!AlwaysAtMost(rest[d], data->shape[d]))
      return Malformed(fmt::format("dimension {} of the indices is larger than that of input 0", d));
  }
  // Only updates on the element's own line along the axis can hit it.
  auto at = [&](Indices element, Indices update) {
    Exprs source(element.begin(), element.end());
    source[a] = update[0];
    return source;
  };
  Updates updates;
  updates.extents = {indices->shape[a]};
  updates.indexed = Rank(data);
  if (Product(indices->shape) == 0) updates.extents = {0};
  const DType narrow = NarrowestIndex(data->shape[a]);
  const Buffer places = Map(builder, "place", narrow, indices->shape, [&](Indices i) {
    return To(narrow, ReadIndex(indices, {i.begin(), i.end()}, data->shape[a]));
  });
  updates.hits = [&](Indices i, Indices r) {
    Expr hit;
    for (size_t d = 0; d < Rank(data); ++d) {
      if (rest[d] == data->shape[d]) continue;
      Expr inside = i[d] < Expr(rest[d]);
      hit = hit.defined() ? hit && inside : inside;
    }
    Expr same = Equals(Read(places, at(i, r)), To(narrow, i[a]));
    return hit.defined() ? MakeSelect(hit, same, ir::MakeBool(false))
                         : same;  // lazy, because there is no index outside
  };
  updates.value = [&](Indices i, Indices r) { return Read(args.inputs[2], at(i, r)); };
  if (rest == data->shape) {
    updates.places = places;
    updates.axis = a;
    updates.count = data->shape[a];
    updates.to_line = updates.to_element = [](Indices i) { return Exprs(i.begin(), i.end()); };
    updates.line = indices->shape;
  }
  return Scatter(args, builder, updates);
}

OpResult ScatterND(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckScatter(args));
  const Buffer& data = args.inputs[0];
  const Buffer& indices = args.inputs[1];
  if (Rank(indices) < 1 || !AlwaysAtMost(indices->shape.back(), Rank(data))) {
    return Malformed("the index tuples (last dimension of input 1) are longer than the rank of input 0");
  }
  HONE_ASSIGN_OR_RETURN(const int64_t indices_per_tuple,
                        FixedSize(indices->shape.back(), "the number of indices in a tuple"));
  const size_t depth = static_cast<size_t>(indices_per_tuple);
  const auto indexed_end = data->shape.begin() + static_cast<std::ptrdiff_t>(depth);
  HONE_RETURN_IF_ERROR(CheckConstantIndices(args, 1, Shape(data->shape.begin(), indexed_end)));
  Shape shape(indices->shape.begin(), indices->shape.end() - 1);
  Updates updates;
  updates.extents = shape.empty() ? Shape{1} : shape;
  updates.indexed = depth;
  const size_t tuple_rank = shape.size();
  shape.insert(shape.end(), indexed_end, data->shape.end());
  if (args.inputs[2]->shape != shape)
    return Malformed("the shape of the updates (input 2) does not fit inputs 0 and 1");
  // Each place as one row-major number among those that tuples can address.
  const Shape named(data->shape.begin(), indexed_end);
  const DType narrow = NarrowestIndex(Product(named));
  const Buffer places = Map(builder, "place", narrow, updates.extents, [&](Indices u) {
    Exprs tuple(u.begin(), u.begin() + static_cast<std::ptrdiff_t>(tuple_rank)), place;
    tuple.push_back(Expr(0));
    for (size_t d = 0; d < depth; ++d) {
      tuple.back() = Expr(static_cast<int64_t>(d));
      place.push_back(ReadIndex(indices, tuple, data->shape[d]));
    }
    return To(narrow, Flatten(place, named));
  });
  updates.hits = [&](Indices i, Indices r) {
    return Equals(Read(places, {r.begin(), r.end()}), To(narrow, Flatten(i.first(depth), named)));
  };
  updates.value = [&](Indices i, Indices r) {
    Exprs source(r.begin(), r.begin() + static_cast<std::ptrdiff_t>(tuple_rank));
    source.insert(source.end(), i.begin() + static_cast<std::ptrdiff_t>(depth), i.end());
    return Read(args.inputs[2], std::move(source));
  };
  const Size searched = Product(updates.extents);
  updates.places = Map(builder, "place", narrow, {searched},
                       [&](Indices u) { return Read(places, Unflatten(u[0], updates.extents)); });
  updates.count = Product(named);
  updates.to_line = [&](Indices i) {
    Exprs line = {Flatten(i.first(depth), named)};
    line.insert(line.end(), i.begin() + static_cast<std::ptrdiff_t>(depth), i.end());
    return line;
  };
  updates.to_element = [&](Indices line) {
    Exprs element(depth, Expr(0));
    element.insert(element.end(), line.begin() + 1, line.end());
    return element;
  };
  updates.line = {searched};
  updates.line.insert(updates.line.end(), indexed_end, data->shape.end());
  return Scatter(args, builder, updates);
}

void ScatteredIndexRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input != 1) return;
  const Shape& shape = args.inputs[0]->shape;
  int64_t extent = shape.empty() ? 1 : shape.front().max();
  for (const Size& size : shape) extent = std::min(extent, size.max());
  *low = 0;
  *high = static_cast<double>(std::max<int64_t>(extent - 1, 0));
}

constexpr OpDef kScatterOps[] = {
    {"Scatter", Checked<ScatterElements, 3>, {}, ScatteredIndexRange},
    {"ScatterElements", Checked<ScatterElements, 3>, {}, ScatteredIndexRange},
    {"ScatterND", Checked<ScatterND, 3>, {}, ScatteredIndexRange},
};

}  // namespace

std::span<const OpDef> ScatterOps() { return kScatterOps; }

}  // namespace hone::graph
