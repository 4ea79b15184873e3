// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/templates/lane_tile.h"

#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <tuple>

#include "base/status.h"
#include "compiler/space/sketch/lanes.h"

namespace hone::space {
namespace {

constexpr int64_t kLongestStep = 16, kShortestStep = 4;  // preferred
constexpr int64_t kMostStep = 32;
constexpr double kBuffers = 3;
constexpr int64_t kGroups = 3;  // of a unit, at least

// The last axis that has more than one element; -1: none has.
int VectorAxisOf(const ir::Stage& s) {
  int vector = static_cast<int>(s.axes.size()) - 1;
  while (vector >= 0 && s.axes[static_cast<size_t>(vector)].extent == 1) --vector;
  return vector;
}

bool VariesAlong(const ir::Load& load, int axis, const ir::Stage& s) {
  return StrideOf(load, s.axes[static_cast<size_t>(axis)].name, AxisRanges(s)).value_or(1) != 0;
}

// Whether some index of the load is moved by the axis and by another one of the output.
bool BeginsApart(const ir::Load& load, int axis, const ir::Stage& s) {
  const auto moves = [](const ir::Axis& a, const ir::Expr& index) {
    return a.extent > 1 && ir::UsesVar(index, a.name);
  };
  return axis >= 0 && std::ranges::any_of(load.indices, [&](const ir::Expr& index) {
           const auto moved_by = [&](const ir::Axis& a) { return moves(a, index); };
           return moved_by(s.axes[static_cast<size_t>(axis)]) && std::ranges::count_if(s.axes, moved_by) > 1;
         });
}

// The axes along which what varies with the vector axis is used again, the longest first.
std::vector<int> RowAxesOf(const ir::Stage& s, int vector) {
  std::vector<int> axes;
  const auto extent = [&](int d) { return s.axes[static_cast<size_t>(d)].extent; };
  for (int d = 0; d < static_cast<int>(s.axes.size()); ++d) {
    const bool reuses = std::ranges::any_of(
        LoadsOf(s), [&](const ir::Load& load) { return VariesAlong(load, vector, s) && !VariesAlong(load, d, s); });
    if (d != vector && extent(d) > 1 && reuses) axes.push_back(d);
  }
  std::ranges::stable_sort(axes, std::greater<>(), extent);
  return axes;
}

}  // namespace

bool FillsLaneTile(const ir::Stage& s, const target::Target& target) {
  const int vector = VectorAxisOf(s);
  if (vector < 0) return false;
  const std::vector<int> rows = RowAxesOf(s, vector);
  int64_t results = s.axes[static_cast<size_t>(vector)].extent;
  for (const int d : std::span(rows).first(std::min<size_t>(2, rows.size()))) {
    results *= s.axes[static_cast<size_t>(d)].extent;
  }
  return !rows.empty() && results >= target.hierarchy.lane_width;
}

absl::Status LaneTile::Run() {
  FindVectorAxis();
  if (vector_ < 0) return absl::OkStatus();
  FindStepAxis();
  ChooseShape();
  if (!given_.has_value()) {
    HONE_ASSIGN_OR_RETURN(const bool in_parts, ReduceInParts());
    if (in_parts) return absl::OkStatus();
  }
  HONE_RETURN_IF_ERROR(ChooseTile());
  ChooseStep();
  HONE_RETURN_IF_ERROR(PackConstants());
  HONE_RETURN_IF_ERROR(StageOperands());
  HONE_RETURN_IF_ERROR(TileOutput());
  HONE_RETURN_IF_ERROR(TileReduction());
  return FillShared();
}

int64_t LaneTile::Choose(std::string_view name, std::vector<int64_t> options, int64_t preferred) {
  return sketch_.chooser.OneOf(prefix_ + std::string(name), std::move(options), preferred);
}

int64_t LaneTile::ChooseNear(std::string_view name, const std::vector<int64_t>& options, int64_t preferred) {
  const auto nearest = std::ranges::min_element(
      options, {}, [&](int64_t option) { return std::abs(std::log2(option) - std::log2(preferred)); });
  return Choose(name, options, *nearest);
}

bool LaneTile::VariesAlongColumns(const ir::Load& load) const { return VariesAlong(load, vector_, reduced_); }

void LaneTile::FindVectorAxis() { vector_ = VectorAxisOf(out_); }

std::vector<std::pair<int, int>> LaneTile::RowAxes() const {
  const std::vector<int> axes = RowAxesOf(reduced_, vector_);
  if (axes.size() < 2) return {{axes.empty() ? -1 : axes[0], -1}};
  std::vector<std::pair<int, int>> pairs;
  for (size_t a = 0; a < axes.size(); ++a) {
    for (size_t b = a + 1; b < axes.size(); ++b) pairs.emplace_back(axes[a], axes[b]);
  }
  return pairs;
}

void LaneTile::FindStepAxis() {
  const ir::Stage& s = reduction();
  const auto longest = std::ranges::max_element(s.reduce_axes, {}, &ir::Axis::extent);
  step_place_ = given_.has_value() ? given_->step_place : longest - s.reduce_axes.begin();
  step_axis_ = s.reduce_axes[static_cast<size_t>(step_place_)].name;
  steps_ = s.reduce_axes[static_cast<size_t>(step_place_)].extent;
  window_ = 1;
  for (const ir::Axis& axis : s.reduce_axes) {
    if (axis.name == step_axis_) continue;
    inner_reduce_.push_back(axis.name);
    window_ *= axis.extent;
  }
}

double LaneTile::StepBytes(const ir::Load& load, int64_t rows, int64_t more_rows) const {
  AxisExtents extents;
  for (const ir::Axis& axis : reduction().reduce_axes) extents[axis.name] = axis.name == step_axis_ ? 1 : axis.extent;
  if (row_ >= 0) extents[ReducedName(row_)] = rows;
  if (second_ >= 0) extents[ReducedName(second_)] = more_rows;
  return static_cast<double>(RegionBytes(load, AxisRanges(reduction()), extents));
}

double LaneTile::StepBytes(const ir::Load& load) const {
  const int64_t columns = VariesAlongColumns(load) ? width_ * lanes_x_ : 1;
  return StepBytes(load, rows_ * lanes_y_, more_rows_ * lanes_z_) * static_cast<double>(columns);
}

std::optional<LaneWork> LaneTile::Work() const {
  LaneWork work;
  work.columns = Extent(vector_), work.rows = Extent(row_), work.more_rows = Extent(second_);
  for (const ir::Axis& axis : out_.axes) work.others *= axis.extent;
  work.others /= work.columns * work.rows * work.more_rows;
  work.steps = steps_, work.window = window_;
  bool shares_columns = false;
  for (const ir::Load& load : LoadsOf(reduced_)) {
    work.rows_begin_apart |= BeginsApart(load, row_, reduced_);
    work.more_rows_begin_apart |= BeginsApart(load, second_, reduced_);
    const double bytes = StepBytes(load, 1, 1);
    if (VariesAlongColumns(load)) {
      work.column_bytes += bytes;
    } else {
      shares_columns = true;
      work.row_bytes += bytes;
      work.row_growth = StepBytes(load, 2, 1) / bytes - 1;
      work.more_growth = StepBytes(load, 1, 2) / bytes - 1;
    }
  }
  if (sketch_.target.memory.shared_gain <= 1 || !shares_columns) return std::nullopt;
  return work;
}

LaneTile::Shapes LaneTile::ShapesWith(std::optional<ir::TensorInstruction> instruction, int64_t sharing) {
  Shapes found;
  for (const auto& pair : RowAxes()) {
    std::tie(row_, second_) = pair;
    std::optional<LaneWork> work = Work();
    LaneShape shape;
    double cycles = 0;
    if (work.has_value() && instruction.has_value()) {
      const ir::TensorInstructionEntry& entry = ir::EntryOf(*instruction);
      work->sharing = sharing;
      for (const ir::Load& load : LoadsOf(reduced_)) {
        const bool before = IsLaidOutBefore(load, entry), columns = VariesAlongColumns(load);
        if (before) cycles += LayoutCycles(*load.buffer, sketch_.target);
        if (!entry.cuts || schedule::IsFixed(sketch_.state, load.buffer.get())) continue;
        (columns ? work->rounds_columns : work->rounds_rows) |= !before || (entry.loads_a && !columns);
      }
      shape = BestInstructionShape(*work, *instruction, sketch_.target);
      cycles += InstructionCycles(*work, shape, *instruction, sketch_.target);
      // The rows of a block follow one another, and so do swizzled ones, whoever loads them.
      const bool follow = entry.blocks && (!entry.loads_a || shape.staged * ir::SizeOf(entry.a) == ir::kSwizzledRow);
      const bool apart =
          follow && row_ >= 0 && std::ranges::any_of(LoadsOf(reduced_), [&](const ir::Load& load) {
            return !VariesAlongColumns(load) && !MovesByOne(load, ReducedName(row_), AxisRanges(reduced_));
          });
      if (apart) cycles = std::numeric_limits<double>::infinity();
    } else if (work.has_value()) {
      shape = BestLaneShape(*work, sketch_.target);
      cycles = LaneCycles(*work, shape, sketch_.target);
    }
    found.shapes.push_back(shape);
    found.cycles.push_back(cycles);
  }
  return found;
}

void LaneTile::ChooseShape() {
  const std::vector<std::pair<int, int>> pairs = RowAxes();
  if (given_.has_value()) {
    axes_ = given_->axes, shape_ = given_->shape, instruction_ = given_->instruction, sharing_ = given_->sharing;
  } else {
    Shapes shapes = ShapesWith({});
    ChooseInstruction(&shapes);
    if (HasBlocks()) ChooseSharing(&shapes);
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (shapes.cycles[i] < std::numeric_limits<double>::infinity()) numbers.push_back(static_cast<int64_t>(i));
    }
    axes_ = numbers.size() == 1 ? numbers[0] : Choose("axes", numbers, shapes.best());
    shape_ = shapes.shapes[static_cast<size_t>(axes_)];
  }
  std::tie(row_, second_) = pairs[static_cast<size_t>(axes_)];
}

