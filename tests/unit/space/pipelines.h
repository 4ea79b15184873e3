// SPDX-License-Identifier: Apache-2.0
// Test support: products and a convolution whose operands are copied to shared memory asynchronously, as schedule text.
// A step "pipeline ko 2" (for the convolution: rco) pipelines the copies.
#ifndef HONE_TESTS_UNIT_SPACE_PIPELINES_H_
#define HONE_TESTS_UNIT_SPACE_PIPELINES_H_

#include <string>

namespace hone::tests {

// kEven: copies of 16 bytes divide the rows. kOdd: they do not. Tiles divide neither.
inline constexpr char kEven[] = R"(workload "matmul"
input x: f32[13,24] in [-1, 1]
input w: f32[24,20] in [-1, 1]
t: f32[13,20] over i:13, j:20 = sum k:24 of x[i, k] * w[k, j]
u: f32[13,20] over a:13, b:20 = max(t[a, b], 0f32)
output u
)";

inline constexpr char kOdd[] = R"(workload "matmul"
input x: f32[13,9] in [-1, 1]
input w: f32[9,22] in [-1, 1]
t: f32[13,22] over i:13, j:22 = sum k:9 of x[i, k] * w[k, j]
u: f32[13,22] over a:13, b:22 = max(t[a, b], 0f32)
output u
)";

inline constexpr char kConv[] = R"(workload "conv"
input x: f32[1,4,9,11] in [-1, 1]
input w: f32[6,4,3,3] in [-1, 1]
p: f32[1,4,11,13] over n:1, c:4, h:11, q:13 = select(h >= 1 && h < 10 && q >= 1 && q < 12, x[n, c, h - 1, q - 1], 0f32)
t: f32[1,6,9,11] over i0:1, i1:6, i2:9, i3:11 = sum rc:4, ry:3, rx:3 of p[i0, rc, i2 + ry, i3 + rx] * w[i1, rc, ry, rx]
u: f32[1,6,9,11] over a0:1, a1:6, a2:9, a3:11 = max(t[a0, a1, a2, a3], 0f32)
output u
)";

// Both operands are in shared memory, in steps of 4 of the reduction.
inline const std::string kTiles =
    "cache_read x t\nstore_in xrt shared 4\ncache_read w t\nstore_in wrt shared\n"
    "split a 8 mask\nsplit b 8 mask\nreorder ao bo ai bi\nbind ao group\nbind bo group\nbind ai lane\nbind bi lane\n"
    "compute_at t bi\nsplit k 4 mask\nreorder ko ki i j\ncompute_at xrt ko\ncompute_at wrt ko\n";
// Shared memory is filled by copies of 16 bytes (kByFour) or of one element.
inline const std::string kByFour = kTiles +
                                   "split xrt_1 4 mask\nfuse xrt_0 xrt_1o\nbind xrt_0_xrt_1o lane\ncopy_async xrt 4\n"
                                   "split wrt_1 4 mask\nfuse wrt_0 wrt_1o\nbind wrt_0_wrt_1o lane\ncopy_async wrt 4\n";
inline const std::string kByOne =
    kTiles +
    "fuse xrt_0 xrt_1\nbind xrt_0_xrt_1 lane\ncopy_async xrt 1\n"
    "fuse wrt_0 wrt_1\nsplit wrt_0_wrt_1 5 mask\nbind wrt_0_wrt_1o lane\ncopy_async wrt 1\n";
inline const std::string kConvTiles =
    "cache_read w t\nstore_in p shared\nstore_in wrt shared\nsplit a1 2 mask\nreorder a0 a1o a2 a1i a3\n"
    "bind a0 group\nbind a1o group\nbind a2 group\nbind a1i lane\nbind a3 lane\ncompute_at t a3\nsplit rc 1 mask\n"
    "reorder rco rci ry rx i0 i1 i2 i3\ncompute_at p rco\ncompute_at wrt rco\n"
    "fuse c h\nfuse c_h q\nbind c_h_q lane\nfuse wrt_0 wrt_1\nfuse wrt_0_wrt_1 wrt_2\nbind wrt_0_wrt_1_wrt_2 lane\n"
    "copy_async p 1\ncopy_async wrt 1\n";

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_SPACE_PIPELINES_H_
