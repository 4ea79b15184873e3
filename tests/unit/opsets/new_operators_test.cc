// SPDX-License-Identifier: Apache-2.0
// Operators that opsets from 16 on added, on small inputs, the new types of others, and counts of n-grams.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tests/unit/opsets/import_case.h"

namespace hone::graph {
namespace {

using ir::DType;

TEST(NewOperators, CumulativeProducts) {
  const Constant x = Floats({2, 3}, {1, 2, 3, 4, 5, 6}), axis = Ints({}, {1});
  const auto node = [&](std::map<std::string, Attribute> attributes) {
    return OpCase{"CumProd", {x, axis}, std::move(attributes), 26};
  };
  const ImportOf import = {.constants = {1}};
  ExpectImported(node({}), {2, 3}, {1, 2, 6, 4, 20, 120}, import);
  ExpectImported(node({{"exclusive", Int(1)}}), {2, 3}, {1, 1, 2, 1, 4, 20}, import);
  ExpectImported(node({{"reverse", Int(1)}}), {2, 3}, {6, 6, 3, 120, 30, 6}, import);
  ExpectImported(node({{"reverse", Int(1)}, {"exclusive", Int(1)}}), {2, 3}, {6, 3, 1, 30, 6, 1}, import);
  ExpectImported({"CumProd", {Tensor(DType::kInt32, {3}, {2, -3, 4}), Ints({}, {-1})}, {}, 26}, {3}, {2, -6, -24},
                 import);
}

TEST(NewOperators, BitCastKeepsBits) {
  const auto to = [](int64_t type) { return std::map<std::string, Attribute>{{"to", Int(type)}}; };
  ExpectImported({"BitCast", {Floats({2}, {1, -2})}, to(6), 26}, {2}, {0x3F800000, -0x40000000});
  ExpectImported({"BitCast", {Tensor(DType::kInt32, {}, {0x3F800000})}, to(1), 26}, {}, {1});
  ExpectImported({"BitCast", {Tensor(DType::kInt8, {2}, {-1, 2})}, to(2), 26}, {2}, {255, 2});
  ExpectImported({"BitCast", {Tensor(DType::kFloat16, {1}, {1})}, to(4), 26}, {1}, {0x3C00});
  ExpectImported({"BitCast", {Tensor(DType::kUInt16, {1}, {0x3F80})}, to(16), 26}, {1}, {1});
  ExpectImported({"BitCast", {Tensor(DType::kFloat64, {1}, {1})}, to(7), 26}, {1}, {4607182418800017408.0});
  ExpectImported({"BitCast", {Bools({2}, {0, 1})}, to(2), 26}, {2}, {0, 1});
  ExpectRefused({"BitCast", {Floats({1}, {1})}, to(7), 26}, absl::StatusCode::kInvalidArgument, "different sizes");
}

TEST(NewOperators, SwishAndSwiGlu) {
  const auto swish = [](double x, double alpha) { return x / (1 + std::exp(-alpha * x)); };
  ExpectImported({"Swish", {Floats({2}, {-1, 2})}, {{"alpha", 0.5}}, 24}, {2}, {swish(-1, 0.5), swish(2, 0.5)});
  const Constant a = Floats({2}, {-1, 2}), b = Floats({2}, {10, 20});
  ExpectImported({"SwiGLU", {a, b}, {}, 28}, {2}, {swish(-1, 1) * 10, swish(2, 1) * 20});
  ExpectImported({"SwiGLU", {a, b}, {{"alpha", 2.0}}, 28}, {2}, {swish(-1, 2) * 10, swish(2, 2) * 20});
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    ExpectImported({"SwiGLU", {Tensor(dtype, {1}, {2}), Tensor(dtype, {1}, {4})}, {}, 28}, {1}, {swish(2, 1) * 4}, {},
                   0, 1e-2);
  }
}

TEST(NewOperators, SwiGluHasTwoInputsOfOneShape) {
  const auto code = absl::StatusCode::kInvalidArgument;
  const Constant two = Floats({2}, {1, 2}), one = Floats({1}, {1});
  ExpectRefused({"SwiGLU", {two, one}, {}, 28}, code, "inputs 0 and 1 must have one type and shape");
  ExpectRefused({"SwiGLU", {two, Tensor(DType::kFloat64, {2}, {1, 2})}, {}, 28}, code, "one type and shape");
  ExpectRefused({"SwiGLU", {two, two}, {}, 27}, code, "28");
  ExpectRefused({"SwiGLU", {two, two}, {{"beta", 1.0}}, 28}, code, "beta");
  ExpectRefused({"SwiGLU", {two, two, two}, {}, 28}, code, "3 inputs");
}

TEST(NewOperators, SwiGluOfShapesAndEdges) {
  const auto swish = [](double x, double alpha) { return x / (1 + std::exp(-alpha * x)); };
  ExpectImported({"SwiGLU", {Floats({}, {3}), Floats({}, {4})}, {}, 28}, {}, {swish(3, 1) * 4});
  ExpectImported({"SwiGLU", {Floats({2, 0}, {}), Floats({2, 0}, {})}, {}, 28}, {2, 0}, {});
  const Constant a = Floats({1, 2, 2}, {-200, 200, -0.0, 1e-7}), b = Floats({1, 2, 2}, {3, -3, 5, 5});
  ExpectImported({"SwiGLU", {a, b}, {}, 28}, {1, 2, 2}, {0, -600, 0, 2.5e-7}, {}, 0, 1e-12);
  ExpectImported({"SwiGLU", {a, b}, {{"alpha", 0.0}}, 28}, {1, 2, 2}, {-300, -300, 0, 2.5e-7});
  ExpectImported({"SwiGLU", {a, b}, {{"alpha", -1.0}}, 28}, {1, 2, 2}, {-600, 0, 0, 2.5e-7});
  ExpectImported({"SwiGLU", {Tensor(DType::kFloat64, {1}, {0.7}), Tensor(DType::kFloat64, {1}, {3})}, {}, 28}, {1},
                 {swish(0.7, 1) * 3}, {}, 0, 1e-14);
}

TEST(NewOperators, RangeOfSixteenBitFloats) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const auto range = [&](double start, double limit, double delta) {
      const auto number = [&](double x) { return Tensor(dtype, {}, {x}); };
      return OpCase{"Range", {number(start), number(limit), number(delta)}, {}, 27};
    };
    const ImportOf constants = {.constants = {0, 1, 2}};
    ExpectImported(range(1, 3, 0.5), {4}, {1, 1.5, 2, 2.5}, constants);
    ExpectImported(range(1, 3.25, 0.5), {5}, {1, 1.5, 2, 2.5, 3}, constants);  // the limit is not in the range
    ExpectImported(range(2, -1, -1), {3}, {2, 1, 0}, constants);
    ExpectImported(range(2, 2, 1), {0}, {}, constants);
    ExpectImported(range(2, 5, -1), {0}, {}, constants);
    // 256 + i has no 8 bits: each element is rounded once, from start + i * delta.
    if (dtype == DType::kBFloat16) ExpectImported(range(256, 262, 1), {6}, {256, 256, 258, 260, 260, 260}, constants);
    ExpectRefused(range(1, 3, 0), absl::StatusCode::kInvalidArgument, "", constants);
  }
  const auto older = Tensor(DType::kFloat16, {}, {1});
  ExpectImported({"Range", {older, older, older}, {}, 26}, {0}, {}, {.constants = {0, 1, 2}});
}

