// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/sketch/reduction.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"

namespace hone::space {
namespace {

constexpr int64_t kVectorElementsMin = 4;  // elements of the shortest vector that is worth using
constexpr int64_t kPartialVectorsMax = 4;  // the most vectors of partial results
constexpr double kPaddedElementsRatioMax =
    1.1;  // the most computed elements, padding included, relative to one vector at a time

}  // namespace

bool FitsVectors(const Sketch& sketch, const ir::Stage& s) {
  if (s.reduce_axes.empty()) return false;
  const ir::Axis& axis = s.reduce_axes.back();
  if (axis.extent.max() <= sketch.target.VectorWidth(std::max(4, ir::SizeOf(s.buffer->dtype)))) return false;
  const ir::Ranges ranges = AxisRanges(s);
  const std::vector<ir::Load> loads = LoadsOf(s);
  return std::all_of(loads.begin(), loads.end(), [&](const ir::Load& load) {
    const auto stride = StrideOf(load, axis.name, ranges);
    return stride.has_value() && *stride >= 0 && *stride <= 1;
  });
}

int64_t PartialResultsMax(const Sketch& sketch, const ir::Stage& s) {
  const int64_t width = sketch.target.VectorWidth(std::max(4, ir::SizeOf(s.buffer->dtype)));
  return (kPartialVectorsMax + 1) * width + kVectorElementsMin + 1;
}

// Splits a reduction whose innermost axis is contiguous in memory: vectors of partial results first, then a reduction
// of their elements.
absl::StatusOr<bool> ScheduleVectorReduction(Sketch& sketch, const std::string& stage) {
  const ir::Stage s = sketch.Get(stage).stage;
  if (!FitsVectors(sketch, s)) return false;
  const ir::Axis axis = s.reduce_axes.back();
  const int64_t width = sketch.target.VectorWidth(std::max(4, ir::SizeOf(s.buffer->dtype)));
  std::vector<int64_t> options;
  for (const int64_t v : {int64_t{1}, int64_t{2}, kPartialVectorsMax}) {
    if (v * width <= axis.extent.max()) options.push_back(v);
  }
  // Several vectors are independent chains, so that one does not wait for another. They are preferred unless the
  // padding beyond the axis' end grows. Records contain the name "lanes", so it must not change.
  const int64_t extent = TypicalExtent(axis.extent);
  const auto all = [&](int64_t v) { return (extent + v * width - 1) / (v * width) * v * width; };
  int64_t preferred = extent >= 8 * width ? kPartialVectorsMax : 1;
  while (preferred > 1 && static_cast<double>(all(preferred)) > kPaddedElementsRatioMax * static_cast<double>(all(1)))
    preferred /= 2;
  const int64_t vectors = sketch.chooser.OneOf(stage + ".lanes", options, preferred);
  HONE_ASSIGN_OR_RETURN(Partials left, sketch.Rfactor({stage, axis.name, width * vectors, true}));
  // Shorter vectors reduce the partial results: one number after the other would take as long as a row of a few
  // hundred.
  const int64_t levels = sketch.chooser.OneOf(stage + ".levels", {1, 2, 3}, 3);
  int64_t partials = width * vectors;
  for (const int64_t shorter : {width, kVectorElementsMin}) {
    if (levels == 1 || (levels == 2 && shorter < width) || shorter >= partials) continue;
    HONE_ASSIGN_OR_RETURN(left, sketch.Rfactor({stage, left.axis, shorter, true}));
    partials = shorter;
  }
  return true;
}

}  // namespace hone::space
