// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/space/workloads.h"

#include <fmt/format.h>

namespace hone::tests {
namespace {

NamedWorkload MatMul(const std::string& name, int m, int n, int k, bool constant) {
  return {name, fmt::format(R"(workload "matmul"
input x: f32[{0},{2}] in [-1, 1]
{3} w: f32[{2},{1}] in [-1, 1]
const b: f32[{1}] in [-1, 1]
t: f32[{0},{1}] over i:{0}, j:{1} = sum k:{2} of x[i, k] * w[k, j]
u: f32[{0},{1}] over ui:{0}, uj:{1} = max(t[ui, uj] + b[uj], 0f32)
output u
)",
                            m, n, k, constant ? "const" : "input")};
}

// A channels-last convolution with padding, bias, a residual input and a clamp.
NamedWorkload Conv(const std::string& name, int h, int w, int ic, int oc, int kernel, int stride) {
  const int pad = kernel / 2, ph = h + 2 * pad, pw = w + 2 * pad;
  const int oh = (ph - kernel) / stride + 1, ow = (pw - kernel) / stride + 1;
  return {name, fmt::format(R"(workload "conv2d"
input x: f32[1,{0},{1},{2}] in [-1, 1]
const w: f32[{3},{2},{4},{4}] in [-1, 1]
const b: f32[{3}] in [-1, 1]
input r: f32[1,{8},{9},{3}] in [-1, 1]
p: f32[1,{6},{7},{2}] over p0:1, p1:{6}, p2:{7}, p3:{2} )"
                            R"(= select(p1 >= {10} && p1 < {11} && p2 >= {10} && p2 < {12})"
                            R"(, x[p0, p1 - {10}, p2 - {10}, p3], 0f32)
t: f32[1,{8},{9},{3}] over n:1, h:{8}, v:{9}, oc:{3} )"
                            R"(= sum ic:{2}, kh:{4}, kw:{4})"
                            R"( of p[n, h * {5} + kh, v * {5} + kw, ic] * w[oc, ic, kh, kw]
u: f32[1,{8},{9},{3}] over un:1, uh:{8}, uw:{9}, uc:{3} )"
                            R"(= min(max(t[un, uh, uw, uc] + b[uc] + r[un, uh, uw, uc], 0f32), 6f32)
output u
)",
                            h, w, ic, oc, kernel, stride, ph, pw, oh, ow, pad, h + pad, w + pad)};
}

NamedWorkload Depthwise(const std::string& name, int h, int w, int c) {
  return {name, fmt::format(R"(workload "depthwise_conv2d"
input x: f32[1,{0},{1},{2}] in [-1, 1]
const w: f32[{2},1,3,3] in [-1, 1]
p: f32[1,{3},{4},{2}] over p0:1, p1:{3}, p2:{4}, p3:{2} )"
                            R"(= select(p1 >= 1 && p1 < {5} && p2 >= 1 && p2 < {6})"
                            R"(, x[p0, p1 - 1, p2 - 1, p3], 0f32)
t: f32[1,{0},{1},{2}] over n:1, h:{0}, v:{1}, c:{2} )"
                            R"(= sum kh:3, kw:3 of p[n, h + kh, v + kw, c] * w[c, 0, kh, kw]
output t
)",
                            h, w, c, h + 2, w + 2, h + 1, w + 1)};
}