TEST(NewOperators, CeluOfAllFloats) {
  const auto celu = [](double x, double alpha) {
    return std::max(x, 0.0) + std::min(0.0, alpha * std::expm1(x / alpha));
  };
  for (const auto& [dtype, tolerance] : {std::pair(DType::kFloat32, 2e-6), std::pair(DType::kFloat64, 1e-14),
                                         std::pair(DType::kFloat16, 4e-3), std::pair(DType::kBFloat16, 2e-2)}) {
    for (const double alpha : {1.0, 2.0, 0.5, -1.5}) {
      const std::vector<double> x = {alpha > 0 ? -100.0 : -8.0, -1, -0.0078125, -0.0, 0, 0.5, 3};
      std::vector<double> expected;
      for (const double number : x) expected.push_back(celu(number, alpha));
      ExpectImported({"Celu", {Tensor(dtype, {7}, x)}, {{"alpha", alpha}}, 28}, {7}, expected, {}, 0, tolerance);
    }
    ExpectImported({"Celu", {Tensor(dtype, {2}, {-1, 3})}, {}, 28}, {2}, {std::expm1(-1), 3}, {}, 0, tolerance);
  }
}

TEST(NewOperators, BitCastKeepsBitsOfAllWidths) {
  const auto to = [](int64_t type) { return std::map<std::string, Attribute>{{"to", Int(type)}}; };
  ExpectImported({"BitCast", {Tensor(DType::kUInt8, {2}, {200, 1})}, to(3), 26}, {2}, {-56, 1});
  ExpectImported({"BitCast", {Tensor(DType::kInt16, {1}, {-1})}, to(4), 26}, {1}, {65535});
  ExpectImported({"BitCast", {Tensor(DType::kBFloat16, {1}, {1})}, to(10), 26}, {1}, {1.875});  // 0x3F80
  ExpectImported({"BitCast", {Tensor(DType::kUInt32, {1}, {0xC0000000})}, to(1), 26}, {1}, {-2});
  ExpectImported({"BitCast", {Tensor(DType::kInt64, {1}, {4607182418800017408.0})}, to(11), 26}, {1}, {1});
  ExpectImported({"BitCast", {Tensor(DType::kUInt64, {2, 0}, {})}, to(11), 26}, {2, 0}, {});
  ExpectImported({"BitCast", {Floats({2}, {1, 2})}, to(1), 26}, {2}, {1, 2});
  for (const char* op : {"BitCast", "Cast"}) {
    ExpectRefused({op, {Floats({1}, {1})}, {}, 26}, absl::StatusCode::kInvalidArgument, "is missing");
  }
}

