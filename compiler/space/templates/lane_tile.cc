// The template of matrix multiplies and convolutions for targets with lanes.
//
// A group computes a block of the output, every lane a register tile of it: rows x vector elements, accumulated over
// the whole reduction. The operands go step by step of the reduction into shared memory, filled by all lanes with
// vector loads, where each element serves a whole row or column of lanes. Source: Volkov, Demmel, "Benchmarking GPUs to
// Tune Dense Linear Algebra", SC 2008; block, lane and inner tiles as in NVIDIA's CUTLASS.
#include <algorithm>

#include "base/status.h"
#include "compiler/schedule/grid.h"
#include "compiler/space/sketch.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Split;
using schedule::Tail;

constexpr int64_t kUnrolledByDefault = 16;
constexpr int64_t kMostUnrolled = 512;  // statements of one step of the reduction

class LaneTile {
 public:
  LaneTile(Sketch& sketch, std::string reader, std::string stage, const std::string& prefix)
      : sketch_(sketch),
        reader_(std::move(reader)),
        stage_(std::move(stage)),
        prefix_(prefix),
        out_(sketch.Get(reader_).stage) {}

  absl::Status Run() {
    ChooseAxes();
    if (vector_ < 0) return absl::OkStatus();
    ChooseTile();
    ChooseReduction();
    HONE_RETURN_IF_ERROR(PackConstants());
    HONE_RETURN_IF_ERROR(StageOperands());
    HONE_RETURN_IF_ERROR(TileOutput());
    HONE_RETURN_IF_ERROR(TileReduction());
    return FillShared();
  }

 private:
  const ir::Stage& reduction() const { return sketch_.Get(stage_).stage; }
  int64_t Extent(int axis) const { return axis < 0 ? 1 : out_.axes[static_cast<size_t>(axis)].extent; }
  const std::string& NameOf(int axis) const { return out_.axes[static_cast<size_t>(axis)].name; }
  int64_t Choose(std::string_view name, std::vector<int64_t> options, int64_t preferred) {
    return sketch_.chooser.OneOf(prefix_ + std::string(name), std::move(options), preferred);
  }

  // The last axis lies along vectors. The other axis of the tile is the one that gives most reuse: the longest along
  // which an operand that varies with the vector axis does not.
  void ChooseAxes() {
    for (int d = static_cast<int>(out_.axes.size()) - 1; d >= 0 && vector_ < 0; --d) {
      if (Extent(d) > 1) vector_ = d;
    }
    const ir::Stage s = reduction();
    const ir::Ranges ranges = AxisRanges(s);
    for (int d = 0; d < static_cast<int>(out_.axes.size()); ++d) {
      if (d == vector_ || Extent(d) == 1 || Extent(d) <= Extent(row_)) continue;
      const bool reuses = std::ranges::any_of(LoadsOf(s), [&](const ir::Load& load) {
        return StrideOf(load, s.axes[static_cast<size_t>(vector_)].name, ranges).value_or(1) != 0 &&
               StrideOf(load, s.axes[static_cast<size_t>(d)].name, ranges) == 0;
      });
      if (reuses) row_ = d;
    }
  }

  static std::vector<int64_t> Powers(int64_t most) {
    std::vector<int64_t> powers;
    for (int64_t p = 1; p <= std::max<int64_t>(1, most); p *= 2) powers.push_back(p);
    return powers;
  }

  int64_t HintedSize(int axis, int64_t otherwise) const {
    return axis < 0 ? otherwise : sketch_.chooser.Hinted(ExtentsOf(out_), static_cast<size_t>(axis), otherwise);
  }

  void ChooseTile() {
    const int64_t most_lanes = sketch_.target.hierarchy.max_lanes;
    const int64_t elements = sketch_.target.memory.registers_bytes / 8;  // half the registers for accumulators
    const int64_t columns = PowerOfTwo(Extent(vector_)), rows = PowerOfTwo(Extent(row_));
    width_ = Choose("width", Powers(std::min<int64_t>({16, columns, elements})),
                    HintedSize(vector_, sketch_.target.VectorWidth(4)));
    rows_ = Choose("rows", Powers(std::min<int64_t>({16, rows, std::max<int64_t>(1, elements / width_)})),
                   HintedSize(row_, 4));
    lanes_x_ = Choose("lanes_x", Powers(std::min(most_lanes, std::max<int64_t>(1, columns / width_))), 16);
    lanes_y_ = Choose("lanes_y", Powers(std::min(most_lanes / lanes_x_, std::max<int64_t>(1, rows / rows_))),
                      std::max<int64_t>(1, 64 / lanes_x_));
  }

