// SPDX-License-Identifier: Apache-2.0
// TopK along axes that are long enough for a sorting network, compared with the C++ library.
#include <algorithm>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

// Compares the first `count` elements of each row of [rows, extent, 2], along the middle axis, by position.
void ExpectSorted(int rows, int extent, int count, bool largest, int dtype) {
  GraphBuilder b;
  b.Input("x", {rows, extent, 2}, dtype).Ints("k", {count});
  b.Node("TopK", {"x", "k"}, {"y", "i"}, {Attr("axis", 1), Attr("largest", largest ? 1 : 0)});
  for (const char* name : {"x", "y", "i"}) {
    const std::string cast = std::string(name) + "f";
    b.Node("Cast", {name}, {cast}, {Attr("to", kFloat)}).Output(cast);
  }
  const std::vector<float> all = RunOnRandom(Import(b.Model()), 1);
  const auto whole = static_cast<size_t>(rows * extent * 2), part = static_cast<size_t>(rows * count * 2);
  ASSERT_EQ(all.size(), whole + 2 * part);
  for (int column = 0; column < rows * 2; ++column) {
    const int row = column / 2;
    const auto x = [&](int64_t i) { return all[static_cast<size_t>((row * extent + i) * 2 + column % 2)]; };
    std::vector<int64_t> order(static_cast<size_t>(extent));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t i, int64_t j) { return largest ? x(i) > x(j) : x(i) < x(j); });
    for (int k = 0; k < count; ++k) {
      const auto place = static_cast<size_t>((row * count + k) * 2 + column % 2);
      const int64_t i = order[static_cast<size_t>(k)];
      ASSERT_EQ(all[whole + part + place], static_cast<float>(i)) << "place " << k << " of column " << column;
      ASSERT_EQ(all[whole + place], x(i));
    }
  }
}

TEST(Sort, LongAxesByANetwork) {
  for (const bool largest : {false, true}) {
    ExpectSorted(1, 2100, 2100, largest, kFloat);
    ExpectSorted(1, 4096, 300, largest, kFloat);
    ExpectSorted(30, 300, 299, largest, kFloat);
  }
}

// Every value of a byte occurs several times, and equal elements must keep their order.
TEST(Sort, OtherTypesToo) {
  for (const bool largest : {false, true}) {
    for (const int dtype : {kInt8, kUInt8, kInt32, kHalf}) ExpectSorted(1, 2100, 2100, largest, dtype);
  }
}

}  // namespace
}  // namespace hone::graph
