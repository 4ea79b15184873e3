// SPDX-License-Identifier: Apache-2.0
// Which part each axis of a two-dimensional convolution plays, read off its indices.
//
// Only convolutions that step by one, without dilation or groups, with constant weights: those that can be computed
// from transformed tiles (steps/winograd.cc). The order of axes and dimensions does not matter.
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
  std::vector<ir::Axis> batch;  // of the output, other than out and filter
  ir::Axis out[2], filter;      // of the output
  ir::Axis window[2], channel;  // that are reduced over
  size_t data_dims[2];          // of the data, along which the window moves
};

// nullopt if the stage is no such convolution.
std::optional<Convolution> FindConvolution(const State& state, const ir::Stage& stage);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_CONVOLUTION_H_
