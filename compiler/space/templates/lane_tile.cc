// The template of matrix multiplies and convolutions for targets with lanes.
//
// A group computes a block of the output, every lane a register tile of it: rows x vector elements, accumulated over
// the whole reduction. The operands go step by step of the reduction into shared memory, filled by all lanes with
// vector loads, where each element serves a whole row or column of lanes; a lane's rows and vectors lie in stripes, a
// group's width apart. Where the target has a tensor instruction for the product, lanes run it together, each with its
// own rows and columns as before. Where there are few outputs, groups walk parts of the reduction. What is preferred of
// all that a model says (lane_shape.h). Source: Volkov, Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", SC
// 2008; block, lane and inner tiles as in NVIDIA's CUTLASS.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "compiler/schedule/grid.h"
#include "compiler/space/sketch.h"
#include "compiler/space/templates/lane_instruction.h"
#include "compiler/space/templates/lane_shape.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Split;
using schedule::Tail;

constexpr int64_t kMostUnrolled = 512;                   // products of steps of the reduction that are written out
constexpr int64_t kLongestStep = 16, kShortestStep = 4;  // preferred
constexpr int64_t kMostStep = 32;
constexpr double kBuffers = 3;
constexpr int64_t kGroups = 3;  // of a unit, at least
constexpr int64_t kBanks = 32;
constexpr int64_t kPad = 4;  // elements that keep rows of shared memory out of the same banks
// The same where lanes load for an instruction: quarters of eight rows, or where those lie apart, one number of each of
// four times two. A row has so many bytes beyond a multiple of the period.
constexpr int64_t kRowBytes = 32, kApartRowBytes = 16, kRowPeriod = 64;

class LaneTile {
 public:
  // What is known of a part of a reduction, as it is of the whole.
  struct Given {
    int64_t axes;
    LaneShape shape;
    std::optional<ir::TensorInstruction> instruction;
  };
  LaneTile(Sketch& sketch, std::string reader, std::string stage, const std::string& prefix,
           std::optional<Given> given = {})
      : sketch_(sketch),
        reader_(std::move(reader)),
        stage_(std::move(stage)),
        prefix_(prefix),
        out_(sketch.Get(reader_).stage),
        reduced_(sketch.Get(stage_).stage),
        given_(given) {}

  absl::Status Run() {
    FindVectorAxis();
    if (vector_ < 0) return absl::OkStatus();
    FindStepAxis();
    ChooseShape();
    if (!given_.has_value()) {
      HONE_ASSIGN_OR_RETURN(const bool in_parts, ReduceInParts());
      if (in_parts) return absl::OkStatus();
    }
    HONE_RETURN_IF_ERROR(ChooseTile());
    HONE_RETURN_IF_ERROR(PackConstants());
    ChooseStep();
    HONE_RETURN_IF_ERROR(StageOperands());
    HONE_RETURN_IF_ERROR(TileOutput());
    HONE_RETURN_IF_ERROR(TileReduction());
    return FillShared();
  }

 private:
  const ir::Stage& reduction() const { return sketch_.Get(stage_).stage; }
  int64_t Extent(int axis) const { return axis < 0 ? 1 : out_.axes[static_cast<size_t>(axis)].extent; }
  const std::string& NameOf(int axis) const { return out_.axes[static_cast<size_t>(axis)].name; }
  // Of the reduction, at the same place, as long as no axis is split.
  const std::string& ReducedName(int axis) const { return reduced_.axes[static_cast<size_t>(axis)].name; }
  int64_t Choose(std::string_view name, std::vector<int64_t> options, int64_t preferred) {
    return sketch_.chooser.OneOf(prefix_ + std::string(name), std::move(options), preferred);
  }
  // The nearest that is on offer.
  int64_t ChooseNear(std::string_view name, const std::vector<int64_t>& options, int64_t preferred) {
    const auto nearest = std::ranges::min_element(
        options, {}, [&](int64_t option) { return std::abs(std::log2(option) - std::log2(preferred)); });
    return Choose(name, options, *nearest);
  }

  bool VariesAlongColumns(const ir::Load& load) const {
    return StrideOf(load, ReducedName(vector_), AxisRanges(reduced_)).value_or(1) != 0;
  }

  // The last axis lies along vectors.
  void FindVectorAxis() {
    for (int d = static_cast<int>(out_.axes.size()) - 1; d >= 0 && vector_ < 0; --d) {
      if (Extent(d) > 1) vector_ = d;
    }
  }