absl::StatusOr<bool> LaneTile::ReduceInParts() {
  std::vector<int64_t> options = LaneParts(steps_);
  if (instruction_.has_value()) {
    std::erase_if(options, [&](int64_t parts) { return steps_ / parts % ir::EntryOf(*instruction_).k != 0; });
  }
  if (sketch_.target.memory.shared_gain <= 1 || options.size() == 1) return false;
  const int64_t parts = ChooseNear("parts", options, shape_.parts);
  if (parts == 1) return false;
  HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Rfactor{stage_, step_axis_, steps_ / parts, false, true}));
  HONE_RETURN_IF_ERROR(sketch_.Do(schedule::CacheWrite{stage_ + "f"}));
  HONE_RETURN_IF_ERROR(
      LaneTile(sketch_, stage_ + "f", stage_ + "fc", prefix_, Given{axes_, step_place_, shape_, instruction_, sharing_})
          .Run());
  HONE_RETURN_IF_ERROR(ScheduleLaneReduction(sketch_, reader_, stage_));
  return true;
}

int64_t LaneTile::HintedSize(int axis, int64_t otherwise) const {
  return axis < 0 ? otherwise : sketch_.chooser.Hinted(ExtentsOf(out_), static_cast<size_t>(axis), otherwise);
}

absl::Status LaneTile::ChooseTile() {
  if (instruction_.has_value()) return ChooseInstructionTile();
  const int64_t most_lanes = sketch_.target.hierarchy.max_lanes;
  const int64_t elements = sketch_.target.memory.registers_bytes / 8;  // half the registers for accumulators
  width_ = ChooseNear("width", Powers(std::min<int64_t>({16, PowerOfTwo(Extent(vector_)), elements})),
                      HintedSize(vector_, shape_.width));
  rows_ = ChooseNear("rows", LaneSizes(Extent(row_), std::min<int64_t>(16, elements / width_)),
                     HintedSize(row_, shape_.rows));
  lanes_x_ = ChooseNear("lanes_x", Powers(std::min<int64_t>(most_lanes, PowerOfTwo(Up(Extent(vector_), width_)))),
                        shape_.lanes_x);
  lanes_y_ = ChooseNear("lanes_y", LaneSizes(Up(Extent(row_), rows_), most_lanes / lanes_x_), shape_.lanes_y);
  if (second_ < 0) return absl::OkStatus();
  more_rows_ = ChooseNear("more_rows", LaneSizes(Extent(second_), std::min<int64_t>(16, elements / width_ / rows_)),
                          HintedSize(second_, shape_.more_rows));
  lanes_z_ = ChooseNear("lanes_z", LaneSizes(Up(Extent(second_), more_rows_), most_lanes / lanes_x_ / lanes_y_),
                        shape_.lanes_z);
  return absl::OkStatus();
}

