// SPDX-License-Identifier: Apache-2.0
// Resize along axes of open size: the positions that are read follow from the sizes when the kernel runs.
//
// Not here: axes of known size, whose positions are computed at import (resize.cc). Modes nearest and linear only,
// without antialiasing and cropping.
#ifndef HONE_COMPILER_GRAPH_OPS_RESIZE_OPEN_H_
#define HONE_COMPILER_GRAPH_OPS_RESIZE_OPEN_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// One dimension that is resized. The scale is `scale` if the model gives it as a number, else out / in.
struct OpenAxis {
  size_t dim = 0;
  Size in, out;
  std::optional<double> scale = std::nullopt;
};

// The attributes coordinate_transformation_mode and nearest_mode.
struct OpenResize {
  bool nearest = true;  // else linear
  std::string transform, rounding;
};

// Returns floor(extent * scale). Unimplemented if the scale is no fraction with a small denominator, or if the size may
// be too large for exact arithmetic in f32, in which ONNX computes it.
absl::StatusOr<Size> ScaledSize(const Size& extent, double scale);

// `x` must have floats if the mode is linear.
ir::Buffer EmitOpenResize(StageBuilder& builder, const ir::Buffer& x, const OpenResize& resize,
                          const std::vector<OpenAxis>& axes);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_RESIZE_OPEN_H_