// A depthwise convolution, ReLU, and a pointwise convolution, to which a residual input is added.
NamedWorkload Separable(const std::string& name, int h, int w, int c, int o, int stride) {
  const int oh = (h - 1) / stride + 1, ow = (w - 1) / stride + 1;
  return {name, fmt::format(R"(workload "separable_conv"
input x: f32[1,{0},{1},{2}] in [-1, 1]
const w: f32[{2},1,3,3] in [-1, 1]
const v: f32[{2},{3}] in [-1, 1]
input r: f32[1,{5},{6},{3}] in [-1, 1]
p: f32[1,{7},{8},{2}] over p0:1, p1:{7}, p2:{8}, p3:{2} )"
                            R"(= select(p1 >= 1 && p1 < {9} && p2 >= 1 && p2 < {10}, x[p0, p1 - 1, p2 - 1, p3], 0f32)
t: f32[1,{5},{6},{2}] over n:1, h:{5}, v0:{6}, c:{2} )"
                            R"(= sum kh:3, kw:3 of p[n, h * {4} + kh, v0 * {4} + kw, c] * w[c, 0, kh, kw]
u: f32[1,{5},{6},{2}] over un:1, uh:{5}, uw:{6}, uc:{2} = max(t[un, uh, uw, uc], 0f32)
y: f32[1,{5},{6},{3}] over yn:1, yh:{5}, yw:{6}, yo:{3} = sum k:{2} of u[yn, yh, yw, k] * v[k, yo]
z: f32[1,{5},{6},{3}] over zn:1, zh:{5}, zw:{6}, zo:{3} = y[zn, zh, zw, zo] + r[zn, zh, zw, zo]
output z
)",
                            h, w, c, o, stride, oh, ow, h + 2, w + 2, h + 1, w + 1)};
}

// A matrix product of 8-bit integers of types a and b, each with or without a zero point, requantized or not.
NamedWorkload ByteMatMul(const std::string& name, int m, int n, int k, const std::string& a, const std::string& b,
                         bool a_zero, bool b_zero, const std::string& kind, bool requantize) {
  const auto range = [](const std::string& type) { return type == "u8" ? "[0, 255]" : "[-128, 127]"; };
  std::string text = fmt::format("workload \"matmul\"\ninput x: {}[{},{}] in {}\n{} w: {}[{},{}] in {}\n", a, m, k,
                                 range(a), kind, b, k, n, range(b));
  if (a_zero) text += fmt::format("input xz: {}[] in {}\n", a, range(a));
  if (b_zero) text += fmt::format("const wz: {}[{}] in {}\n", b, n, range(b));
  if (requantize) text += fmt::format("const s: f32[{}] in [0.001, 0.01]\n", n);
  text += fmt::format("t: i32[{0},{1}] over i:{0}, j:{1} = sum k:{2} of (i32(x[i, k]){3}) * (i32(w[k, j]){4})\n", m, n,
                      k, a_zero ? " - i32(xz[])" : "", b_zero ? " - i32(wz[j])" : "");
  if (requantize) {
    text += fmt::format(
        "u: u8[{0},{1}] over ui:{0}, uj:{1} = u8(min(max(round(f32(t[ui, uj]) * s[uj]) + 7f32, 0f32), "
        "255f32))\n",
        m, n);
  }
  return {name, text + (requantize ? "output u\n" : "output t\n")};
}

// A channels-last convolution of 8-bit integers, padded with the zero point.
NamedWorkload ByteConv(const std::string& name, int h, int w, int ic, int oc, int stride, const std::string& b) {
  const int oh = (h + 2 - 3) / stride + 1, ow = (w + 2 - 3) / stride + 1;
  return {name, fmt::format(R"(workload "conv2d"
input x: u8[1,{0},{1},{2}] in [0, 255]
const xz: u8[] in [0, 255]
const w: {6}[{3},{2},3,3] in [{7}, 127]
const b: i32[{3}] in [-100, 100]
p: u8[1,{8},{9},{2}] over p0:1, p1:{8}, p2:{9}, p3:{2} )"
                            R"(= select(p1 >= 1 && p1 <= {0} && p2 >= 1 && p2 <= {1})"
                            R"(, x[p0, p1 - 1, p2 - 1, p3], xz[])
t: i32[1,{4},{5},{3}] over n:1, h:{4}, v:{5}, oc:{3} = sum ic:{2}, kh:3, kw:3 )"
                            R"(of (i32(p[n, h * {10} + kh, v * {10} + kw, ic]) - i32(xz[])) * i32(w[oc, ic, kh, kw])
u: i8[1,{4},{5},{3}] over un:1, uh:{4}, uw:{5}, uc:{3} )"
                            R"(= i8(min(max(round(f32(t[un, uh, uw, uc] + b[uc]) * 0.001f32), -128f32), 127f32))