  // The other axes of the tile give reuse: an operand that varies with the vector axis does not vary with them. At most
  // two, the longest first; -1 where there are fewer.
  std::vector<std::pair<int, int>> RowAxes() const {
    const ir::Ranges ranges = AxisRanges(reduced_);
    std::vector<int> axes;
    for (int d = 0; d < static_cast<int>(out_.axes.size()); ++d) {
      const bool reuses = std::ranges::any_of(LoadsOf(reduced_), [&](const ir::Load& load) {
        return VariesAlongColumns(load) && StrideOf(load, ReducedName(d), ranges) == 0;
      });
      if (d != vector_ && Extent(d) > 1 && reuses) axes.push_back(d);
    }
    std::ranges::stable_sort(axes, std::greater<>(), [&](int d) { return Extent(d); });
    if (axes.size() < 2) return {{axes.empty() ? -1 : axes[0], -1}};
    std::vector<std::pair<int, int>> pairs;
    for (size_t a = 0; a < axes.size(); ++a) {
      for (size_t b = a + 1; b < axes.size(); ++b) pairs.emplace_back(axes[a], axes[b]);
    }
    return pairs;
  }

  // The longest axis of the reduction is taken in steps, outside; what is left of it is innermost of the axes inside.
  void FindStepAxis() {
    const ir::Stage& s = reduction();
    const auto longest = std::ranges::max_element(
        s.reduce_axes, [](const ir::Axis& a, const ir::Axis& b) { return a.extent < b.extent; });
    step_axis_ = longest->name;
    steps_ = longest->extent;
    window_ = 1;
    for (const ir::Axis& axis : s.reduce_axes) {
      if (axis.name == step_axis_) continue;
      inner_reduce_.push_back(axis.name);
      window_ *= axis.extent;
    }
  }

  // What a group reads of the load for one step, with so many rows.
  double StepBytes(const ir::Load& load, int64_t rows, int64_t more_rows) const {
    AxisExtents extents;
    for (const ir::Axis& axis : reduction().reduce_axes) extents[axis.name] = axis.name == step_axis_ ? 1 : axis.extent;
    if (row_ >= 0) extents[ReducedName(row_)] = rows;
    if (second_ >= 0) extents[ReducedName(second_)] = more_rows;
    return static_cast<double>(RegionBytes(load, AxisRanges(reduction()), extents));
  }

  // The same with the tile that is chosen.
  double StepBytes(const ir::Load& load) const {
    const int64_t columns = VariesAlongColumns(load) ? width_ * lanes_x_ : 1;
    return StepBytes(load, rows_ * lanes_y_, more_rows_ * lanes_z_) * static_cast<double>(columns);
  }