TEST(NewOperators, CumulativeProductsOfAllTypes) {
  const ImportOf import = {.constants = {1}};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt32,
                            DType::kInt64, DType::kUInt32, DType::kUInt64}) {
    const Constant x = Tensor(dtype, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    ExpectImported({"CumProd", {x, Ints({}, {0})}, {}, 26}, {2, 2, 2}, {1, 2, 3, 4, 5, 12, 21, 32}, import);
    ExpectImported({"CumProd", {x, Tensor(DType::kInt32, {}, {-2})}, {{"exclusive", Int(1)}}, 26}, {2, 2, 2},
                   {1, 1, 1, 2, 1, 1, 5, 6}, import);
    ExpectImported({"CumProd", {x, Ints({1}, {2})}, {{"reverse", Int(1)}}, 26}, {2, 2, 2}, {2, 2, 12, 4, 30, 6, 56, 8},
                   import);
  }
  ExpectRefused({"CumProd", {Floats({2}, {1, 2}), Ints({}, {1})}, {}, 26}, absl::StatusCode::kInvalidArgument, "axis",
                import);
}

TEST(NewOperators, TensorScatterWritesIntoACache) {
  const Constant cache = Counting({2, 1, 4, 1}), update = Floats({2, 1, 2, 1}, {10, 20, 30, 40});
  const auto node = [&](const char* mode, std::vector<double> at) {
    return OpCase{"TensorScatter", {cache, update, Ints({2}, std::move(at))}, {{"mode", std::string(mode)}}, 24};
  };
  ExpectImported(node("linear", {1, 2}), {2, 1, 4, 1}, {0, 10, 20, 3, 4, 5, 30, 40});
  ExpectImported(node("circular", {3, 0}), {2, 1, 4, 1}, {20, 1, 2, 10, 30, 40, 6, 7});
  ExpectImported({"TensorScatter", {cache, update}, {}, 24}, {2, 1, 4, 1}, {10, 20, 2, 3, 30, 40, 6, 7});
  const Constant rows = Counting({2, 3}), row = Floats({2, 1}, {10, 20});
  ExpectImported({"TensorScatter", {rows, row, Ints({2}, {2, 0})}, {{"axis", Int(1)}}, 24}, {2, 3},
                 {0, 1, 10, 20, 4, 5});
  ExpectRefused({"TensorScatter", {rows, row}, {{"axis", Int(0)}}, 24}, absl::StatusCode::kInvalidArgument,
                "names the batch");
}

