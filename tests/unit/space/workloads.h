// SPDX-License-Identifier: Apache-2.0
// Test support: small workloads of every kind the importer makes, with odd and prime extents among them.
#ifndef HONE_TESTS_UNIT_SPACE_WORKLOADS_H_
#define HONE_TESTS_UNIT_SPACE_WORKLOADS_H_

#include <ostream>
#include <string>
#include <vector>

namespace hone::tests {

struct NamedWorkload {
  std::string name, text;
};
inline std::ostream& operator<<(std::ostream& out, const NamedWorkload& w) { return out << w.name; }

// A padded 3x3 convolution whose extents no tile of Winograd's divides.
inline constexpr char kTilesRunOver[] = R"(workload "conv2d"
input x: f32[2,7,9,6] in [-1, 1]
const w: f32[5,6,3,3] in [-1, 1]
const b: f32[5] in [-1, 1]
p: f32[2,9,11,6] over n:2, h:9, v:11, c:6 = select(h >= 1 && h < 8 && v >= 1 && v < 10, x[n, h - 1, v - 1, c], 0.0f32)
y: f32[2,7,9,5] over n1:2, h1:7, v1:9, o:5 = sum ci:6, r:3, s:3 of p[n1, h1 + r, v1 + s, ci] * w[o, ci, r, s]
z: f32[2,7,9,5] over n2:2, h2:7, v2:9, o2:5 = max(y[n2, h2, v2, o2] + b[o2], 0.0f32)
output z
)";

std::vector<NamedWorkload> SmallWorkloads();
// The small workloads that are sums of products of 8-bit integers, for tensor instructions.
std::vector<NamedWorkload> ByteWorkloads();
// The small workloads that are products with weights of few bits.
std::vector<NamedWorkload> QuantizedWorkloads();

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_SPACE_WORKLOADS_H_
