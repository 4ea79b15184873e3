// SPDX-License-Identifier: Apache-2.0
// The two templates of Winograd's convolutions, and the functions that they share (winograd.cc).
#ifndef HONE_COMPILER_SPACE_TEMPLATES_WINOGRAD_H_
#define HONE_COMPILER_SPACE_TEMPLATES_WINOGRAD_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

#include "compiler/schedule/convolution.h"
#include "compiler/space/sketch.h"

namespace hone::space {

// Whether the stage is a convolution that can be computed from transformed tiles.
bool FitsWinograd(const schedule::State& state, const ir::Stage& stage);

// winograd_tile.cc, for CPUs. WinogradPays: whether Winograd's algorithm should be faster than the direct sums.
// ScheduleWinogradTile: schedules the convolution `stage` and its reader `out`, which reads it in place or is `stage`
// itself. `prefix` begins the names of the decisions.
bool WinogradPays(const schedule::State& state, const ir::Stage& stage, const target::Target& target);
absl::Status ScheduleWinogradTile(Sketch& sketch, const std::string& out, const std::string& stage,
                                  const std::string& prefix);
// winograd_lanes.cc: the same for targets with lanes.
bool WinogradLanesPay(const schedule::State& state, const ir::Stage& stage, const target::Target& target);
absl::Status ScheduleWinogradLanes(Sketch& sketch, const std::string& out, const std::string& stage,
                                   const std::string& prefix);

inline constexpr int64_t kWinogradSizes[] = {2, 4, 6};  // the outputs along the edge of a tile
inline constexpr int64_t kWinogradWindow = 3;

// The parts of the convolution if it can be computed from transformed tiles; nullopt if not.
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

// The preferred outputs along the edge of a tile, and the estimated time relative to that of the direct sums.
struct WinogradChoice {
  int64_t size = 0;
  double relative_cycles = 0;
};
// The best of `sizes`. relative_cycles: the estimate for a convolution of fixed sizes. With open sizes the mean over
// points that are spread evenly over their ranges decides.
WinogradChoice PreferredWinograd(
    const schedule::Convolution& conv, std::initializer_list<int64_t> sizes,
    const std::function<double(const schedule::Convolution& at, int64_t size)>& relative_cycles);

// The stages that the step adds for a convolution, by name. A patch of the data is transformed along one dimension,
// then along the other; the products of all patches are a matrix product for each element of a patch; their sums are
// transformed back along one dimension, then along the other.
struct WinogradStages {
  int64_t size = 0;                       // outputs along the edge of a tile
  std::string patches;                    // of the data, padded
  std::string half_transformed_patches;   // along one dimension
  std::string transformed_patches;        // along both
  std::string products;                   // sums over the channels
  std::string half_transformed_products;  // along one dimension
  std::string outputs;                    // along both: tiles of size x size
};

// Chooses the size of the tiles, takes the step and returns its stages. Inlines the padding of the data into the
// patches and, unless `out` is `stage`, `stage` itself into `out`: then `stage` no longer exists, and `out` reads
// `outputs`.
absl::StatusOr<WinogradStages> StartWinograd(Sketch& sketch, const std::string& out, const std::string& stage,
                                             const std::string& prefix, int64_t preferred);

// The number of outputs of the convolution for one filter.
int64_t PixelsOf(const schedule::Convolution& conv);
// The position of the axis among those of the stage.
size_t PlaceOf(const ir::Stage& stage, const ir::Axis& axis);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_WINOGRAD_H_
