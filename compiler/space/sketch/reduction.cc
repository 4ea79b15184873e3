// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/sketch/reduction.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"

namespace hone::space {
namespace {

constexpr int64_t kVectorElementsMin = 4;  // elements of the shortest vector that is worth using
constexpr int64_t kPartialVectorsMax = 4;  // the most vectors of partial results
constexpr double kPaddedElementsRatioMax =
    1.1;  // the most computed elements, padding included, relative to one vector at a time

// The preferred number of vectors of partial results. Several are independent chains, so that one does not wait for
// another, unless the padding beyond the axis' end grows. Of an open axis, all its extents count together: a long row
// gains more than a short one loses.
int64_t PreferredVectors(const ir::Size& size, int64_t width) {
  const std::vector<int64_t> extents = TypicalExtents(size);
  const auto padded = [&](int64_t vectors) {
    int64_t sum = 0;
    for (const int64_t extent : extents) sum += (extent + vectors * width - 1) / (vectors * width) * vectors * width;
    return static_cast<double>(sum);
  };
  const auto count = static_cast<int64_t>(extents.size());
  const int64_t mean = std::accumulate(extents.begin(), extents.end(), int64_t{0}) / count;
  int64_t preferred = mean >= 8 * width ? kPartialVectorsMax : 1;
  while (preferred > 1 && padded(preferred) > kPaddedElementsRatioMax * padded(1)) preferred /= 2;
  return preferred;
}

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
  // Records contain the name "lanes", so it must not change.
  const int64_t vectors = sketch.chooser.OneOf(stage + ".lanes", options, PreferredVectors(axis.extent, width));
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