output u
)",
                            h, w, ic, oc, oh, ow, b, b == "u8" ? 0 : -128, h + 2, w + 2, stride)};
}

// A channels-first convolution; `h` is 1 for a one-dimensional signal.
NamedWorkload ConvFirst(const std::string& name, int h, int w, int ic, int oc, int kernel, int stride) {
  const int kh = h == 1 ? 1 : kernel, sh = h == 1 ? 1 : stride;
  const int ph = h + kh - 1, pw = w + kernel - 1;
  const int oh = (ph - kh) / sh + 1, ow = (pw - kernel) / stride + 1;
  return {name, fmt::format(R"(workload "conv2d"
input x: f32[2,{2},{0},{1}] in [-1, 1]
const w: f32[{3},{2},{4},{5}] in [-1, 1]
const b: f32[{3}] in [-1, 1]
p: f32[2,{2},{8},{9}] over p0:2, p1:{2}, p2:{8}, p3:{9} )"
                            R"(= select(p2 >= {12} && p2 < {14} && p3 >= {13} && p3 < {15})"
                            R"(, x[p0, p1, p2 - {12}, p3 - {13}], 0f32)
t: f32[2,{3},{10},{11}] over n:2, oc:{3}, h:{10}, v:{11} )"
                            R"(= sum ic:{2}, kh:{4}, kw:{5})"
                            R"( of p[n, ic, h * {6} + kh, v * {7} + kw] * w[oc, ic, kh, kw]
u: f32[2,{3},{10},{11}] over un:2, uc:{3}, uh:{10}, uw:{11} = max(t[un, uc, uh, uw] + b[uc], 0f32)
output u
)",
                            h, w, ic, oc, kh, kernel, sh, stride, ph, pw, oh, ow, kh / 2, kernel / 2, h + kh / 2,
                            w + kernel / 2)};
}

// A channels-first pooling; `value` is the padding, `reduction` max or sum.
NamedWorkload PoolFirst(const std::string& name, int h, int w, int stride, const std::string& reduction,
                        const std::string& value) {
  const int oh = (h - 1) / stride + 1, ow = (w - 1) / stride + 1;
  return {name, fmt::format(R"(workload "pool"
input x: f32[1,5,{0},{1}] in [-1, 1]
p: f32[1,5,{2},{3}] over p0:1, p1:5, p2:{2}, p3:{3} )"
                            R"(= select(p2 >= 1 && p2 < {4} && p3 >= 1 && p3 < {5}, x[p0, p1, p2 - 1, p3 - 1], {9})
t: f32[1,5,{6},{7}] over n:1, c:5, h:{6}, v:{7} = {8} kh:3, kw:3 of p[n, c, h * {10} + kh, v * {10} + kw]
output t
)",
                            h, w, h + 2, w + 2, h + 1, w + 1, oh, ow, reduction, value, stride)};
}

NamedWorkload Softmax(const std::string& name, int rows, int n) {
  return {name, fmt::format(R"(workload "softmax"
input x: f32[3,{0},{1}] in [-4, 4]
m: f32[3,{0},1] over a0:3, a1:{0}, a2:1 = max a3:{1} of x[a0, a1, a3]
e: f32[3,{0},{1}] over b0:3, b1:{0}, b2:{1} = exp(x[b0, b1, b2] - m[b0, b1, 0])
s: f32[3,{0},1] over c0:3, c1:{0}, c2:1 = sum c3:{1} of e[c0, c1, c3]
o: f32[3,{0},{1}] over d0:3, d1:{0}, d2:{1} = e[d0, d1, d2] / s[d0, d1, 0]
output o
)",
                            rows, n)};
}