TEST(NewOperators, Col2ImAddsBlocks) {
  // Blocks of 2 at columns 0 and 1 of an image of 3; each column of the input is a block.
  const Constant columns = Floats({1, 2, 2}, {1, 2, 10, 20});
  ExpectImported({"Col2Im", {columns, Ints({1}, {3}), Ints({1}, {2})}, {}, 18}, {1, 1, 3}, {1, 12, 20},
                 {.constants = {1, 2}});
  // Stride 2, one element of padding on each side: blocks begin at -1 and 1.
  ExpectImported(
      {"Col2Im", {columns, Ints({1}, {2}), Ints({1}, {2})}, {{"strides", IntList({2})}, {"pads", IntList({1, 1})}}, 18},
      {1, 1, 2}, {10, 2}, {.constants = {1, 2}});
  // Dilation 2: elements of a block are two apart.
  ExpectImported({"Col2Im", {columns, Ints({1}, {4}), Ints({1}, {2})}, {{"dilations", IntList({2})}}, 18}, {1, 1, 4},
                 {1, 2, 10, 20}, {.constants = {1, 2}});
  ExpectRefused({"Col2Im", {columns, Ints({1}, {4}), Ints({1}, {2})}, {}, 18}, absl::StatusCode::kInvalidArgument,
                "to fit image", {.constants = {1, 2}});
}

TEST(NewOperators, AffineGridOfTheIdentity) {
  const Constant identity = Floats({1, 2, 3}, {1, 0, 0, 0, 1, 0}), size = Ints({4}, {1, 1, 2, 3});
  const ImportOf import = {.constants = {1}};
  ExpectImported({"AffineGrid", {identity, size}, {{"align_corners", Int(1)}}, 20}, {1, 2, 3, 2},
                 {-1, -1, 0, -1, 1, -1, -1, 1, 0, 1, 1, 1}, import);
  const double third = 2.0 / 3;
  ExpectImported({"AffineGrid", {identity, size}, {}, 20}, {1, 2, 3, 2},
                 {-third, -0.5, 0, -0.5, third, -0.5, -third, 0.5, 0, 0.5, third, 0.5}, import);
  const Constant turned = Floats({1, 3, 4}, {0, 0, 1, 5, 1, 0, 0, 6, 0, 2, 0, 7});  // (z + 5, x + 6, 2 y + 7)
  ExpectImported({"AffineGrid", {turned, Ints({5}, {1, 1, 2, 1, 2})}, {{"align_corners", Int(1)}}, 20}, {1, 2, 1, 2, 3},
                 {4, 5, 5, 4, 7, 5, 6, 5, 5, 6, 7, 5}, import);
}