std::vector<int64_t> LaneTile::Powers(int64_t most) {
  std::vector<int64_t> powers;
  for (int64_t p = 1; p <= std::max<int64_t>(1, most); p *= 2) powers.push_back(p);
  return powers;
}

void LaneTile::ChooseStep() {
  double bytes = 0;
  for (const ir::Load& load : LoadsOf(reduction())) bytes += StepBytes(load);
  int64_t together = 1, most_step = kMostStep, preferred = kLongestStep;
  if (instruction_.has_value()) {
    const ir::TensorInstructionEntry& entry = ir::EntryOf(*instruction_);
    together = entry.k;
    most_step = kStagedBytes / ir::SizeOf(entry.a);
    preferred = shape_.staged > 0 ? shape_.staged : most_step;
  }
  const auto most = static_cast<double>(SharedBytes());
  while (preferred > std::max(kShortestStep, together) && kBuffers * bytes * static_cast<double>(preferred) > most) {
    preferred /= 2;
  }
  // Steps that do not divide the axis have conditions innermost, and rows that no wide copy fits.
  std::vector<int64_t> divisors;
  for (int64_t step = together; step <= std::min(most_step, steps_); step += together) {
    if (steps_ % step == 0) divisors.push_back(step);
  }
  step_ = divisors.back() >= std::min(kShortestStep, steps_)
              ? ChooseNear("step", divisors, preferred)
              : sketch_.chooser.Tile(prefix_ + "step", steps_, kMostStep, std::min(preferred, PowerOfTwo(steps_)));
}