// Attention with `rows` queries and `keys` keys of d numbers, and `keys` values of v numbers; with a mask.
NamedWorkload Attention(const std::string& name, int rows, int keys, int d, int v) {
  return {name, fmt::format(R"(workload "attention"
input q: f32[2,{0},{2}] in [-1, 1]
input k: f32[2,{2},{1}] in [-1, 1]
input mask: f32[1,{1}] in [-4, 0]
input v: f32[2,{1},{3}] in [-1, 1]
t: f32[2,{0},{1}] over h:2, i:{0}, j:{1} = sum d:{2} of q[h, i, d] * k[h, d, j]
a: f32[2,{0},{1}] over a0:2, a1:{0}, a2:{1} = t[a0, a1, a2] * 0.5f32 + mask[0, a2]
m: f32[2,{0},1] over m0:2, m1:{0}, m2:1 = max m3:{1} of a[m0, m1, m3]
e: f32[2,{0},{1}] over b0:2, b1:{0}, b2:{1} = exp(a[b0, b1, b2] - m[b0, b1, 0])
s: f32[2,{0},1] over c0:2, c1:{0}, c2:1 = sum c3:{1} of e[c0, c1, c3]
p: f32[2,{0},{1}] over d0:2, d1:{0}, d2:{1} = e[d0, d1, d2] * (1f32 / s[d0, d1, 0])
o: f32[2,{0},{3}] over o0:2, o1:{0}, o2:{3} = sum o3:{1} of p[o0, o1, o3] * v[o0, o3, o2]
output o
)",
                            rows, keys, d, v)};
}

// `rows` of k numbers times n x k weights of `bits` bits in blocks, and a bias, as MatMulNBits is written. zeros: ""
// for the middle of the range, "bytes" for zero points packed like the weights, "floats".
NamedWorkload FewBits(const std::string& name, int rows, int n, int k, int bits, int block, const std::string& zeros) {
  const int per_byte = 8 / bits, blocks = (k + block - 1) / block;
  const auto unpack = [&](const std::string& byte, const std::string& place) {
    if (bits == 8) return fmt::format("i32({})", byte);
    return fmt::format("(i32({}) >> i32({} % {}) * {}i32 & {}i32)", byte, place, per_byte, bits, (1 << bits) - 1);
  };
  std::string zero = fmt::format("{}f32", 1 << (bits - 1)), param;
  if (zeros == "floats") {
    param = fmt::format("const z: f32[{},{}] in [0, 15]\n", n, blocks);
    zero = fmt::format("z[a, b // {}]", block);
  } else if (zeros == "bytes") {
    param = fmt::format("const z: u8[{},{}] in [0, 255]\n", n, (blocks + per_byte - 1) / per_byte);
    const std::string byte = fmt::format("z[a, b // {} // {}]", block, per_byte);
    zero = fmt::format("f32({})", unpack(byte, fmt::format("b // {}", block)));
  }
  const std::string inside = fmt::format("b %% {}", block);
  const std::string number = unpack(fmt::format("w[a, b // {}, {} // {}]", block, inside, per_byte), inside);
  std::string text = fmt::format(R"(workload "matmul_nbits"
input x: f32[{0},{2}] in [-1, 1]
const w: u8[{1},{3},{4}] in [0, 255]
const s: f32[{1},{3}] in [0.01, 0.1]
{5}const c: f32[{1}] in [-1, 1]
m: f32[{1},{2}] over a:{1}, b:{2} = (f32({6}) - {7}) * s[a, b // {8}]
t: f32[{0},{1}] over i:{0}, j:{1} = sum k:{2} of x[i, k] * m[j, k]
u: f32[{0},{1}] over ui:{0}, uj:{1} = t[ui, uj] + c[uj]
output u
)",
                                 rows, n, k, blocks, block * bits / 8, param, number, zero, block);
  return {name, std::move(text)};
}