  // Where lanes are loops, or no operand serves a whole row of lanes, nothing but a small tile is known to be good.
  std::optional<LaneWork> Work() const {
    LaneWork work;
    work.columns = Extent(vector_), work.rows = Extent(row_), work.more_rows = Extent(second_);
    for (const ir::Axis& axis : out_.axes) work.others *= axis.extent;
    work.others /= work.columns * work.rows * work.more_rows;
    work.steps = steps_, work.window = window_;
    bool shares_columns = false;
    for (const ir::Load& load : LoadsOf(reduced_)) {
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

  // The best shape for each pair of axes, and its cycles: with the instruction, or without.
  struct Shapes {
    std::vector<LaneShape> shapes;
    std::vector<double> cycles;
    int64_t best() const { return std::ranges::min_element(cycles) - cycles.begin(); }
    double least() const { return *std::ranges::min_element(cycles); }
  };
  Shapes ShapesWith(std::optional<ir::TensorInstruction> instruction) {
    Shapes found;
    for (const auto& pair : RowAxes()) {
      std::tie(row_, second_) = pair;
      const std::optional<LaneWork> work = Work();
      LaneShape shape;
      double cycles = 0;
      if (work.has_value() && instruction.has_value()) {
        shape = BestInstructionShape(*work, *instruction, sketch_.target);
        cycles = InstructionCycles(*work, shape, *instruction, sketch_.target);
      } else if (work.has_value()) {
        shape = BestLaneShape(*work, sketch_.target);
        cycles = LaneCycles(*work, shape, sketch_.target);
      }
      found.shapes.push_back(shape);
      found.cycles.push_back(cycles);
    }
    return found;
  }

  // Which instruction is used, if one is; `shapes`, which are without, become those with it.
  void ChooseInstruction(Shapes* shapes) {
    std::vector<int64_t> ids = {0};
    std::map<int64_t, Shapes> with;
    int64_t preferred = 0;
    double least = shapes->least();
    for (const ir::TensorInstruction instruction :
         LaneInstructionsFor(sketch_.state, reduced_, ReducedName(vector_), step_axis_, sketch_.target)) {
      Shapes found = ShapesWith(instruction);
      const auto id = static_cast<int64_t>(instruction) + 1;
      if (found.least() == std::numeric_limits<double>::infinity()) continue;
      if (found.least() < least) preferred = id;
      least = std::min(least, found.least());
      ids.push_back(id);
      with.emplace(id, std::move(found));
    }
    if (ids.size() == 1) return;
    const int64_t chosen = Choose("instruction", ids, preferred);
    if (chosen == 0) return;
    instruction_ = static_cast<ir::TensorInstruction>(chosen - 1);
    *shapes = with.at(chosen);
  }

  // Whether an instruction is used, the axes of the tile, and the shape that is preferred with these.
  void ChooseShape() {
    const std::vector<std::pair<int, int>> pairs = RowAxes();
    if (given_.has_value()) {
      axes_ = given_->axes, shape_ = given_->shape, instruction_ = given_->instruction;
    } else {
      Shapes shapes = ShapesWith({});
      ChooseInstruction(&shapes);
      std::vector<int64_t> numbers;
      for (size_t i = 0; i < pairs.size(); ++i) {
        if (shapes.cycles[i] < std::numeric_limits<double>::infinity()) numbers.push_back(static_cast<int64_t>(i));
      }
      axes_ = numbers.size() == 1 ? numbers[0] : Choose("axes", numbers, shapes.best());
      shape_ = shapes.shapes[static_cast<size_t>(axes_)];
    }
    std::tie(row_, second_) = pairs[static_cast<size_t>(axes_)];
  }

  // Where too few groups would have all of the reduction to walk, each walks a part of it, and a launch of its own
  // takes the partial results together. Whether it is so.
  absl::StatusOr<bool> ReduceInParts() {
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
        LaneTile(sketch_, stage_ + "f", stage_ + "fc", prefix_, Given{axes_, shape_, instruction_}).Run());
    HONE_RETURN_IF_ERROR(ScheduleLaneReduction(sketch_, reader_, stage_));
    return true;
  }

  int64_t HintedSize(int axis, int64_t otherwise) const {
    return axis < 0 ? otherwise : sketch_.chooser.Hinted(ExtentsOf(out_), static_cast<size_t>(axis), otherwise);
  }

  // As ChooseTile, of what leaves nothing over and what lanes can have that run an instruction together.
  absl::Status ChooseInstructionTile() {
    const int64_t most_lanes = sketch_.target.hierarchy.max_lanes;
    const int64_t elements = sketch_.target.memory.registers_bytes / 8;
    const int64_t columns = Extent(vector_), rows = Extent(row_), more_rows = Extent(second_);
    const auto choose = [&](std::string_view name, std::vector<int64_t> options, int64_t preferred, const auto& fits) {
      std::erase_if(options, [&](int64_t size) { return !fits(size); });
      return options.empty() ? 1 : ChooseNear(name, options, preferred);
    };
    const bool blocks = HasBlocks();
    const int64_t least_lanes = blocks ? ir::EntryOf(*instruction_).lanes / ir::kLanesOfRow : 1;
    lanes_x_ = choose("lanes_x", Powers(blocks ? ir::kLanesOfRow : most_lanes / kRowLanes), shape_.lanes_x,
                      [&](int64_t n) { return n % ir::kLanesOfRow == 0 && columns % (2 * n) == 0; });
    width_ = choose("width", Powers(std::min(MostWidth(*instruction_), elements)), shape_.width,
                    [&](int64_t n) { return n % 2 == 0 && columns % (lanes_x_ * n) == 0; });
    lanes_y_ = choose("lanes_y", LaneSizes(rows, most_lanes / lanes_x_), shape_.lanes_y, [&](int64_t n) {
      return rows % n == 0 && n % least_lanes == 0 &&
             (n % kRowLanes == 0 || (kRowLanes % n == 0 && more_rows % (kRowLanes / n) == 0));
    });
    lanes_z_ = choose("lanes_z", LaneSizes(blocks ? 1 : more_rows, most_lanes / lanes_x_ / lanes_y_), shape_.lanes_z,
                      [&](int64_t n) { return more_rows % n == 0 && lanes_y_ * n % kRowLanes == 0; });
    const bool pairs_there = !blocks && more_rows / lanes_z_ % 2 == 0;
    rows_ = choose("rows", LaneSizes(rows / lanes_y_, std::min(kMostRows, elements / width_)), shape_.rows,
                   [&](int64_t n) { return rows % (lanes_y_ * n) == 0 && (n % 2 == 0 || pairs_there); });
    more_rows_ = choose(
        "more_rows", LaneSizes(blocks ? 1 : more_rows / lanes_z_, std::min(kMostRows, elements / width_ / rows_)),
        shape_.more_rows, [&](int64_t n) { return more_rows % (lanes_z_ * n) == 0 && (n % 2 == 0 || rows_ % 2 == 0); });
    const LaneShape shape{width_, rows_, more_rows_, lanes_x_, lanes_y_, lanes_z_};
    if (FitsInstruction(shape, {columns, rows, more_rows}, *instruction_)) return absl::OkStatus();
    return absl::FailedPreconditionError("lanes in this shape cannot run the instruction together");
  }

  absl::Status ChooseTile() {
    if (instruction_.has_value()) return ChooseInstructionTile();
    const int64_t most_lanes = sketch_.target.hierarchy.max_lanes;
    const int64_t elements = sketch_.target.memory.registers_bytes / 8;  // half the registers for accumulators
    const auto left = [](int64_t extent, int64_t taken) { return (extent + taken - 1) / taken; };
    width_ = ChooseNear("width", Powers(std::min<int64_t>({16, PowerOfTwo(Extent(vector_)), elements})),
                        HintedSize(vector_, shape_.width));
    rows_ = ChooseNear("rows", LaneSizes(Extent(row_), std::min<int64_t>(16, elements / width_)),
                       HintedSize(row_, shape_.rows));
    lanes_x_ = ChooseNear("lanes_x", Powers(std::min<int64_t>(most_lanes, PowerOfTwo(left(Extent(vector_), width_)))),
                          shape_.lanes_x);
    lanes_y_ = ChooseNear("lanes_y", LaneSizes(left(Extent(row_), rows_), most_lanes / lanes_x_), shape_.lanes_y);
    if (second_ < 0) return absl::OkStatus();
    more_rows_ = ChooseNear("more_rows", LaneSizes(Extent(second_), std::min<int64_t>(16, elements / width_ / rows_)),
                            HintedSize(second_, shape_.more_rows));
    lanes_z_ = ChooseNear("lanes_z", LaneSizes(left(Extent(second_), more_rows_), most_lanes / lanes_x_ / lanes_y_),
                          shape_.lanes_z);
    return absl::OkStatus();
  }

  static std::vector<int64_t> Powers(int64_t most) {
    std::vector<int64_t> powers;
    for (int64_t p = 1; p <= std::max<int64_t>(1, most); p *= 2) powers.push_back(p);
    return powers;
  }

  // As long as lanes wait seldom, and as three buffers are there without asking for memory.
  void ChooseStep() {
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

  // What a group may have: a share of what a unit has; with instructions all, since few groups keep it busy.
  int64_t SharedBytes() const {
    const target::Memory& memory = sketch_.target.memory;
    return instruction_.has_value() ? memory.shared_bytes
                                    : std::max(memory.unasked_shared_bytes, memory.shared_bytes / kGroups);
  }

  // The steps of an instruction lie side by side in whatever is fixed, where it wants them to.
  absl::Status PackSteps() {
    const ir::Stage s = reduction();
    for (const ir::Load& load : LoadsOf(s)) {
      if (StrideOf(load, step_axis_, AxisRanges(s)) != 1) HONE_RETURN_IF_ERROR(PackLast(load, step_axis_));
    }
    return absl::OkStatus();
  }

  // Whether an instruction reads shared memory itself.
  bool HasBlocks() const { return instruction_.has_value() && ir::EntryOf(*instruction_).blocks; }

  // Chunks of steps lie side by side, one of every row after the other.
  absl::Status PackChunks() {
    const int64_t chunk = ir::EntryOf(*instruction_).chunk;
    const ir::Stage s = reduction();
    for (const ir::Load& load : LoadsOf(s)) {
      const auto along =
          std::ranges::find_if(load.indices, [&](const ir::Expr& index) { return ir::UsesVar(index, step_axis_); });
      const auto dim = static_cast<int>(along - load.indices.begin());
      std::vector<schedule::PackDim> dims = {{dim, chunk, false}};
      for (int d = 0; d < static_cast<int>(load.indices.size()); ++d) {
        if (d != dim) dims.push_back({d});
      }
      dims.push_back({dim, chunk, true});
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Pack{load.buffer->name, stage_, std::move(dims)}));
    }
    return absl::OkStatus();
  }