// Deformable convolution by plain loops over a batch of 1, with strides of 1 and no padding.
std::vector<double> PlainDeformConv(const Constant& x, const Constant& w, const Constant& offset, const Constant& bias,
                                    const Constant& mask, int64_t groups, int64_t offset_groups) {
  const Shape xs = ir::Values(x.type.shape), ws = ir::Values(w.type.shape), os = ir::Values(offset.type.shape);
  const std::vector<double> image = Numbers(x), weights = Numbers(w), shifts = Numbers(offset);
  const std::vector<double> biases = Numbers(bias), factors = Numbers(mask);
  const int64_t height = xs[2], width = xs[3], kh = ws[2], kw = ws[3], rows = os[2], columns = os[3];
  const auto pixel = [&](int64_t c, double y, double z) {
    if (y < 0 || y > static_cast<double>(height - 1) || z < 0 || z > static_cast<double>(width - 1)) return 0.0;
    return image[static_cast<size_t>((c * height + static_cast<int64_t>(y)) * width + static_cast<int64_t>(z))];
  };
  const auto sample = [&](int64_t c, double y, double z) {
    const double top = std::floor(y), left = std::floor(z), v = y - top, u = z - left;
    return (1 - v) * ((1 - u) * pixel(c, top, left) + u * pixel(c, top, left + 1)) +
           v * ((1 - u) * pixel(c, top + 1, left) + u * pixel(c, top + 1, left + 1));
  };
  std::vector<double> result;
  for (int64_t o = 0; o < ws[0]; ++o) {
    for (int64_t p = 0; p < rows * columns; ++p) {
      double sum = biases[static_cast<size_t>(o)];
      for (int64_t k = 0; k < ws[1] * kh * kw; ++k) {
        const int64_t c = o / (ws[0] / groups) * ws[1] + k / (kh * kw), tap = k % (kh * kw);
        const int64_t at = c / (xs[1] / offset_groups) * kh * kw + tap;
        const auto shift = [&](int64_t d) { return shifts[static_cast<size_t>((2 * at + d) * rows * columns + p)]; };
        const double y = static_cast<double>(p / columns + tap / kw) + shift(0);
        const double z = static_cast<double>(p % columns + tap % kw) + shift(1);
        sum += weights[static_cast<size_t>(o * ws[1] * kh * kw + k)] * sample(c, y, z) *
               factors[static_cast<size_t>(at * rows * columns + p)];
      }
      result.push_back(sum);
    }
  }
  return result;
}

std::vector<double> Zigzag(int64_t count, double scale, double seed) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(scale * std::sin(seed + 3.1 * static_cast<double>(i)));
  return numbers;
}

TEST(NewOperators, DeformConvAgainstPlainLoops) {
  for (const int64_t groups : {1, 2}) {
    for (const int64_t offset_groups : {1, 2}) {
      const Constant x = Floats({1, 4, 4, 5}, Zigzag(80, 1, 1)), bias = Floats({2}, {0.5, -1});
      const Constant w = Floats({2, 4 / groups, 2, 3}, Zigzag(48 / groups, 1, 2));
      const Constant offset = Floats({1, offset_groups * 12, 3, 3}, Zigzag(offset_groups * 108, 2, 3));
      const Constant mask = Floats({1, offset_groups * 6, 3, 3}, Zigzag(offset_groups * 54, 1, 4));
      ExpectImported({"DeformConv",
                      {x, w, offset, bias, mask},
                      {{"group", Int(groups)}, {"offset_group", Int(offset_groups)}},
                      19},
                     {1, 2, 3, 3}, PlainDeformConv(x, w, offset, bias, mask, groups, offset_groups));
    }
  }
}

TEST(NewOperators, DeformConvWithoutOffsetsIsAConvolution) {
  const Constant x = Counting({1, 1, 3, 3}), w = Floats({1, 1, 2, 2}, {1, 1, 1, 1});
  const Constant none = Floats({1, 8, 2, 2}, std::vector<double>(32, 0));
  ExpectImported({"DeformConv", {x, w, none}, {}, 22}, {1, 1, 2, 2}, {8, 12, 20, 24});
  const Constant four = Floats({1, 8, 4, 4}, std::vector<double>(128, 0));
  ExpectImported({"DeformConv", {x, w, four}, {{"pads", IntList({1, 1, 1, 1})}}, 22}, {1, 1, 4, 4},
                 {0, 1, 3, 2, 3, 8, 12, 7, 9, 20, 24, 13, 6, 13, 15, 8});
}

