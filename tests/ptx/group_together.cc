// SPDX-License-Identifier: Apache-2.0
// Instructions that the lanes of a warp run together: barriers, shuffles and mma.
#include <algorithm>
#include <array>
#include <cstring>

#include "fmt/format.h"
#include "tests/ptx/group.h"
#include "tests/ptx/numbers.h"

namespace hone::ptx {
namespace {

bool IsOfWarp(Kind kind) { return kind == Kind::kShuffle || kind == Kind::kMma; }

// The lane that a lane's value comes from. False: none, the lane keeps its own value.
bool SourceOf(const Instruction& i, uint32_t lane, uint64_t b, uint64_t c, uint32_t* source) {
  const auto by = static_cast<int>(b & 31), clamp = static_cast<int>(c & 31), mask = static_cast<int>(c >> 8 & 31);
  const auto own = static_cast<int>(lane);
  const int most = (own & mask) | (clamp & ~mask), least = own & mask;
  int from = own;
  switch (i.shuffle) {
    case Shuffle::kUp:
      from = own - by;
      break;
    case Shuffle::kDown:
      from = own + by;
      break;
    case Shuffle::kButterfly:
      from = own ^ by;
      break;
    case Shuffle::kIndex:
      from = least | (by & ~mask);
      break;
  }
  const bool there = i.shuffle == Shuffle::kUp ? from >= most : from <= most;
  *source = static_cast<uint32_t>(there ? from : own);
  return there;
}

}  // namespace

bool Group::AllWait(std::span<const Lane> lanes) {
  return std::ranges::all_of(lanes, [&](const Lane& lane) { return lane.waits && lane.pc == lanes[0].pc; });
}

void Group::Release(std::span<Lane> lanes) {
  for (Lane& lane : lanes) {
    lane.waits = false;
    ++lane.pc;
  }
}

bool Group::RunTogether() {
  bool met = false;
  const auto count = static_cast<uint32_t>(lanes_.size());
  for (uint32_t first = 0; first < count; first += kWarp) met |= RunWarp(first);
  for (uint32_t first = 0; first < count && kernel_.has_products; first += kWarps) met |= RunWarps(first);
  for (Lane& lane : lanes_) met |= error_.ok() && lane.waits && Next(lane).kind == Kind::kTryWait && TryWait(&lane);
  return met || RunBarrier();
}

bool Group::RunWarp(uint32_t first) {
  const std::span warp = std::span(lanes_).subspan(first, std::min<size_t>(kWarp, lanes_.size() - first));
  bool met = false;
  for (const Lane& lane : warp) {
    if (!error_.ok()) return false;
    if (!lane.waits || !IsOfWarp(Next(lane).kind)) continue;
    const Instruction& i = Next(lane);
    if (i.kind == Kind::kShuffle) {
      met |= ShuffleTogether(i, warp, lane);
    } else if (warp.size() == kWarp && AllWait(warp)) {
      Multiply(i, warp);
      Release(warp);
      return true;
    }
  }
  return met;
}

bool Group::ShuffleTogether(const Instruction& i, std::span<Lane> warp, const Lane& asking) {
  const auto mask_of = [&](const Lane& lane) { return static_cast<uint32_t>(lane.slots[kernel_.lists[i.list]]); };
  const uint32_t mask = mask_of(asking), pc = asking.pc;
  if ((mask >> (asking.number % kWarp) & 1) == 0) {
    return Fail(absl::StatusCode::kFailedPrecondition, i, asking, fmt::format("is not in its mask {:#x}", mask));
  }
  std::array<uint64_t, kWarp> values = {};
  for (uint32_t n = 0; n < warp.size(); ++n) {
    const bool asked = (mask >> n & 1) != 0;
    if (asked && (!warp[n].waits || warp[n].pc != pc || mask_of(warp[n]) != mask)) return false;
    values[n] = static_cast<uint32_t>(warp[n].slots[i.a]);
  }
  for (uint32_t n = 0; n < warp.size(); ++n) {
    Lane& lane = warp[n];
    if ((mask >> n & 1) == 0) continue;
    uint32_t source = 0;
    const bool there = SourceOf(i, n, lane.slots[i.b], lane.slots[i.c], &source);
    if (source >= warp.size() || (mask >> source & 1) == 0) {
      return Fail(absl::StatusCode::kFailedPrecondition, i, lane,
                  fmt::format("reads of lane {} of its warp, which does not take part", source));
    }
    lane.slots[i.to] = values[source];
    if (i.also_to != 0) lane.slots[i.also_to] = there ? 1 : 0;
    Release({&lane, 1});
  }
  return true;
}

// Lane 4 g + t has of a rows g and g + 8, of b column g, of the sum rows g and g + 8 and columns 2 t and 2 t + 1.
void Group::Multiply(const Instruction& i, std::span<Lane> warp) {
  const bool tf32 = i.element == Element::kTf32;
  const uint32_t steps = tf32 ? 8 : 16;
  const auto slot = [&](const Lane& lane, uint32_t n) -> uint64_t& { return lane.slots[kernel_.lists[i.list + n]]; };
  std::array<std::array<double, 16>, 16> a = {};
  std::array<std::array<double, 16>, 8> b = {};
  // A register has one factor of 32 bits, or two of 16 bits.
  const auto put = [&](std::array<double, 16>& row, uint32_t t, uint32_t half, uint64_t bits) {
    if (tf32) {
      row[t + 4 * half] = CutOff(static_cast<uint32_t>(bits));
      return;
    }
    for (uint32_t n = 0; n < 2; ++n) {
      const auto factor = static_cast<uint16_t>(bits >> (16 * n));
      row[2 * t + 8 * half + n] = i.element == Element::kF16 ? FromF16(factor) : FromBf16(factor);
    }
  };
  for (uint32_t n = 0; n < kWarp; ++n) {
    const uint32_t g = n / 4, t = n % 4;
    for (uint32_t half = 0; half < 2; ++half) {
      put(a[g], t, half, slot(warp[n], 4 + 2 * half));
      put(a[g + 8], t, half, slot(warp[n], 5 + 2 * half));
      put(b[g], t, half, slot(warp[n], 8 + half));
    }
  }
  for (uint32_t n = 0; n < kWarp; ++n) {
    std::array<float, 4> sums = {};
    for (uint32_t part = 0; part < 4; ++part) {
      const auto& row = a[n / 4 + 8 * (part / 2)];
      const auto& column = b[2 * (n % 4) + part % 2];
      double sum = std::bit_cast<float>(static_cast<uint32_t>(slot(warp[n], 10 + part)));
      for (uint32_t k = 0; k < steps; ++k) sum += row[k] * column[k];
      sums[part] = static_cast<float>(sum);
    }
    for (uint32_t part = 0; part < 4; ++part) slot(warp[n], part) = std::bit_cast<uint32_t>(sums[part]);
  }
}

}  // namespace hone::ptx
