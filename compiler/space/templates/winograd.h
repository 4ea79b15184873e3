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

// The stage as a convolution that can be computed from transformed tiles; nullopt if it is none.
std::optional<schedule::Convolution> FindWinograd(const schedule::State& state, const ir::Stage& stage);
// Whether neighbouring channels are neighbours in memory, in the data and in the result. The transforms load and store
// them as vectors.
bool ChannelsLast(const ir::Stage& stage, const schedule::Convolution& conv);

// The size of one convolution: the number of tiles, the elements of a transformed patch, the bytes of one patch and its
// products, and the bytes of the transformed weights.
struct WinogradWork {
  int64_t tiles = 1, elements, tile_bytes, weight_bytes;
};
WinogradWork WinogradWorkOf(const schedule::Convolution& conv, int64_t size);

// Chooses the size of the tiles, which is returned, and takes the step. Padding is then computed on the patches of the
// data, and `out` reads the sums that are transformed back.
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
