// SPDX-License-Identifier: Apache-2.0
// The two templates of Winograd's convolutions, and what they share.
#ifndef HONE_COMPILER_SPACE_TEMPLATES_WINOGRAD_H_
#define HONE_COMPILER_SPACE_TEMPLATES_WINOGRAD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/schedule/convolution.h"
#include "compiler/space/sketch.h"

namespace hone::space {

// Whether the stage is a convolution that can be computed from transformed tiles.
bool FitsWinograd(const schedule::State& state, const ir::Stage& stage);

// winograd_tile.cc, for CPUs: whether transformed tiles should be faster than the plain sums; the convolution `stage`,
// which `out` reads in place, or is. `prefix` begins the names of the decisions.
bool WinogradPays(const schedule::State& state, const ir::Stage& stage, const target::Target& target);
absl::Status ScheduleWinogradTile(Sketch& sketch, const std::string& out, const std::string& stage,
                                  const std::string& prefix);
// winograd_lanes.cc: the same for targets with lanes.
bool WinogradLanesPay(const schedule::State& state, const ir::Stage& stage, const target::Target& target);
absl::Status ScheduleWinogradLanes(Sketch& sketch, const std::string& out, const std::string& stage,
                                   const std::string& prefix);

inline constexpr int64_t kWinogradSizes[] = {2, 4, 6};  // of a tile's edge, in outputs
inline constexpr int64_t kWinogradWindow = 3;

// The stage as a convolution that can be made so.
std::optional<schedule::Convolution> FindWinograd(const schedule::State& state, const ir::Stage& stage);
// Whether neighbouring channels are neighbours in memory, of the data and of the result: what the transforms load and
// store side by side.
bool ChannelsLast(const ir::Stage& stage, const schedule::Convolution& conv);

// The products of one convolution: how many tiles there are, elements of a transformed patch, bytes of one patch and
// its products, bytes of the transformed weights.
struct WinogradWork {
  int64_t tiles = 1, elements, tile_bytes, weight_bytes;
};
WinogradWork WinogradWorkOf(const schedule::Convolution& conv, int64_t size);

// Takes the step, with tiles of a size that is chosen and returned: what pads the data is done on its patches, and
// `out` reads what is transformed back.
absl::StatusOr<int64_t> StartWinograd(Sketch& sketch, const std::string& out, const std::string& stage,
                                      const std::string& prefix, int64_t preferred);

// The stage of the products, which the step makes of `stage`.
inline std::string ProductsOf(const std::string& stage) { return stage + "m"; }

// Outputs of the convolution, but for its filters.
int64_t PixelsOf(const schedule::Convolution& conv);
// The position of the axis among those of the stage.
size_t PlaceOf(const ir::Stage& stage, const ir::Axis& axis);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_WINOGRAD_H_