  // The longest axis of the reduction is taken in steps, outside; what is left of it is innermost of the axes inside.
  void ChooseReduction() {
    const ir::Stage& s = reduction();
    const auto longest = std::ranges::max_element(
        s.reduce_axes, [](const ir::Axis& a, const ir::Axis& b) { return a.extent < b.extent; });
    step_axis_ = longest->name;
    window_ = 1;
    for (const ir::Axis& axis : s.reduce_axes) window_ *= axis.name == step_axis_ ? 1 : axis.extent;
    step_ = sketch_.chooser.Tile(prefix_ + "step", longest->extent, 32,
                                 std::max<int64_t>(1, 16 / std::min<int64_t>(window_, 16)));
    for (const ir::Axis& axis : s.reduce_axes) {
      if (axis.name != step_axis_) inner_reduce_.push_back(axis.name);
    }
  }

  // A constant that varies along the vector axis, but not fastest, is laid out anew so that it does.
  absl::Status PackConstants() {
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
      std::vector<schedule::PackDim> dims;
      int last = -1;
      for (int d = 0; d < static_cast<int>(load.indices.size()); ++d) {
        if (ir::UsesVar(load.indices[static_cast<size_t>(d)], vector)) {
          if (last >= 0) dims.clear();
          last = d;
        } else {
          dims.push_back({d});
        }
      }
      dims.push_back({last});
      if (dims.size() != load.indices.size()) continue;
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::Pack{load.buffer->name, stage_, dims}));
    }
    return absl::OkStatus();
  }

  // Which operands go through shared memory: a stage that only this reduction reads (padding) is computed there,
  // anything else copied.
  absl::Status StageOperands() {
    if (lanes_x_ * lanes_y_ == 1) return absl::OkStatus();  // nobody to share with
    const ir::Stage s = reduction();
    const ir::Ranges ranges = AxisRanges(s);
    int number = 0;
    for (const ir::Load& load : LoadsOf(s)) {
      if (load.buffer->shape.empty() || !schedule::Reads(reduction(), load.buffer.get())) continue;
      const bool along_vector = StrideOf(load, s.axes[static_cast<size_t>(vector_)].name, ranges).value_or(1) != 0;
      const int64_t tile = along_vector ? width_ * lanes_x_ : rows_ * lanes_y_;
      const int64_t others = along_vector ? lanes_y_ : lanes_x_;
      const int64_t bytes = tile * step_ * window_ * ir::SizeOf(load.buffer->dtype);
      const bool pays = sketch_.target.memory.shared_gain > 1 && others > 1 &&
                        2 * bytes <= sketch_.target.memory.unasked_shared_bytes;
      if (Choose("stage" + std::to_string(number++), {0, 1}, pays ? 1 : 0) == 0) continue;
      const int64_t pad = Choose("pad" + std::to_string(number - 1), {0, 1, 4}, 0);
      std::string name = load.buffer->name;
      const schedule::Nest* nest = sketch_.state.FindNest(load.buffer.get());
      const bool own = nest != nullptr && nest->AtRoot() && !nest->touched && !nest->prepared &&
                       nest->stage.reduction == ir::Reduction::kNone && !sketch_.state.IsOutput(load.buffer.get()) &&
                       Readers(sketch_.state, load.buffer.get()).size() == 1;
      if (!own) {
        HONE_RETURN_IF_ERROR(sketch_.Do(schedule::CacheRead{name, stage_}));
        name += "r" + stage_;
      }
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::StoreIn{name, ir::Scope::kShared, pad}));
      shared_.push_back(name);
    }
    return absl::OkStatus();
  }

  absl::Status TileOutput() {
    schedule::Reorder order;
    std::vector<std::string> groups, lanes, inner;
    for (int d = 0; d < static_cast<int>(out_.axes.size()); ++d) {
      if (d != vector_ && d != row_) groups.push_back(NameOf(d));
    }
    if (row_ >= 0) HONE_RETURN_IF_ERROR(TileAxis(NameOf(row_), lanes_y_, rows_, &groups, &lanes, &inner));
    HONE_RETURN_IF_ERROR(TileAxis(NameOf(vector_), lanes_x_, width_, &groups, &lanes, &inner));
    for (const auto* part : {&groups, &lanes, &inner}) {
      order.loops.insert(order.loops.end(), part->begin(), part->end());
    }
    HONE_RETURN_IF_ERROR(sketch_.Do(order));
    for (const std::string& loop : groups) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kGroup}));
    for (const std::string& loop : lanes) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kLane}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{inner.back(), VectorKind(width_)}));
    if (row_ >= 0) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{inner.front(), ir::LoopKind::kUnrolled}));
    return sketch_.Do(schedule::ComputeAt{stage_, lanes.back()});
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

  absl::Status TileReduction() {
    const ir::Stage s = reduction();
    HONE_RETURN_IF_ERROR(sketch_.Do(Split{step_axis_, step_, Tail::kMask}));
    schedule::Reorder order{{step_axis_ + "o"}};
    order.loops.insert(order.loops.end(), inner_reduce_.begin(), inner_reduce_.end());
    order.loops.push_back(step_axis_ + "i");
    for (const ir::Axis& axis : s.axes) order.loops.push_back(axis.name);
    HONE_RETURN_IF_ERROR(sketch_.Do(order));
    for (const std::string& name : shared_) {
      HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{name, step_axis_ + "o"}));
    }
    const std::string& vector = s.axes[static_cast<size_t>(vector_)].name;
    for (const ir::Axis& axis : s.axes) {
      if (axis.name != vector) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{axis.name, ir::LoopKind::kUnrolled}));
    }
    HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{vector, VectorKind(width_)}));
    const bool unrolls = rows_ * step_ <= kMostUnrolled / 4 && step_ > 1;
    if (unrolls && Choose("unroll", {0, 1}, rows_ * step_ <= kUnrolledByDefault ? 1 : 0) == 1) {
      return sketch_.Do(Annotate{step_axis_ + "i", ir::LoopKind::kUnrolled});
    }
    return absl::OkStatus();
  }

  // All lanes fill what goes through shared memory, neighbours taking neighbouring vectors; by copies ahead of time
  // where the target has them and that is chosen.
  absl::Status FillShared() {
    const int64_t buffers = ChooseBuffers();
    bool copies = false;
    for (const std::string& name : shared_) {
      const std::vector<int64_t> counts = buffers > 0 ? CopyCounts(name) : std::vector<int64_t>();
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
    const int64_t fit = sketch_.target.memory.unasked_shared_bytes / bytes;
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
  std::vector<int64_t> CopyCounts(const std::string& name) const {
    std::vector<int64_t> counts;
    const int64_t size = ir::SizeOf(sketch_.Get(name).stage.buffer->dtype);
    for (const int64_t bytes : ir::kCopyBytes) {
      const int64_t count = bytes / size;
      if (bytes > sketch_.target.memory.async_copy_bytes || bytes % size != 0 ||
          sketch_.Get(name).loops.back().max_extent % count != 0) {
        continue;
      }
      schedule::State state = sketch_.state;
      const schedule::Schedule steps = FillSteps(name, count, true);
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
  const ir::Stage out_;
  int vector_ = -1, row_ = -1;  // axes of the output
  int64_t width_ = 1, rows_ = 1, lanes_x_ = 1, lanes_y_ = 1, step_ = 1;
  int64_t window_ = 1;  // steps of the reduction inside one step of the axis that is taken in steps
  std::string step_axis_;
  std::vector<std::string> inner_reduce_, shared_;
};

}  // namespace

absl::Status ScheduleLaneTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                              const std::string& prefix) {
  return LaneTile(sketch, reader, stage, prefix).Run();
}

}  // namespace hone::space
