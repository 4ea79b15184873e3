// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/sketch/tiling.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/operands.h"
#include "compiler/space/sketch/shared_tile.h"

namespace hone::space {
namespace {

constexpr double kSerialFlopsMax = 100e3;  // a reduction of at most so many operations runs on one thread

}  // namespace

Tiling::Tiling(Sketch& of, std::string read_by, std::string reduction, std::string names)
    : sketch(of),
      reader(std::move(read_by)),
      stage(std::move(reduction)),
      sums(stage),
      prefix(std::move(names)),
      out(sketch.Get(reader).stage),
      letters(sketch.target.facts().tiling),
      levels(static_cast<size_t>(std::ranges::count(letters, 'S'))),
      first_reduction(letters.find('R')) {
  HONE_CHECK(levels >= 2 && first_reduction >= 1 && letters.ends_with("RS"));
  for (const ir::Axis& axis : StageOf(stage).reduce_axes) steps *= axis.extent.max();
}

bool Tiling::WorthThreads() const {
  double flops = 2.0 * static_cast<double>(steps);
  for (const ir::Axis& axis : out.axes) flops *= static_cast<double>(axis.extent.max());
  return flops > kSerialFlopsMax && sketch.target.threads > 1;
}

double Tiling::CachesFilled() const {
  const target::Memory& memory = sketch.target.memory;
  int64_t bytes = ir::NumElements(*out.buffer) * ir::SizeOf(out.buffer->dtype);
  for (const ir::Load& load : LoadsOf(StageOf(stage))) {
    bytes += ir::NumElements(*load.buffer) * ir::SizeOf(load.buffer->dtype);
  }
  return static_cast<double>(bytes) /
         static_cast<double>(std::max({memory.l1_bytes, memory.l2_bytes, memory.l3_bytes}));
}

std::vector<int64_t> Tiling::Block() const {
  std::vector<int64_t> block(rank());
  for (size_t d = 0; d < rank(); ++d) block[d] = sizes[0][d] / TileSize(d);
  return block;
}

int64_t Tiling::TaskBytes(const std::vector<int64_t>& block, const std::vector<std::string>* only) const {
  const ir::Stage& s = StageOf(sums);
  AxisExtents extents;
  for (const ir::Axis& axis : s.reduce_axes) extents[axis.name] = axis.extent.max();
  for (size_t d = 0; d < s.axes.size(); ++d) {
    extents[s.axes[d].name] = d < rank() ? std::min(block[d] * TileSize(d), Extent(d)) : s.axes[d].extent.max();
  }
  int64_t bytes = 0;
  for (const ir::Load& load : LoadsOf(s)) {
    const bool counts = only == nullptr || std::find(only->begin(), only->end(), load.buffer->name) != only->end();
    if (counts) bytes += RegionBytes(load, AxisRanges(s), extents);
  }
  return bytes;
}

absl::Status ScheduleTiles(Sketch& sketch, const std::string& reader, const std::string& stage,
                           const std::string& prefix) {
  Tiling t(sketch, reader, stage, prefix);
  HONE_RETURN_IF_ERROR(PlaceProducers(t));
  HONE_ASSIGN_OR_RETURN(const bool tiled, ChooseTile(t));
  if (!tiled) return absl::OkStatus();
  if (t.rank() == 0) return TileSums(t);  // the result is one number, so the reader has no loops
  ChooseLevels(t);
  HONE_RETURN_IF_ERROR(PackOperands(t));
  HONE_RETURN_IF_ERROR(SplitReduction(t));
  HONE_RETURN_IF_ERROR(CopyOperands(t));
  HONE_RETURN_IF_ERROR(TileReader(t));
  HONE_RETURN_IF_ERROR(ComputeSums(t));
  return ComputeProducers(t);
}

}  // namespace hone::space