std::vector<NamedWorkload> Anchors() {
  return {
      MatMul("matmul_round", 32, 64, 48, true),
      MatMul("matmul_prime", 13, 37, 29, true),
      MatMul("matmul_odd", 17, 65, 33, false),
      MatMul("matmul_row", 1, 50, 40, true),
      MatMul("matmul_narrow", 40, 3, 16, true),
      MatMul("matmul_tiny", 2, 2, 2, true),
      Conv("conv3x3", 9, 11, 8, 24, 3, 1),
      Conv("conv3x3_stride2", 11, 9, 5, 17, 3, 2),
      Conv("conv5x5", 8, 8, 3, 9, 5, 1),
      Conv("conv1x1", 7, 7, 16, 40, 1, 1),
      ConvFirst("conv3x3_first", 6, 37, 3, 20, 3, 1),
      ConvFirst("conv3x3_first_stride2", 7, 41, 5, 17, 3, 2),
      ConvFirst("conv3x3_first_stride3", 5, 53, 2, 4, 3, 3),
      ConvFirst("conv3x3_first_narrow", 9, 11, 4, 7, 3, 1),
      ConvFirst("conv3x3_first_narrow_stride2", 9, 13, 4, 7, 3, 2),
      ConvFirst("conv1d", 1, 67, 6, 9, 9, 1),
      {"conv3d_first", R"(workload "conv3d"
input x: f32[1,2,4,5,21] in [-1, 1]
const w: f32[6,2,3,3,3] in [-1, 1]
t: f32[1,6,2,3,19] over n:1, oc:6, d:2, h:3, v:19 = sum ic:2, kd:3, kh:3, kw:3 )"
                       R"(of x[n, ic, d + kd, h + kh, v + kw] * w[oc, ic, kd, kh, kw]
output t
)"},
      {"pointwise_first", R"(workload "matmul"
const w: f32[19,6] in [-1, 1]
input x: f32[2,6,35] in [-1, 1]
const b: f32[19,1] in [-1, 1]
t: f32[2,19,35] over n:2, i:19, j:35 = sum k:6 of w[i, k] * x[n, k, j]
u: f32[2,19,35] over un:2, ui:19, uj:35 = t[un, ui, uj] + b[ui, 0]
output u
)"},
      {"conv_transpose_phases", R"(workload "conv_transpose"
input x: f32[1,5,7,4] in [-1, 1]
const w: f32[2,2,2,2,4,18] in [-1, 1]
const b: f32[18] in [-1, 1]
p: f32[1,7,9,4] over p0:1, p1:7, p2:9, p3:4 )"
                                R"(= select(p1 >= 1 && p1 < 6 && p2 >= 1 && p2 < 8, x[p0, p1 - 1, p2 - 1, p3], 0f32)
t: f32[1,5,2,7,2,18] over n:1, h:5, a:2, v:7, e:2, c:18 = sum k:4, s:2, r:2 )"
                                R"(of p[n, h + (a + 1) // 2 + 1 - s, v + (e + 1) // 2 + 1 - r, k] * w[a, e, s, r, k, c]
u: f32[1,5,2,7,2,18] over un:1, uh:5, ua:2, uv:7, ue:2, uc:18 = t[un, uh, ua, uv, ue, uc] + b[uc]
output u
)"},
      Depthwise("depthwise", 9, 10, 20),
      Depthwise("depthwise_narrow", 7, 7, 3),
      Softmax("softmax", 5, 40),
      Softmax("softmax_prime", 4, 67),
      Softmax("softmax_short", 4, 5),
  };
}

