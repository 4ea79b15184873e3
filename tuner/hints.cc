// SPDX-License-Identifier: Apache-2.0
#include "tuner/hints.h"

#include <algorithm>
#include <optional>

namespace hone::tuner {
namespace {

// The extents other than 1, sorted.
std::vector<int64_t> WithoutOnes(std::vector<int64_t> extents) {
  std::erase(extents, 1);
  std::sort(extents.begin(), extents.end());
  return extents;
}

std::vector<int64_t> ExtentsOf(const std::vector<ir::Axis>& axes) {
  std::vector<int64_t> extents;
  for (const ir::Axis& axis : axes) extents.push_back(axis.extent.max());
  return extents;
}

// The tile in the order of `extents`, if the axes have exactly these extents; nullopt otherwise. Axes of equal extent
// keep their order.
std::optional<space::TileHint> Placed(const std::vector<int64_t>& extents, std::vector<TiledAxis> axes) {
  space::TileHint hint = {extents, std::vector<int64_t>(extents.size(), 1)};
  std::erase_if(axes, [](const TiledAxis& axis) { return axis.extent == 1; });
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    const auto axis =
        std::find_if(axes.begin(), axes.end(), [&](const TiledAxis& a) { return a.extent == extents[d]; });
    if (axis == axes.end()) return std::nullopt;
    hint.tile[d] = axis->inner;
    axes.erase(axis);
  }
  return axes.empty() ? std::optional(std::move(hint)) : std::nullopt;
}

// As Placed, but tries all ways to join neighbouring axes as well.
std::optional<space::TileHint> Matched(const std::vector<int64_t>& extents, const std::vector<TiledAxis>& axes) {
  if (std::optional<space::TileHint> hint = Placed(extents, axes); hint.has_value()) return hint;
  for (size_t i = 0; i + 1 < axes.size(); ++i) {
    std::vector<TiledAxis> joined = axes;
    joined[i].extent *= axes[i + 1].extent;
    joined[i].inner *= axes[i + 1].inner;
    joined.erase(joined.begin() + static_cast<ptrdiff_t>(i) + 1);
    if (std::optional<space::TileHint> hint = Matched(extents, joined); hint.has_value()) return hint;
  }
  return std::nullopt;
}

}  // namespace

std::vector<TiledTask> FastestFirst(std::vector<TiledTask> tasks) {
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const TiledTask& a, const TiledTask& b) { return a.seconds < b.seconds; });
  return tasks;
}

std::vector<space::TileHint> HintsFor(const ir::Workload& workload, const std::vector<TiledTask>& tasks, size_t count) {
  std::vector<space::TileHint> hints;
  for (const ir::Stage& stage : workload.stages) {
    if (stage.reduce_axes.empty()) continue;
    const std::vector<int64_t> extents = ExtentsOf(stage.axes), reduction = WithoutOnes(ExtentsOf(stage.reduce_axes));
    for (const TiledTask& task : tasks) {
      if (hints.size() == count) return hints;
      if (task.output.size() > 6 || WithoutOnes(task.reduction) != reduction) continue;
      const std::optional<space::TileHint> hint = Matched(extents, task.output);
      const bool known = !hint.has_value() || std::find(hints.begin(), hints.end(), *hint) != hints.end();
      if (!known) hints.push_back(*hint);
    }
  }
  return hints;
}

}  // namespace hone::tuner
