// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/sketch/widen.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/ir/typing.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/operands.h"
#include "compiler/space/sketch/shared_tile.h"
#include "compiler/space/templates/winograd.h"

namespace hone::space {
namespace {

// The loads that the stage casts to f32 and multiplies, of buffers that a step `widen` may copy. Empty if the stage is
// no sum of products in f32.
std::vector<ir::Load> NarrowFactors(const ir::Stage& stage) {
  std::vector<ir::Load> loads;
  if (!IsContraction(stage) || stage.buffer->dtype != ir::DType::kFloat32) return loads;
  const ir::Binary& product = *stage.value.As<ir::Binary>();
  for (const ir::Expr& factor : {product.a, product.b}) {
    const ir::Cast* cast = factor.As<ir::Cast>();
    const ir::Load* load = cast == nullptr ? nullptr : cast->value.As<ir::Load>();
    if (load != nullptr && ir::IsStorageOnly(load->buffer->dtype)) loads.push_back(*load);
  }
  return loads;
}

absl::Status Widen(Sketch& sketch, const std::string& stage, const std::string& buffer) {
  const std::vector<std::string> own = OwnProducers(sketch.state, sketch.Get(stage).stage);
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Widen{buffer, stage}));
  const bool computes = std::ranges::find(own, buffer) != own.end();
  return computes ? sketch.Do(schedule::Inline{buffer}) : absl::OkStatus();
}

bool IsBroadcast(const ir::Stage& stage, const ir::Load& load) {
  const auto vector =
      std::find_if(stage.axes.rbegin(), stage.axes.rend(), [](const ir::Axis& axis) { return axis.extent.max() > 1; });
  return vector != stage.axes.rend() && StrideOf(load, vector->name, AxisRanges(stage)) == 0;
}

}  // namespace

absl::Status WidenBroadcasts(Sketch& sketch) {
  if (sketch.target.facts().has_grid) return absl::OkStatus();
  for (const std::string& name : StageNames(sketch.state, true)) {
    const ir::Stage stage = sketch.Get(name).stage;
    for (const ir::Load& load : NarrowFactors(stage)) {
      if (!IsBroadcast(stage, load) || sketch.chooser.OneOf(name + ".widen", {0, 1}, 1) == 0) continue;
      HONE_RETURN_IF_ERROR(Widen(sketch, name, load.buffer->name));
    }
  }
  return absl::OkStatus();
}

absl::Status WidenConvolutions(Sketch& sketch) {
  if (sketch.target.facts().has_grid) return absl::OkStatus();
  for (const std::string& name : StageNames(sketch.state, true)) {
    const std::vector<ir::Load> factors = NarrowFactors(sketch.Get(name).stage);
    if (factors.size() != 2) continue;
    Sketch trial{sketch.state, sketch.target, sketch.chooser, {}};
    for (const ir::Load& load : factors) HONE_RETURN_IF_ERROR(Widen(trial, name, load.buffer->name));
    if (!FitsWinograd(trial.state, trial.Get(name).stage)) continue;
    sketch.state = std::move(trial.state);
    sketch.steps.insert(sketch.steps.end(), trial.steps.begin(), trial.steps.end());
  }
  return absl::OkStatus();
}

}  // namespace hone::space
