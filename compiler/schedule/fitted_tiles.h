// SPDX-License-Identifier: Apache-2.0
// How Tail::kFit (step.h) cuts an axis into tiles: full ones, and behind them one or two short ones.
//
// A rest of one or two elements is too little work for a tile of its own, so it shares evenly with the last full tile.
// steps/split.cc states the same as expressions of an open size; spaces ask here what a tile costs.
#ifndef HONE_COMPILER_SCHEDULE_FITTED_TILES_H_
#define HONE_COMPILER_SCHEDULE_FITTED_TILES_H_

#include <algorithm>
#include <cstdint>

namespace hone::schedule {

// The longest rest that shares evenly with the last full tile.
inline constexpr int64_t SharedRestMax(int64_t factor) { return std::clamp<int64_t>(factor - 2, 0, 2); }

// The longest short tile. The code has a copy for each length, so a short tile of a large factor has about half of it,
// and a longer rest takes two.
inline constexpr int64_t ShortTileMax(int64_t factor) {
  constexpr int64_t kAllLengthsMax = 6;  // up to this factor, a rest never takes two tiles
  return factor <= kAllLengthsMax ? factor - 1 : (factor + 1) / 2 + 1;
}

struct FittedTiles {
  int64_t full = 0;
  int64_t others = 0;  // 0 to 2 short tiles behind the full ones; if there are two, they may overlap by one element
  int64_t length = 0;  // of each short tile
};

// The tiles of an axis of `extent` elements.
inline constexpr FittedTiles TilesOf(int64_t extent, int64_t factor) {
  const int64_t full = extent / factor, rest = extent % factor;
  if (rest == 0) return {full, 0, 0};
  if (rest <= SharedRestMax(factor) && full > 0) return {full - 1, 2, (factor + rest + 1) / 2};
  if (rest <= ShortTileMax(factor)) return {full, 1, rest};
  return {full, 2, (rest + 1) / 2};
}

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_FITTED_TILES_H_