  // The dimension that the axis alone goes along becomes the last; nothing is done where there are several.
  absl::Status PackLast(const ir::Load& load, const std::string& axis) {
    std::vector<schedule::PackDim> others, along;
    for (int d = 0; d < static_cast<int>(load.indices.size()); ++d) {
      (ir::UsesVar(load.indices[static_cast<size_t>(d)], axis) ? along : others).push_back({d});
    }
    if (along.size() != 1) return absl::OkStatus();
    others.push_back(along[0]);
    return sketch_.Do(schedule::Pack{load.buffer->name, stage_, std::move(others)});
  }

  // A constant that varies along the vector axis, but not fastest, is laid out anew so that it does.
  absl::Status PackConstants() {
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
      if (!constant || !stride.has_value() || *stride <= 1 || !schedule::Reads(reduction(), load.buffer.get()))
        continue;
      HONE_RETURN_IF_ERROR(PackLast(load, vector));
    }
    return absl::OkStatus();
  }

  // Which operands go through shared memory: a stage that only this reduction reads (padding) is computed there,
  // anything else copied.
  absl::Status StageOperands() {
    if (lanes_x_ * lanes_y_ * lanes_z_ == 1) return absl::OkStatus();  // nobody to share with
    const ir::Stage s = reduction();
    int number = 0;
    for (const ir::Load& load : LoadsOf(s)) {
      if (load.buffer->shape.empty() || !schedule::Reads(reduction(), load.buffer.get())) continue;
      const bool along_vector = VariesAlongColumns(load);
      const int64_t others = along_vector ? lanes_y_ * lanes_z_ : lanes_x_;
      const double bytes = StepBytes(load) * static_cast<double>(step_);
      const bool pays =
          sketch_.target.memory.shared_gain > 1 && others > 1 && 2 * bytes <= static_cast<double>(SharedBytes());
      const std::string id = std::to_string(number++);
      if (!HasBlocks() && Choose("stage" + id, {0, 1}, pays ? 1 : 0) == 0) continue;
      std::string name = load.buffer->name;
      const schedule::Nest* nest = sketch_.state.FindNest(load.buffer.get());
      const bool own = nest != nullptr && nest->AtRoot() && !nest->touched && !nest->prepared &&
                       nest->stage.reduction == ir::Reduction::kNone && !sketch_.state.IsOutput(load.buffer.get()) &&
                       Readers(sketch_.state, load.buffer.get()).size() == 1;
      if (!own) {
        HONE_RETURN_IF_ERROR(sketch_.Do(schedule::CacheRead{name, stage_}));
        name += "r" + stage_;
      }
      // Chunks of a row lie side by side in its source: lanes copy them together, and meet other banks by one chunk
      // more.
      const bool chunks_of_rows = HasBlocks() && own;
      if (chunks_of_rows) rows_first_.push_back(name);
      const schedule::StoreIn store =
          HasBlocks() ? schedule::StoreIn{name, ir::Scope::kShared, chunks_of_rows ? 1 : 0, chunks_of_rows ? 2 : 1}
                      : schedule::StoreIn{name, ir::Scope::kShared, ChoosePad("pad" + id, load, along_vector)};
      HONE_RETURN_IF_ERROR(sketch_.Do(store));
      shared_.push_back(name);
    }
    return absl::OkStatus();
  }

  // Elements behind each row of the load's copy in shared memory, so that lanes which load together find theirs in
  // different banks.
  int64_t ChoosePad(const std::string& name, const ir::Load& load, bool along_vector) {
    if (!instruction_.has_value()) {
      const int64_t neighbours = sketch_.target.hierarchy.lane_width / lanes_x_;  // along rows, that load at once
      const bool clashes = !along_vector && sketch_.target.memory.shared_gain > 1 && lanes_y_ * lanes_z_ > 1 &&
                           neighbours * step_ > kBanks;
      return Choose(name, {0, 1, kPad}, clashes ? kPad : 0);
    }
    const int64_t size = ir::SizeOf(load.buffer->dtype);
    const bool apart = StrideOf(load, step_axis_, AxisRanges(reduction())) != 1;
    const int64_t row_bytes = (apart ? width_ * lanes_x_ : step_) * size;
    const int64_t beyond = (apart ? kApartRowBytes : kRowBytes) - row_bytes;
    std::vector<int64_t> options;
    for (int64_t bytes = 0; bytes < kRowPeriod; bytes += kApartRowBytes) options.push_back(bytes / size);
    return Choose(name, options, (beyond % kRowPeriod + kRowPeriod) % kRowPeriod / size);
  }

  absl::Status TileOutput() {
    schedule::Reorder order;
    std::vector<std::string> groups, lanes, inner;
    for (int d = 0; d < static_cast<int>(out_.axes.size()); ++d) {
      if (d != vector_ && d != row_ && d != second_) groups.push_back(NameOf(d));
    }
    const bool stripes =
        instruction_.has_value() || (sketch_.target.memory.shared_gain > 1 && Choose("stripes", {0, 1}, 1) == 1);
    const std::tuple<int, int64_t, int64_t, int64_t> tiles[] = {
        {second_, lanes_z_, more_rows_, 1}, {row_, lanes_y_, rows_, 1}, {vector_, lanes_x_, width_, Vector()}};
    for (const auto& [axis, axis_lanes, tile, together] : tiles) {
      if (axis < 0) continue;
      const int64_t stripe = axis_lanes * together;
      const bool striped = stripes && axis_lanes > 1 && tile > together && Extent(axis) % stripe == 0;
      if (HasBlocks() && axis == row_) {
        HONE_RETURN_IF_ERROR(TileInBlocks(&groups, &lanes, &inner));
        continue;
      }
      HONE_RETURN_IF_ERROR(striped ? TileInStripes(axis, axis_lanes, tile, together, &groups, &lanes, &inner)
                                   : TileAxis(NameOf(axis), axis_lanes, tile, &groups, &lanes, &inner));
    }
    if (instruction_.has_value() && !HasBlocks()) HONE_RETURN_IF_ERROR(GatherWarps(&lanes));
    for (const auto* part : {&groups, &lanes, &inner}) {
      order.loops.insert(order.loops.end(), part->begin(), part->end());
    }
    HONE_RETURN_IF_ERROR(sketch_.Do(order));
    for (const std::string& loop : groups) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kGroup}));
    for (const std::string& loop : lanes) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kLane}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{inner.back(), VectorKind(width_)}));
    inner.pop_back();
    for (const std::string& loop : inner) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kUnrolled}));
    return sketch_.Do(schedule::ComputeAt{stage_, lanes.back()});
  }

  // The loops over lanes (second axis, rows, columns) so that those which run an instruction together come last: four
  // along the columns, eight along the rows.
  absl::Status GatherWarps(std::vector<std::string>* lanes) {
    const int64_t rows = std::min(lanes_y_, kRowLanes), others = kRowLanes / rows;
    std::vector<int64_t> together = {rows, ir::kLanesOfRow};
    std::vector<int64_t> all = {lanes_y_, lanes_x_};
    if (second_ >= 0) {
      together.insert(together.begin(), others);
      all.insert(all.begin(), lanes_z_);
    }
    std::vector<std::string> warps, inside;
    for (size_t i = 0; i < lanes->size(); ++i) {
      const std::string& loop = (*lanes)[i];
      if (all[i] > together[i]) {
        HONE_RETURN_IF_ERROR(sketch_.Do(Split{loop, together[i], Tail::kMask}));
        warps.push_back(loop + "o");
        inside.push_back(loop + "i");
      } else {
        inside.push_back(loop);
      }
    }
    *lanes = std::move(warps);
    lanes->insert(lanes->end(), inside.begin(), inside.end());
    return absl::OkStatus();
  }

  // Elements that a lane loads and stores at once.
  int64_t Vector() const {
    const int64_t most = instruction_.has_value() ? ir::EntryOf(*instruction_).n : sketch_.target.VectorWidth(4);
    return std::min(width_, most);
  }

  // A lane's tile is every so many elements of a group's, `together` of them side by side, so that what lanes load at
  // the same time lies side by side, and not in the same banks of shared memory.
  absl::Status TileInStripes(int axis, int64_t lanes, int64_t tile, int64_t together, std::vector<std::string>* groups,
                             std::vector<std::string>* lane_loops, std::vector<std::string>* inner) {
    const std::string name = NameOf(axis);
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::SplitAxis{stage_, ReducedName(axis), lanes * together}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{name, lanes * tile, Tail::kMask}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{name + "i", lanes * together, Tail::kMask}));
    groups->push_back(name + "o");
    inner->push_back(name + "io");
    lane_loops->push_back(name + "ii");
    if (together == 1) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{name + "ii", together, Tail::kMask}));
    lane_loops->back() = name + "iio";
    inner->push_back(name + "iii");
    return absl::OkStatus();
  }

  // Rows of a group are blocks of eight: two after one another of each warp, and as often again as lanes have pairs.
  absl::Status TileInBlocks(std::vector<std::string>* groups, std::vector<std::string>* lanes,
                            std::vector<std::string>* inner) {
    const std::string name = NameOf(row_), reduced = ReducedName(row_);
    const int64_t pair = 2 * ir::kBlockRows, rows = lanes_y_ * 2;  // of a warp, of all lanes once
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::SplitAxis{stage_, reduced, ir::kBlockRows}));
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::SplitAxis{stage_, reduced + "x", rows / ir::kBlockRows}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{name, lanes_y_ * rows_, Tail::kMask}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{name + "i", rows, Tail::kMask}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{name + "ii", pair, Tail::kMask}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{name + "iii", ir::kBlockRows, Tail::kMask}));
    groups->push_back(name + "o");
    lanes->insert(lanes->end(), {name + "iio", name + "iiii"});
    inner->insert(inner->end(), {name + "io", name + "iiio"});
    return absl::OkStatus();
  }

  static ir::LoopKind VectorKind(int64_t width) {
    return width > 1 ? ir::LoopKind::kVectorized : ir::LoopKind::kUnrolled;
  }

  absl::Status TileAxis(const std::string& axis, int64_t lanes, int64_t tile, std::vector<std::string>* groups,
                        std::vector<std::string>* lane_loops, std::vector<std::string>* inner) {
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{axis, lanes * tile, Tail::kMask}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{axis + "i", tile, Tail::kMask}));
    groups->push_back(axis + "o");
    lane_loops->push_back(axis + "io");
    inner->push_back(axis + "ii");
    return absl::OkStatus();
  }

  // The loop of the reduction over a lane's tile of the axis, or over the stripes of it; `inside` one of these.
  std::string TileLoop(int axis, bool inside) const {
    const std::string& name = ReducedName(axis);
    const std::vector<ir::Axis>& axes = reduction().axes;
    const bool striped = std::ranges::find(axes, name + "x", &ir::Axis::name) != axes.end();
    if (!striped) return name;
    return name + (inside ? "y" : "x");
  }

  // As TileReduction, with the instruction innermost: two rows, two columns that lie side by side, and its steps.
  absl::Status TileInstruction() {
    const ir::Stage s = reduction();
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{step_axis_, step_, Tail::kMask}));
    std::string step = step_axis_ + "i";
    schedule::Reorder order{{step_axis_ + "o"}};
    order.loops.insert(order.loops.end(), inner_reduce_.begin(), inner_reduce_.end());
    std::vector<std::string> unrolled;
    const int64_t together = ir::EntryOf(*instruction_).k;
    if (step_ > together) {
      HONE_RETURN_IF_ERROR(sketch_.Do(Split{step, together, Tail::kMask}));
      order.loops.push_back(step + "o");
      if (Choose("unrolled", {0, 1}, 1) == 1) unrolled.push_back(step + "o");
      step += "i";
    }
    const std::string rows = HasBlocks() ? ReducedName(row_) + "xy" : TileLoop(rows_ % 2 == 0 ? row_ : second_, false);
    const std::string columns = TileLoop(vector_, true);
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{rows, 2, Tail::kMask}));
    for (const ir::Axis& axis : s.axes) {
      if (axis.name == columns) continue;
      unrolled.push_back(axis.name == rows ? rows + "o" : axis.name);
      order.loops.push_back(unrolled.back());
    }
    order.loops.insert(order.loops.end(), {rows + "i", columns});
    if (HasBlocks()) {
      HONE_RETURN_IF_ERROR(sketch_.Do(Split{step, ir::EntryOf(*instruction_).chunk, Tail::kMask}));
      order.loops.push_back(step + "o");
      step += "i";
    }
    order.loops.push_back(step);
    HONE_RETURN_IF_ERROR(sketch_.Do(order));
    for (const std::string& name : shared_) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{name, step_axis_ + "o"}));
    }
    for (const std::string& loop : unrolled) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kUnrolled}));
    return sketch_.Do(schedule::Tensorize{stage_, *instruction_});
  }

  absl::Status TileReduction() {
    if (instruction_.has_value()) return TileInstruction();
    const ir::Stage s = reduction();
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{step_axis_, step_, Tail::kMask}));
    // Some steps are written out at once: their operands lie side by side.
    std::vector<std::string> steps = {step_axis_ + "i"};
    const int64_t unrolled = ChooseUnrolled();
    if (unrolled > 1 && unrolled < step_) {
      HONE_RETURN_IF_ERROR(sketch_.Do(Split{steps[0], unrolled, Tail::kMask}));
      steps = {steps[0] + "o", steps[0] + "i"};
    }
    schedule::Reorder order{{step_axis_ + "o"}};
    order.loops.insert(order.loops.end(), inner_reduce_.begin(), inner_reduce_.end());
    order.loops.insert(order.loops.end(), steps.begin(), steps.end());
    for (const ir::Axis& axis : s.axes) order.loops.push_back(axis.name);
    HONE_RETURN_IF_ERROR(sketch_.Do(order));
    for (const std::string& name : shared_) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{name, step_axis_ + "o"}));
    }
    for (const ir::Axis& axis : s.axes) {
      const bool vector = axis.name == ReducedName(vector_) || axis.name == ReducedName(vector_) + "y";
      HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{axis.name, vector ? VectorKind(width_) : ir::LoopKind::kUnrolled}));
    }
    return unrolled > 1 ? sketch_.Do(Annotate{steps.back(), ir::LoopKind::kUnrolled}) : absl::OkStatus();
  }

  int64_t ChooseUnrolled() {
    std::vector<int64_t> counts = {1};
    for (int64_t n = 2; n <= step_; n *= 2) {
      if (step_ % n == 0 && rows_ * more_rows_ * width_ * n <= kMostUnrolled) counts.push_back(n);
    }
    const int64_t preferred = StepsWrittenOut({width_, rows_, more_rows_}, steps_ * window_);
    return Choose("unrolled", counts, std::min(preferred, counts.back()));
  }

  // All lanes fill what goes through shared memory, neighbours taking neighbouring vectors; by copies ahead of time
  // where the target has them and that is chosen.
  absl::Status FillShared() {
    const int64_t buffers = ChooseBuffers();
    bool copies = false;
    for (const std::string& name : shared_) {
      const std::vector<int64_t> counts = buffers > 0 ? CopyCounts(name, buffers) : std::vector<int64_t>();
      if (counts.empty()) {
        HONE_RETURN_IF_ERROR(Do(FillSteps(name, Choose(name + ".width", Widths(name), 4), false)));
      } else {
        HONE_RETURN_IF_ERROR(Do(FillSteps(name, Choose(name + ".copy", counts, counts.back()), true)));
        copies = true;
      }
    }
    return copies ? sketch_.Do(schedule::Pipeline{step_axis_ + "o", buffers}) : absl::OkStatus();
  }

  // How many buffers the copies have that go on while lanes compute; 0: no such copies.
  int64_t ChooseBuffers() {
    if (sketch_.target.memory.async_copy_bytes == 0 || shared_.empty()) return 0;
    int64_t bytes = 1;
    for (const schedule::Grid& grid : schedule::Grids(sketch_.state)) bytes = std::max(bytes, grid.shared_bytes);
    const int64_t fit = SharedBytes() / bytes;
    return Choose("buffers", {0, 2, 3, 4}, fit < 2 ? 0 : std::min<int64_t>(fit, 3));
  }

  std::vector<int64_t> Widths(const std::string& name) const {
    std::vector<int64_t> widths;
    for (const int64_t w : {1, 2, 4}) {
      if (sketch_.Get(name).loops.back().max_extent % w == 0) widths.push_back(w);
    }
    return widths;
  }

  // How many elements one copy may have, ascending; none if the stage is no plain copy.
  std::vector<int64_t> CopyCounts(const std::string& name, int64_t buffers) const {
    std::vector<int64_t> counts;
    const int64_t size = ir::SizeOf(sketch_.Get(name).stage.buffer->dtype);
    for (const int64_t bytes : ir::kCopyBytes) {
      const int64_t count = bytes / size;
      if (bytes > sketch_.target.memory.async_copy_bytes || bytes % size != 0 ||
          sketch_.Get(name).loops.back().max_extent % count != 0) {
        continue;
      }
      schedule::State state = sketch_.state;
      schedule::Schedule steps = FillSteps(name, count, true);
      steps.push_back(schedule::Pipeline{step_axis_ + "o", buffers});
      const bool fits =
          std::ranges::all_of(steps, [&](const schedule::Step& step) { return schedule::Apply(step, state).ok(); });
      if (fits) counts.push_back(count);
    }
    return counts;
  }

  schedule::Schedule FillSteps(const std::string& name, int64_t width, bool copy) const {
    schedule::Schedule steps;
    std::vector<std::string> loops;
    for (const schedule::Loop& loop : sketch_.Get(name).loops) loops.push_back(loop.name);
    if (std::ranges::find(rows_first_, name) != rows_first_.end()) {
      std::rotate(loops.begin(), loops.begin() + 1, loops.end() - 1);
      steps.push_back(schedule::Reorder{loops});
    }
    const std::string last = loops.back();
    if (width > 1) {
      steps.push_back(Split{last, width, Tail::kMask});
      loops.back() = last + "o";
    }
    std::string fused = loops[0];
    for (size_t i = 1; i < loops.size(); ++i) {
      steps.push_back(schedule::Fuse{fused, loops[i]});
      fused += "_" + loops[i];
    }
    steps.push_back(Annotate{fused, ir::LoopKind::kLane});
    if (copy) {
      steps.push_back(schedule::CopyAsync{name, width});
    } else if (width > 1) {
      steps.push_back(Annotate{last + "i", ir::LoopKind::kVectorized});
    }
    return steps;
  }

  absl::Status Do(const schedule::Schedule& steps) {
    for (const schedule::Step& step : steps) HONE_RETURN_IF_ERROR(sketch_.Do(step));
    return absl::OkStatus();
  }

  Sketch& sketch_;
  const std::string reader_, stage_, prefix_;
  const ir::Stage out_, reduced_;  // before anything is done
  const std::optional<Given> given_;
  std::optional<ir::TensorInstruction> instruction_;
  int64_t axes_ = 0;                          // which of RowAxes
  LaneShape shape_;                           // what is preferred
  int vector_ = -1, row_ = -1, second_ = -1;  // axes of the output
  int64_t width_ = 1, rows_ = 1, more_rows_ = 1, lanes_x_ = 1, lanes_y_ = 1, lanes_z_ = 1, step_ = 1;
  int64_t steps_ = 1;   // of the axis that is taken in steps
  int64_t window_ = 1;  // steps of the reduction inside one step of that axis
  std::string step_axis_;
  std::vector<std::string> inner_reduce_, shared_;
  std::vector<std::string> rows_first_;  // of shared_: their rows are loops around their chunks
};

}  // namespace

absl::Status ScheduleLaneTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                              const std::string& prefix) {
  return LaneTile(sketch, reader, stage, prefix).Run();
}

}  // namespace hone::space