std::vector<NamedWorkload> Fused() {
  return {
      {"batch_matmul_transposed", R"(workload "matmul"
input q: f32[2,9,3,16] in [-1, 1]
input k: f32[2,11,3,16] in [-1, 1]
t: f32[2,3,9,11] over b:2, h:3, i:9, j:11 = sum d:16 of q[b, i, h, d] * k[b, j, h, d]
u: f32[2,3,9,11] over ub:2, uh:3, ui:9, uj:11 = t[ub, uh, ui, uj] * 0.25f32
output u
)"},
      Attention("attention", 20, 48, 16, 16),
      Attention("attention_prime", 13, 67, 7, 19),
      Separable("separable", 10, 9, 16, 24, 1),
      Separable("separable_prime", 13, 7, 19, 5, 2),
      {"gelu", R"(workload "elementwise"
input x: f32[7,33] in [-3, 3]
const b: f32[33] in [-1, 1]
t: f32[7,33] over i:7, j:33 = x[i, j] + b[j]
u: f32[7,33] over ui:7, uj:33 = 0.5f32 * t[ui, uj] * (1f32 + erf(t[ui, uj] * 0.70710678f32))
output u
)"},
      {"transpose", R"(workload "transpose"
input x: f32[3,5,7,2] in [-1, 1]
t: f32[3,7,2,5] over i:3, j:7, k:2, l:5 = x[i, l, j, k]
output t
)"},
      {"reshape_shuffle", R"(workload "elementwise"
input x: f32[1,8,4,6] in [-1, 1]
t: f32[1,2,8,12] over n:1, c:2, h:8, w:12 = x[n, c * 4 + (h %% 2) * 2 + w %% 2, h // 2, w // 2]
output t
)"},
  };
}

std::vector<NamedWorkload> Reductions() {
  return {
      {"layer_norm", R"(workload "layer_norm"
input x: f32[6,50] in [-1, 1]
const g: f32[50] in [-1, 1]
s: f32[6,1] over a0:6, a1:1 = sum a2:50 of x[a0, a2]
m: f32[6,1] over b0:6, b1:1 = s[b0, b1] * 0.02f32
d: f32[6,50] over c0:6, c1:50 = x[c0, c1] - m[c0, 0]
q: f32[6,1] over d0:6, d1:1 = sum d2:50 of d[d0, d2] * d[d0, d2]
o: f32[6,50] over e0:6, e1:50 = d[e0, e1] / sqrt(q[e0, 0] * 0.02f32 + 0.00001f32) * g[e1]
output o
)"},
      {"max_pool", R"(workload "pool"
input x: f32[1,9,9,20] in [-1, 1]
t: f32[1,4,4,20] over n:1, h:4, w:4, c:20 = max kh:3, kw:3 of x[n, h * 2 + kh, w * 2 + kw, c]
output t
)"},
      PoolFirst("max_pool_first", 9, 37, 1, "max", "-inf_f32"),
      PoolFirst("max_pool_first_stride2", 11, 35, 2, "max", "-inf_f32"),
      PoolFirst("pool_sum_first_narrow", 7, 9, 2, "sum", "0f32"),
      {"global_average_first", R"(workload "reduce"
input x: f32[2,5,7,35] in [-1, 1]
t: f32[2,5,1,1] over n:2, c:5, i:1, j:1 = sum h:7, w:35 of x[n, c, h, w]
u: f32[2,5,1,1] over un:2, uc:5, ui:1, uj:1 = t[un, uc, ui, uj] * 0.0285f32
output u
)"},
      {"global_average", R"(workload "reduce"
input x: f32[2,5,7,35] in [-1, 1]
t: f32[2,1,1,35] over n:2, i:1, j:1, c:35 = sum h:5, w:7 of x[n, h, w, c]
u: f32[2,1,1,35] over un:2, ui:1, uj:1, uc:35 = t[un, ui, uj, uc] * 0.0285f32
output u
)"},
  };
}

std::vector<NamedWorkload> Others() {
  return {
      {"reduce_all", R"(workload "reduce"
input x: f32[4,130] in [-1, 1]
t: f32[] = sum i:4, j:130 of x[i, j]
output t
)"},
      {"mean_rows", R"(workload "reduce"
input x: f32[5,6,40] in [-1, 1]
t: f32[5,6] over i:5, j:6 = sum k:40 of x[i, j, k]
output t
)"},
      {"integer_sum", R"(workload "reduce"
input x: i32[6,21] in [-100, 100]
t: i32[21] over j:21 = sum i:6 of x[i, j]
output t
)"},
      {"bool_where", R"(workload "elementwise"
input c: bool[5,9] in [0, 1]
input x: i64[5,9] in [-50, 50]
t: i64[5,9] over i:5, j:9 = select(c[i, j], x[i, j] / 3i64, 7i64 - x[i, j])
output t
)"},
      // Loaded numbers are no indices, so arithmetic on them may wrap.
      {"wrapping", R"(workload "elementwise"
input x: i64[5,9] in [0, 50]
m: i64[5,9] over i:5, j:9 = (max(x[i, j], 0) * 4611686018427387905) %% 10
n: i64[5,9] over k:5, l:9 = (x[k, l] * 1000000000000000000 + 9000000000000000000) %% 10
q: i64[5,9] over r:5, s:9 = (x[r, s] * 1000000000000000000 + 9000000000000000000) // 1000000000
o: i64[5,9] over a:5, b:9 = min(x[a, b] * 4611686018427387904, x[a, b] * 4611686018427387904 + 4611686018427387904)
t: i64[5,9] over e:5, f:9 = select(x[e, f] < x[e, f] + 9223372036854775807, m[e, f] * 10 + n[e, f], q[e, f] + o[e, f])
output t
)"},
      // Masks of 4 bits are looked up in a register where a vector has 16 elements.
      {"nibbles",
       R"(workload "elementwise"
input x: u8[7,64] in [0, 255]
t: f32[7,64] over i:7, j:64 = (f32(i32(x[i, j]) & 15i32) - 8f32) * f32(i32(x[i, j]) >> 4i32 & 15i32) )"
       R"(+ f32(i32(x[i, j]) & 31i32) * (f32(i32(x[i, j]) & 3i32) - 0.1f32) - f32(i32(x[i, j]) + 9i32 & 15i32)
output t
)"},
      {"gather", R"(workload "gather"
input x: f32[10,6] in [-1, 1]
input g: i64[7] in [0, 9]
t: f32[7,6] over i:7, j:6 = x[g[i], j]
output t
)"},
      {"double_matmul", R"(workload "matmul"
input x: f64[5,8] in [-1, 1]
const w: f64[8,11] in [-1, 1]
t: f64[5,11] over i:5, j:11 = sum k:8 of x[i, k] * w[k, j]
output t
)"},
      {"two_outputs", R"(workload "elementwise"
input x: f32[4,10] in [-1, 1]
t: f32[4,10] over i:4, j:10 = x[i, j] * 2f32
u: f32[4,10] over ui:4, uj:10 = t[ui, uj] + 1f32
output t
output u
)"},
  };
}

}  // namespace

