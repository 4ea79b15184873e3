// SPDX-License-Identifier: Apache-2.0
// What of a lane tile's operands goes through shared memory, with how much room behind each row.
#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/status.h"
#include "compiler/space/templates/lane_tile.h"

namespace hone::space {
namespace {

constexpr int64_t kBanks = 32;
constexpr int64_t kPad = 4;  // elements that keep rows of shared memory out of the same banks

}  // namespace

bool LaneTile::RunsOver(const ir::Load& load) const {
  if (!instruction_.has_value()) return false;
  const std::pair<int, int64_t> tiles[] = {
      {second_, more_rows_ * lanes_z_}, {row_, rows_ * lanes_y_}, {vector_, width_ * lanes_x_}};
  const ir::Ranges ranges = AxisRanges(reduced_);
  return std::ranges::any_of(tiles, [&](const auto& tile) {
    const auto& [axis, size] = tile;
    return axis >= 0 && Extent(axis) % size != 0 && StrideOf(load, ReducedName(axis), ranges) != 0;
  });
}

bool LaneTile::PaysToStage(const ir::Load& load) const {
  const int64_t others = VariesAlongColumns(load) ? lanes_y_ * lanes_z_ : lanes_x_;
  const double bytes = StepBytes(load) * static_cast<double>(step_);
  return sketch_.target.memory.shared_gain > 1 && others > 1 && 2 * bytes <= static_cast<double>(SharedBytes());
}

int64_t LaneTile::RowDims(const ir::Load& load) const {
  if (!instruction_.has_value() || ir::EntryOf(*instruction_).chunk != 0) return 1;
  const auto along = [&](const ir::Expr& index) { return ir::UsesVar(index, step_axis_); };
  const auto steps = std::find_if(load.indices.rbegin(), load.indices.rend(), along);
  return steps == load.indices.rend() ? 1 : 1 + (steps - load.indices.rbegin());
}

int64_t LaneTile::CopyBytes(const ir::Load& load, int64_t pad) const {
  AxisExtents extents;
  for (const ir::Axis& axis : reduction().reduce_axes) extents[axis.name] = axis.extent;
  extents[step_axis_] = step_;
  const std::tuple<int, int64_t, int64_t> tiles[] = {
      {second_, lanes_z_, more_rows_}, {row_, lanes_y_, rows_}, {vector_, lanes_x_ * Vector(), Up(width_, Vector())}};
  for (const auto& [axis, together, times] : tiles) {
    if (axis >= 0) extents[ReducedName(axis)] = Up(std::min(together * times, Extent(axis)), together) * together;
  }
  std::vector<int64_t> shape = RegionOf(load, AxisRanges(reduction()), extents);
  shape[shape.size() - static_cast<size_t>(RowDims(load))] += pad;
  int64_t bytes = ir::SizeOf(load.buffer->dtype);
  for (const int64_t extent : shape) bytes *= extent;
  return ir::SharedRoom(bytes);
}

std::vector<bool> LaneTile::FindStaged(const std::vector<ir::Load>& loads) {
  std::vector<bool> staged;
  room_ = sketch_.target.memory.shared_bytes;
  for (const ir::Load& load : loads) {
    const int64_t bytes = CopyBytes(load, 0);
    staged.push_back(RunsOver(load) || (PaysToStage(load) && bytes <= room_));
    if (staged.back()) room_ -= bytes;
  }
  return staged;
}

absl::Status LaneTile::StageOperands() {
  if (lanes_x_ * lanes_y_ * lanes_z_ == 1) return absl::OkStatus();  // nobody to share with
  std::vector<ir::Load> loads = LoadsOf(reduction());
  std::erase_if(loads, [](const ir::Load& load) { return load.buffer->shape.empty(); });
  const std::vector<bool> staged = FindStaged(loads);
  int number = 0;
  for (size_t i = 0; i < loads.size(); ++i) {
    const ir::Load& load = loads[i];
    if (!schedule::Reads(reduction(), load.buffer.get())) continue;
    const std::string id = std::to_string(number++);
    if (!HasBlocks() && !RunsOver(load) && Choose("stage" + id, {0, 1}, staged[i] ? 1 : 0) == 0) continue;
    std::string name = load.buffer->name;
    const schedule::Nest* nest = sketch_.state.FindNest(load.buffer.get());
    const bool own = nest != nullptr && nest->AtRoot() && !nest->touched && !nest->prepared &&
                     nest->stage.reduction == ir::Reduction::kNone && !sketch_.state.IsOutput(load.buffer.get()) &&
                     Readers(sketch_.state, load.buffer.get()).size() == 1;
    if (!own) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::CacheRead{name, stage_}));
      name += "r" + stage_;
    }
    if (HasBlocks()) {
      if (VariesAlongColumns(load)) columns_ = name;
      HONE_RETURN_IF_ERROR(StageBlocks(name));
      continue;
    }
    const int64_t pad = ChoosePad("pad" + id, load);
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::StoreIn{name, ir::Scope::kShared, pad, pad > 0 ? RowDims(load) : 1}));
    shared_.push_back(name);
  }
  return absl::OkStatus();
}

int64_t LaneTile::ChoosePad(const std::string& name, const ir::Load& load) {
  std::vector<int64_t> options = {0, 1, kPad};
  int64_t preferred = 0;
  if (instruction_.has_value()) {
    std::tie(options, preferred) = InstructionPads(load);
  } else {
    const int64_t neighbours = sketch_.target.hierarchy.lane_width / lanes_x_;  // along rows, that load at once
    const bool clashes = !VariesAlongColumns(load) && sketch_.target.memory.shared_gain > 1 &&
                         lanes_y_ * lanes_z_ > 1 && neighbours * step_ > kBanks;
    if (clashes) preferred = kPad;
  }
  const auto more = [&](int64_t pad) { return CopyBytes(load, pad) - CopyBytes(load, 0); };
  while (preferred > 0 && more(preferred) > room_) preferred = *std::prev(std::ranges::lower_bound(options, preferred));
  const int64_t pad = Choose(name, options, preferred);
  room_ -= more(pad);
  return pad;
}

}  // namespace hone::space