int64_t LaneTile::SharedBytes() const {
  const target::Memory& memory = sketch_.target.memory;
  if (instruction_.has_value()) return memory.shared_bytes;
  // Without copies that go on by themselves a group has one of the buffers that are counted: there is room for others.
  const int64_t unasked = memory.async_copy_bytes > 0
                              ? std::min(memory.unasked_shared_bytes, memory.unit_shared_bytes / kGroups)
                              : memory.unasked_shared_bytes;
  return std::max(unasked, memory.shared_bytes / kGroups);
}

absl::Status LaneTile::PackConstants() {
  if (HasBlocks()) return PackChunks();
  if (instruction_.has_value() && ir::EntryOf(*instruction_).chunk == 0) return PackSteps();
  const ir::Stage s = reduction();
  const ir::Ranges ranges = AxisRanges(s);
  const std::string& vector = s.axes[static_cast<size_t>(vector_)].name;
  for (const ir::Load& load : LoadsOf(s)) {
    const bool constant = std::ranges::any_of(sketch_.state.params, [&](const ir::Param& p) {
      return p.buffer == load.buffer && p.kind == ir::ParamKind::kConstant;
    });
    const auto stride = StrideOf(load, vector, ranges);
    if (!constant || !stride.has_value() || *stride <= 1 || !schedule::Reads(reduction(), load.buffer.get())) continue;
    HONE_RETURN_IF_ERROR(PackLast(sketch_, stage_, load, vector));
  }
  return absl::OkStatus();
}

absl::Status ScheduleLaneTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                              const std::string& prefix) {
  return LaneTile(sketch, reader, stage, prefix).Run();
}

}  // namespace hone::space