std::vector<NamedWorkload> ByteWorkloads() {
  return {
      ByteMatMul("bytes_u8_i8", 33, 48, 40, "u8", "i8", false, false, "const", false),
      ByteMatMul("bytes_odd", 13, 37, 27, "u8", "i8", true, true, "const", true),
      ByteMatMul("bytes_short", 5, 17, 3, "u8", "i8", true, false, "const", false),
      ByteMatMul("bytes_one_step", 6, 32, 4, "u8", "i8", false, false, "const", true),
      ByteMatMul("bytes_signed", 19, 35, 30, "i8", "i8", true, true, "const", true),
      ByteMatMul("bytes_unsigned", 21, 16, 44, "u8", "u8", true, true, "input", false),
      ByteMatMul("bytes_i8_u8", 1, 67, 130, "i8", "u8", false, true, "const", false),
      ByteMatMul("bytes_two_inputs", 18, 50, 96, "u8", "i8", true, true, "input", true),
      ByteConv("bytes_conv", 9, 11, 12, 24, 1, "i8"),
      ByteConv("bytes_conv_rgb", 14, 13, 3, 20, 2, "i8"),
      ByteConv("bytes_conv_unsigned", 8, 7, 9, 16, 1, "u8"),
  };
}

std::vector<NamedWorkload> QuantizedWorkloads() {
  return {
      FewBits("quantized_row", 1, 80, 128, 4, 32, ""),
      FewBits("quantized_rows", 7, 67, 96, 4, 16, ""),
      FewBits("quantized_zeros", 1, 70, 64, 4, 16, "bytes"),
      FewBits("quantized_float_zeros", 3, 33, 64, 4, 32, "floats"),
      FewBits("quantized_8_bits", 2, 40, 96, 8, 32, "bytes"),
      FewBits("quantized_2_bits", 1, 19, 64, 2, 16, "bytes"),
      FewBits("quantized_short_block", 5, 48, 40, 4, 32, "bytes"),
      FewBits("quantized_one_block", 2, 20, 24, 8, 32, ""),
      FewBits("quantized_narrow", 1, 3, 32, 4, 16, ""),
  };
}

std::vector<NamedWorkload> SmallWorkloads() {
  std::vector<NamedWorkload> all;
  for (const auto& group : {Anchors(), Fused(), Reductions(), Others(), ByteWorkloads(), QuantizedWorkloads()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace hone::tests
