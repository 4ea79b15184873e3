// SPDX-License-Identifier: Apache-2.0
// Recognizes two-dimensional convolutions and the role of each of their axes.
//
// Only convolutions with stride 1, no dilation, no groups and constant weights: those that Winograd's algorithm
// computes (steps/winograd.cc). Axes and dimensions may be in any order.
#ifndef HONE_COMPILER_SCHEDULE_CONVOLUTION_H_
#define HONE_COMPILER_SCHEDULE_CONVOLUTION_H_

#include <optional>
#include <vector>

#include "compiler/schedule/state.h"

namespace hone::schedule {

// stage = sum over channel, window[0], window[1] of data[.., out[0] + window[0], .., out[1] + window[1], .., channel]
//         * weights[filter, channel, window[0], window[1]], the dimensions of both in any order.
struct Convolution {
  ir::Expr data, weights;       // the two loads
  std::vector<ir::Axis> batch;  // axes of the output other than out and filter
  ir::Axis out[2], filter;      // axes of the output
  ir::Axis window[2], channel;  // reduction axes
  size_t data_dims[2];          // the dimensions of the data along which the window moves
};

// nullopt if the stage is not such a convolution.
std::optional<Convolution> FindConvolution(const State& state, const ir::Stage& stage);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_CONVOLUTION_H_
