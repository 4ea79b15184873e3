// SPDX-License-Identifier: Apache-2.0
// The template of 3x3 convolutions by Winograd's algorithm on targets with lanes. It has three launches: the transform
// of the input, products of matrices (one for each element of a transformed patch), and the transform back.
//
// A lane transforms a whole patch of one channel, or a tile of one filter back, in registers. Neighbouring lanes have
// neighbouring channels. Source: Lavin, Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.
#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/lanes.h"
#include "compiler/space/templates/lane_tile.h"
#include "compiler/space/templates/winograd.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Convolution;
using schedule::Tail;

constexpr int64_t kPreferredLanes = 128;
constexpr int64_t kLanes[] = {32, 64, 128, 256};

// Rates of one unit per cycle: multiply-adds that compiled code reaches, and bytes to and from the last-level cache.
constexpr double kProducts = 90, kBytes = 14;
constexpr double kLaunch = 4000;  // cycles between two launches that follow one another
// Winograd pays if it takes less than this share of the direct convolution's cycles; a smaller gain is not worth the
// larger rounding error.
constexpr double kSmallGain = 0.8;

double Cycles(const Convolution& conv, int64_t size, const target::Target& target) {
  const WinogradWork work = WinogradWorkOf(conv, size);
  const int64_t channels = conv.channel.extent.max(), filters = conv.filter.extent.max();
  const auto products = static_cast<double>(work.tiles * work.elements * channels * filters);
  // Patches and products are written and read once each. The data is read once for each patch, and the result is
  // written.
  const double moved = 2.0 * static_cast<double>(work.tiles * work.tile_bytes) +
                       static_cast<double>(work.tiles * work.elements * channels * 4) +
                       static_cast<double>(PixelsOf(conv) * filters * 4);
  return (products / kProducts + moved / kBytes) / target.hierarchy.units + 2 * kLaunch;
}

double DirectCycles(const Convolution& conv, const target::Target& target) {
  const int64_t steps = kWinogradWindow * kWinogradWindow * conv.channel.extent.max();
  return static_cast<double>(PixelsOf(conv) * steps * conv.filter.extent.max()) / kProducts / target.hierarchy.units;
}

// The tiles of least estimated time.
WinogradChoice Preferred(const Convolution& conv, const target::Target& target) {
  return PreferredWinograd(conv, {2, 4, 6}, [&](const Convolution& at, int64_t size) {
    return Cycles(at, size, target) / DirectCycles(at, target);
  });
}

class WinogradLanes {
 public:
  WinogradLanes(Sketch& sketch, std::string out, std::string stage, std::string prefix)
      : sketch_(sketch),
        out_(std::move(out)),
        stage_(std::move(stage)),
        prefix_(std::move(prefix)),
        conv_(*FindWinograd(sketch.state, sketch.Get(stage_).stage)),
        whole_(sketch.Get(stage_).stage) {}

  absl::Status Run() {
    HONE_ASSIGN_OR_RETURN(stages_,
                          StartWinograd(sketch_, out_, stage_, prefix_, Preferred(conv_, sketch_.target).size));
    HONE_RETURN_IF_ERROR(Output());
    HONE_RETURN_IF_ERROR(Input());
    HONE_ASSIGN_OR_RETURN(const std::string sums, sketch_.CacheWrite(stages_.products));
    return ScheduleLaneTile(sketch_, stages_.products, sums, prefix_);
  }

 private:
  std::string Axis(const std::string& stage, size_t d) const { return sketch_.Get(stage).stage.axes[d].name; }

  // Each lane transforms back a tile of one filter. A last tile may reach beyond the plane, and is masked.
  absl::Status Output() {
    std::vector<std::string> around, inside;
    for (const ir::Axis& axis : conv_.batch) around.push_back(Axis(out_, PlaceOf(whole_, axis)));
    for (const ir::Axis& axis : conv_.out) {
      const std::string name = Axis(out_, PlaceOf(whole_, axis));
      HONE_ASSIGN_OR_RETURN(const SplitLoops tile, sketch_.Split(name, stages_.size, Tail::kMask));
      around.push_back(tile.outer);
      inside.push_back(tile.inner);
    }
    around.push_back(Axis(out_, PlaceOf(whole_, conv_.filter)));
    HONE_ASSIGN_OR_RETURN(const std::string lane, Spread("out_lanes", around, inside));
    HONE_RETURN_IF_ERROR(Transform(stages_.outputs, lane));
    return Transform(stages_.half_transformed_products, lane);
  }

  // Each lane transforms a patch of one channel.
  absl::Status Input() {
    const std::string& v = stages_.transformed_patches;
    HONE_ASSIGN_OR_RETURN(const std::string lane,
                          Spread("in_lanes", {Axis(v, 2), Axis(v, 3)}, {Axis(v, 0), Axis(v, 1)}));
    HONE_RETURN_IF_ERROR(Transform(stages_.half_transformed_patches, lane));
    return Transform(stages_.patches, lane);
  }

  // Distributes the loops `around` over groups and lanes, the last loop fastest, and unrolls the loops `inside`.
  // Returns the loop over lanes.
  absl::StatusOr<std::string> Spread(const std::string& decision, const std::vector<std::string>& around,
                                     const std::vector<std::string>& inside) {
    schedule::Reorder order{around};
    order.loops.insert(order.loops.end(), inside.begin(), inside.end());
    HONE_RETURN_IF_ERROR(sketch_.Do(order));
    for (const std::string& loop : inside) HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{loop, ir::LoopKind::kUnrolled}));
    HONE_ASSIGN_OR_RETURN(const std::string all, sketch_.FuseAll(around));
    const int64_t lanes = ChooseLanes(sketch_, prefix_ + decision, {std::begin(kLanes), std::end(kLanes)},
                                      kPreferredLanes, sketch_.target.hierarchy.max_lanes);
    HONE_ASSIGN_OR_RETURN(const SplitLoops split, sketch_.Split(all, lanes, Tail::kMask));
    HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{split.outer, ir::LoopKind::kGroup}));
    HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{split.inner, ir::LoopKind::kLane}));
    return split.inner;
  }

  // Computes the stage at loop `at` with its two middle axes unrolled, so that it stays in a lane's registers.
  absl::Status Transform(const std::string& stage, const std::string& at) {
    HONE_RETURN_IF_ERROR(sketch_.Do(schedule::ComputeAt{stage, at}));
    for (size_t d = 1; d < 3; ++d) {
      HONE_RETURN_IF_ERROR(sketch_.Do(Annotate{Axis(stage, d), ir::LoopKind::kUnrolled}));
    }
    return absl::OkStatus();
  }

  Sketch& sketch_;
  const std::string out_, stage_, prefix_;
  const Convolution conv_;
  const ir::Stage whole_;  // the convolution as it was before any step
  WinogradStages stages_;
};

}  // namespace

bool WinogradLanesPay(const schedule::State& state, const ir::Stage& stage, const target::Target& target) {
  // Targets that may round factors to TF32 are excluded. The transforms increase the rounding error, and tensor
  // instructions make the direct convolution faster.
  if (target.memory.shared_gain <= 1 || target::AllowsTf32(target)) return false;
  const auto conv = FindWinograd(state, stage);
  if (!conv.has_value() || !ChannelsLast(stage, *conv)) return false;
  return Preferred(*conv, target).relative_cycles < kSmallGain;
}

absl::Status ScheduleWinogradLanes(Sketch& sketch, const std::string& out, const std::string& stage,
                                   const std::string& prefix) {
  return WinogradLanes(sketch, out, stage, prefix).Run();
}

}  // namespace hone::space
