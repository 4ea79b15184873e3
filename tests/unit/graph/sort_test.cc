// SPDX-License-Identifier: Apache-2.0
// TopK along axes that are long enough for a sorting network or for a sort by digits, compared with the C++ library.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "compiler/graph/passes/pipeline.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

// What is sorted: f32 in [-1, 1], or numbers made of them.
struct Elements {
  int dtype = kFloat;
  float scale = 1;        // elements of other types are this times as large
  bool with_nan = false;  // a logarithm: NaN for every second element
};

// Compares the first `count` elements of each row of [rows, extent, 2], along the middle axis, by position. NaN is
// above all numbers. by_digits: as threads sort, after all passes.
void ExpectSorted(int rows, int extent, int count, bool largest, const Elements& elements, bool by_digits = false) {
  GraphBuilder b;
  b.Input("given", {rows, extent, 2}).Ints("k", {count}).Floats("scale", {}, {elements.scale});
  b.Node("Mul", {"given", "scale"}, {"scaled"});
  b.Node("Cast", {elements.with_nan ? "given" : "scaled"}, {"cast"}, {Attr("to", elements.dtype)});
  b.Node(elements.with_nan ? "Log" : "Identity", {"cast"}, {"x"});
  b.Node("TopK", {"x", "k"}, {"y", "i"}, {Attr("axis", 1), Attr("largest", largest ? 1 : 0)});
  for (const char* name : {"x", "y", "i"}) {
    const std::string cast = std::string(name) + "f";
    b.Node("Cast", {name}, {cast}, {Attr("to", kFloat)}).Output(cast);
  }
  const Graph graph = by_digits ? Optimize(b.Model()) : Import(b.Model());
  EXPECT_EQ(CountOps(graph, "DigitTopK"), by_digits ? 1 : 0);
  const std::vector<float> all = RunOnRandom(graph, 1);
  const auto whole = static_cast<size_t>(rows * extent * 2), part = static_cast<size_t>(rows * count * 2);
  ASSERT_EQ(all.size(), whole + 2 * part);
  const auto below = [](float a, float b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  for (int column = 0; column < rows * 2; ++column) {
    const int row = column / 2;
    const auto x = [&](int64_t i) { return all[static_cast<size_t>((row * extent + i) * 2 + column % 2)]; };
    std::vector<int64_t> order(static_cast<size_t>(extent));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order,
                             [&](int64_t i, int64_t j) { return largest ? below(x(j), x(i)) : below(x(i), x(j)); });
    for (int k = 0; k < count; ++k) {
      const auto place = static_cast<size_t>((row * count + k) * 2 + column % 2);
      const int64_t i = order[static_cast<size_t>(k)];
      ASSERT_EQ(all[whole + part + place], static_cast<float>(i)) << "place " << k << " of column " << column;
      ASSERT_TRUE(all[whole + place] == x(i) || (std::isnan(x(i)) && std::isnan(all[whole + place])));
    }
  }
}

TEST(Sort, LongAxesByANetwork) {
  for (const bool largest : {false, true}) {
    ExpectSorted(1, 2100, 2100, largest, {});
    ExpectSorted(1, 4096, 300, largest, {});
    ExpectSorted(30, 300, 299, largest, {});
  }
}

// Every value of a byte occurs several times, and equal elements must keep their order.
TEST(Sort, OtherTypesToo) {
  for (const bool largest : {false, true}) {
    for (const int dtype : {kInt8, kUInt8, kInt32, kHalf}) ExpectSorted(1, 2100, 2100, largest, {dtype, 100});
  }
}

TEST(Sort, ByDigits) {
  for (const bool largest : {false, true}) {
    ExpectSorted(1, 2100, 2100, largest, {}, true);
    ExpectSorted(1, 5000, 900, largest, {}, true);
    ExpectSorted(30, 300, 299, largest, {}, true);
    ExpectSorted(2, 700, 500, largest, {.with_nan = true}, true);
  }
}

// Keys of 64 bits differ in both halves. The negative elements of unsigned types become 0.
TEST(Sort, OtherTypesByDigits) {
  for (const bool largest : {false, true}) {
    for (const int dtype : {kInt8, kUInt8, kInt32, kUInt32, kHalf})
      ExpectSorted(1, 600, 590, largest, {dtype, 100}, true);
    for (const int dtype : {kInt64, kUInt64, kDouble}) ExpectSorted(1, 600, 590, largest, {dtype, 0x1p45f}, true);
    ExpectSorted(1, 600, 590, largest, {kUInt32, 0x1p32f}, true);
    ExpectSorted(1, 600, 590, largest, {kUInt64, 0x1p64f}, true);
  }
}

// Kernels of such stages are checked in space/sorts_test.cc.
TEST(Sort, OpenAxesByDigits) {
  GraphBuilder b;
  b.Input("x", Dims({Dim("n")})).Node("Shape", {"x"}, {"k"});
  b.Node("TopK", {"x", "k"}, {"y", "i"}).Output("y");
  Graph graph = Import(b.Model(), {.shapes = {{"x", {{1, 4000}}}}});
  ASSERT_EQ(RunPasses(graph, {.verify = true}), absl::OkStatus());
  EXPECT_EQ(CountOps(graph, "DigitTopK"), 1);
}

}  // namespace
}  // namespace hone::graph
