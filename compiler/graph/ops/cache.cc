// SPDX-License-Identifier: Apache-2.0
// Caches of keys and values: TensorScatter, which writes new positions into a cache.
#include <algorithm>
#include <optional>

#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

absl::Status CheckCache(const OpArgs& args, int64_t axis) {
  HONE_RETURN_IF_ERROR(args.inputs[0]->dtype == args.inputs[1]->dtype
                           ? absl::OkStatus()
                           : Malformed("the update (input 1) must have the type of the cache (input 0)"));
  const Shape& cache = args.inputs[0]->shape;
  const Shape& update = args.inputs[1]->shape;
  if (axis == 0) return Malformed("attribute axis names the batch; it must name a later dimension");
  if (update.size() != cache.size()) return Malformed("the update (input 1) must have the rank of the cache (input 0)");
  for (size_t d = 0; d < cache.size(); ++d) {
    if (d != static_cast<size_t>(axis) && update[d] != cache[d]) {
      return Malformed(fmt::format("cache and update differ in dimension {}; they may differ only along the axis", d));
    }
  }
  if (args.Has(2) && (args.inputs[2]->shape != Shape{cache[0]} || !ir::IsInt(args.inputs[2]->dtype))) {
    return Malformed("the write indices (input 2) must be one integer per entry of the batch");
  }
  return absl::OkStatus();
}

// Inputs: cache [batch, ..., positions, ...], update (fewer positions), write indices [batch] (default 0). The update
// is written from the write index on; in mode circular it continues at position 0 after the last.
OpResult TensorScatter(const OpArgs& args, StageBuilder& builder) {
  const Buffer& cache = args.inputs[0];
  const Buffer& update = args.inputs[1];
  HONE_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(args.Int("axis", -2), Rank(cache)));
  HONE_RETURN_IF_ERROR(CheckCache(args, axis));
  const std::string mode = args.String("mode", "linear");
  if (mode != "linear" && mode != "circular") {
    return Malformed(fmt::format("attribute mode is '{}'; it must be linear or circular", mode));
  }
  const size_t a = static_cast<size_t>(axis);
  if (update->shape[a] == 0 || Product(cache->shape) == 0) return Buffers{cache};
  const Expr written(update->shape[a]), positions(cache->shape[a]);
  return Buffers{Map(builder, "tensor_scatter", cache->dtype, cache->shape, [&](Indices i) {
    Expr place = args.Has(2) ? i[a] - To(DType::kInt64, Read(args.inputs[2], {i[0]})) : i[a];
    if (mode == "circular") place = FloorMod(place, positions);
    Exprs source(i.begin(), i.end());
    source[a] = Min(Max(place, Expr(0)), written - Expr(1));
    return MakeSelect(place >= Expr(0) && place < written, Read(update, std::move(source)), ReadHere(cache, i));
  })};
}

// The range for random test data: the whole update lies within the cache.
void WriteIndexRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input != 2) return;
  *low = 0;
  *high = 0;
  const size_t rank = Rank(args.inputs[0]);
  const absl::StatusOr<int64_t> axis = NormalizeAxis(args.Int("axis", -2), rank);
  if (!axis.ok() || Rank(args.inputs[1]) != rank) return;
  const size_t a = static_cast<size_t>(*axis);
  *high = static_cast<double>(std::max<int64_t>((args.inputs[0]->shape[a] - args.inputs[1]->shape[a]).min(), 0));
}

// Nothing if positions wrap around.
std::optional<WrittenRows> RowsOfUpdate(const Graph& graph, const Node& node) {
  if (StringAttribute(node, "mode", "linear") != "linear") return std::nullopt;
  const size_t rank = graph.values[node.inputs[0]].type.shape.size();
  return WrittenRows{.rows = node.inputs[1],
                     .starts = HasInput(node, 2) ? node.inputs[2] : kAbsent,
                     .axis = AxisFromFront(IntAttribute(node, "axis", -2), rank)};
}

constexpr OpDef kCacheOps[] = {
    {"TensorScatter", Checked<TensorScatter, 2>, {.writes_rows = RowsOfUpdate}, WriteIndexRange},
};

}  // namespace

std::span<const OpDef> CacheOps() { return kCacheOps; }

}  // namespace hone::graph
