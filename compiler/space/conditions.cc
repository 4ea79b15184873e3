// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/conditions.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/inline.h"
#include "compiler/space/sketch/lanes.h"
#include "compiler/space/sketch/tile_shape.h"
#include "compiler/space/sketch/tiling.h"
#include "compiler/space/sketch/widen.h"
#include "compiler/space/templates/attention_tile.h"
#include "compiler/space/templates/lane_tile.h"
#include "compiler/space/templates/quantized_tile.h"
#include "compiler/space/templates/winograd.h"

namespace hone::space {
namespace {

// Whether `is` holds for the state once element-wise stages are inlined.
template <typename F>
bool Inlined(const ir::Workload& workload, const target::Target& target, const F& is) {
  Chooser none;
  Sketch sketch{schedule::InitialState(workload), target, none, {}};
  return InlineStages(sketch).ok() && is(sketch.state);
}

template <typename F>
bool SomeStage(const schedule::State& state, const F& is) {
  return std::ranges::any_of(state.nests, [&](const schedule::Nest& nest) { return is(state, nest.stage); });
}

// Whether `is` holds for some stage once element-wise stages are inlined.
template <typename F>
bool SomeReduction(const ir::Workload& workload, const target::Target& target, const F& is) {
  return Inlined(workload, target, [&](const schedule::State& state) { return SomeStage(state, is); });
}

// The same, once the operands of products that Winograd's algorithm could compute are f32, too.
template <typename F>
bool SomeConvolution(const ir::Workload& workload, const target::Target& target, const F& is) {
  return Inlined(workload, target, [&](const schedule::State& state) {
    Chooser none;
    Sketch sketch{state, target, none, {}};
    return WidenConvolutions(sketch).ok() && SomeStage(sketch.state, is);
  });
}

// Whether an operand would be packed only to be read once, as in the product of a matrix and a vector: each of its
// elements goes into one result, and vectors of results do not lie along it. The copy takes longer than the product.
bool PacksForOneUse(const schedule::State& state, const ir::Stage& s) {
  if (!IsContraction(s)) return false;
  const auto counts = [](const ir::Axis& axis) { return axis.extent.max() > 1; };
  const auto vector = std::find_if(s.axes.rbegin(), s.axes.rend(), counts);
  if (vector == s.axes.rend()) return false;
  const ir::Ranges ranges = AxisRanges(s);
  return std::ranges::any_of(LoadsOf(s), [&](const ir::Load& load) {
    const auto along = StrideOf(load, vector->name, ranges);
    if (!along.has_value() || *along <= 1 || schedule::IsFixed(state, load.buffer.get())) return false;
    return std::ranges::all_of(
        s.axes, [&](const ir::Axis& axis) { return !counts(axis) || StrideOf(load, axis.name, ranges) != 0; });
  });
}

}  // namespace

bool IsAny(const ir::Workload&, const target::Target&) { return true; }

bool HasContraction(const ir::Workload& workload) { return std::ranges::any_of(workload.stages, IsContraction); }

bool HasProduct(const ir::Workload& workload, const target::Target&) { return HasContraction(workload); }

bool HasQuantizedProduct(const ir::Workload& workload, const target::Target& target) {
  return HasContraction(workload) && SomeReduction(workload, target, FitsQuantizedTile);
}

// The sketch is better for a small window along the vectors, as in a depthwise convolution with channels first: there
// is nothing to pack, and the sketch shares rows among windows. It is also better if vectors should lie along the
// reduction.
bool PrefersRegisterTiles(const ir::Workload& workload, const target::Target& target) {
  return !SomeReduction(workload, target, [&](const schedule::State& state, const ir::Stage& s) {
    const bool alone = std::ranges::count_if(state.nests, IsContraction, &schedule::Nest::stage) == 1;
    return SharesRows(s) || PacksForOneUse(state, s) || (alone && PrefersPartialResults(state, s, target));
  });
}

bool HasWinograd(const ir::Workload& workload, const target::Target& target) {
  return HasContraction(workload) && SomeConvolution(workload, target, FitsWinograd);
}

bool PrefersWinograd(const ir::Workload& workload, const target::Target& target) {
  return SomeConvolution(workload, target, [&](const schedule::State& state, const ir::Stage& stage) {
    return WinogradPays(state, stage, target);
  });
}

// A matrix that is read once gains nothing from tiles: lanes that share its rows read it in the order of memory. If too
// few results share what is loaded, as in a depthwise convolution with channels first, a lane computes each short sum.
bool PrefersLaneTiles(const ir::Workload& workload, const target::Target& target) {
  return target.memory.shared_gain <= 1 ||
         !SomeReduction(workload, target, [&](const schedule::State& state, const ir::Stage& s) {
           const bool is_short = IsContraction(s) && ReduceSteps(s) < kLaneSharedStepsMin;
           return IsVectorProduct(state, s) || (is_short && !FillsLaneTile(s, target));
         });
}

bool PrefersWinogradLanes(const ir::Workload& workload, const target::Target& target) {
  return SomeReduction(workload, target, [&](const schedule::State& state, const ir::Stage& stage) {
    return WinogradLanesPay(state, stage, target);
  });
}

bool HasAttention(const ir::Workload& workload, const target::Target& target) {
  return HasContraction(workload) && Inlined(workload, target, FitsAttention);
}

}  // namespace hone::space
