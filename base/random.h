// SPDX-License-Identifier: Apache-2.0
// A small seeded random generator with the same sequence on every platform and C++ library, unlike the distributions of
// the C++ library.
//
// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). Not for secrets.
#ifndef HONE_BASE_RANDOM_H_
#define HONE_BASE_RANDOM_H_

#include <cstdint>

namespace hone {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // The n-th generator of a seed. The sequences of different n are independent. Seeding generators directly with
  // hand-picked seeds is worse: two seeds that differ by a multiple of the step in Next() give the same sequence,
  // shifted.
  static Random Nth(uint64_t seed, uint64_t n) { return Random(Random(seed + n).Next()); }
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // Uniform in [0, n); n > 0. The bias of the multiply-shift is below n / 2^64.
  int64_t Below(int64_t n) {
    return static_cast<int64_t>((static_cast<unsigned __int128>(Next()) * static_cast<uint64_t>(n)) >> 64);
  }
  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace hone

#endif  // HONE_BASE_RANDOM_H_