TEST(NewOperators, MaxRoiPoolTakesMaximaOfBins) {
  const Constant x = Counting({1, 1, 4, 6});
  const auto node = [&](std::vector<double> roi, Shape pooled, double scale = 1) {
    return OpCase{"MaxRoiPool",
                  {x, Floats({1, 5}, std::move(roi))},
                  {{"pooled_shape", IntList(pooled)}, {"spatial_scale", scale}}};
  };
  ExpectImported(node({0, 0, 0, 5, 3}, {2, 2}), {1, 1, 2, 2}, {8, 11, 20, 23});
  ExpectImported(node({0, 1, 1, 2, 2}, {1, 1}), {1, 1, 1, 1}, {14});
  ExpectImported(node({0, 2, 2, 4, 4}, {1, 1}, 0.5), {1, 1, 1, 1}, {14});  // the same after scaling
  ExpectImported(node({0, 8, 8, 9, 9}, {1, 1}), {1, 1, 1, 1}, {0});        // outside
  // 3 columns in 2 bins: the middle one is in both.
  ExpectImported(node({0, 0, 0, 2, 0}, {1, 2}), {1, 1, 1, 2}, {1, 2});
}

TEST(NewOperators, AnInverseTransformOfOneSideIsReal) {
  const Constant signal = Floats({1, 6, 1}, {1, 5, -2, 4, 0, 3});
  for (const int64_t length : {5, 6}) {
    const OpCase forward = {
        "DFT", {signal, Ints({}, {static_cast<double>(length)}), Ints({}, {1})}, {{"onesided", Int(1)}}, 20};
    const absl::StatusOr<std::vector<Constant>> spectrum = RunImported(forward, {.constants = {1, 2}});
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    std::vector<double> expected = {1, 5, -2, 4, 0, 3};
    expected.resize(static_cast<size_t>(length));
    ExpectImported({"DFT",
                    {(*spectrum)[0], Ints({}, {static_cast<double>(length)}), Ints({}, {1})},
                    {{"onesided", Int(1)}, {"inverse", Int(1)}},
                    20},
                   {1, length, 1}, expected, {.constants = {1, 2}});
  }
}

// Pool: 2, 3; (5, 4), (5, 6). Columns in another order than the pool.
std::map<std::string, Attribute> NgramAttributes(int64_t skips, const std::string& mode) {
  return {{"mode", mode},
          {"min_gram_length", Int(1)},
          {"max_gram_length", Int(2)},
          {"max_skip_count", Int(skips)},
          {"ngram_counts", IntList({0, 2})},
          {"ngram_indexes", IntList({0, 1, 3, 2})},
          {"pool_int64s", IntList({2, 3, 5, 4, 5, 6})}};
}

TEST(Ngrams, AreCounted) {
  const Constant x = Ints({2, 5}, {2, 5, 6, 2, 4, 5, 5, 6, 4, 3});
  ExpectImported({"TfIdfVectorizer", {x}, NgramAttributes(0, "TF"), 17}, {2, 4}, {2, 0, 1, 0, 0, 1, 1, 0});
  ExpectImported({"TfIdfVectorizer", {x}, NgramAttributes(2, "TF"), 17}, {2, 4}, {2, 0, 1, 1, 0, 1, 2, 2});
  constexpr int64_t kAnySkips = std::numeric_limits<int64_t>::max();
  ExpectImported({"TfIdfVectorizer", {x}, NgramAttributes(kAnySkips, "TF"), 17}, {2, 4}, {2, 0, 1, 1, 0, 1, 2, 2});
  std::map<std::string, Attribute> weighted = NgramAttributes(2, "IDF");
  weighted["weights"] = std::vector<double>{10, 20, 30, 40};
  ExpectImported({"TfIdfVectorizer", {x}, weighted, 17}, {2, 4}, {10, 0, 30, 40, 0, 20, 30, 40});
}

TEST(Ngrams, LargeTablesAreRefused) {
  std::map<std::string, Attribute> wide = NgramAttributes(0, "TF");
  wide["ngram_indexes"] = IntList({0, 1, 3, int64_t{1} << 25});
  ExpectRefused({"TfIdfVectorizer", {Ints({1, 5}, {2, 5, 6, 2, 4})}, wide, 17}, absl::StatusCode::kUnimplemented,
                "its table of n-grams is too large");
}

TEST(Ngrams, OfAList) {
  ExpectImported({"TfIdfVectorizer", {Ints({3}, {3, 5, 4})}, NgramAttributes(0, "TF"), 17}, {4}, {0, 1, 0, 1});
}

}  // namespace
}  // namespace hone::graph
