// SPDX-License-Identifier: Apache-2.0
// Scatters with so many updates that they are sorted first, compared with a loop over the updates.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

// A model that outputs data, indices and updates as floats, and the result of the scatter.
std::string RandomScatter(const std::string& op, const Dims& data, const Dims& indices, const Dims& updates,
                          const std::string& reduction) {
  GraphBuilder b;
  b.Input("d", data)
      .Input("r", indices)
      .Input("u", updates)
      .Floats("rows", {}, {static_cast<float>(std::get<int64_t>(data[0]))});
  b.Node("Mul", {"r", "rows"}, {"place"}).Node("Cast", {"place"}, {"i"}, {Attr("to", kInt64)});
  b.Node(op, {"d", "i", "u"}, {"y"}, {Attr("reduction", reduction.c_str())});
  b.Node("Identity", {"d"}, {"do"}).Node("Cast", {"i"}, {"io"}, {Attr("to", kFloat)}).Node("Identity", {"u"}, {"uo"});
  return b.Output("do").Output("io").Output("uo").Output("y").Model(18);
}

float Combined(const std::string& reduction, float a, float b) {
  if (reduction == "add") return a + b;
  return reduction == "max" ? std::max(a, b) : b;
}

// Compares the result with a loop over the updates. The data has rows x columns elements, the updates [count, columns].
// per_update: indices per row of updates, 1 or `columns`.
void ExpectScattered(const std::string& model, int rows, int columns, int count, int per_update,
                     const std::string& reduction) {
  const std::vector<float> all = RunOnRandom(Import(model), 1);
  const auto size = [](int a, int b) { return static_cast<size_t>(a) * static_cast<size_t>(b); };
  const size_t data = size(rows, columns), places = size(count, per_update), updates = size(count, columns);
  ASSERT_EQ(all.size(), 2 * data + places + updates);
  std::vector<float> expected(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(data));
  for (int u = 0; u < count; ++u) {
    for (int c = 0; c < columns; ++c) {
      const int row = static_cast<int>(all[data + size(u, per_update) + static_cast<size_t>(per_update == 1 ? 0 : c)]);
      float& element = expected[size((row % rows + rows) % rows, columns) + static_cast<size_t>(c)];
      element = Combined(reduction, element, all[data + places + size(u, columns) + static_cast<size_t>(c)]);
    }
  }
  int hit = 0;
  for (size_t k = 0; k < data; ++k) {
    ASSERT_NEAR(all[data + places + updates + k], expected[k], 1e-5) << "element " << k;
    hit += expected[k] != all[k] ? 1 : 0;
  }
  EXPECT_GT(hit, 100);
}

TEST(Scatter, ManyRowsAreCombined) {
  for (const std::string reduction : {"add", "max"}) {
    const std::string model = RandomScatter("ScatterND", {600, 64}, {3000, 1}, {3000, 64}, reduction);
    ExpectScattered(model, 600, 64, 3000, 1, reduction);
  }
}

TEST(Scatter, TheLastOfManyRowsWins) {
  ExpectScattered(RandomScatter("ScatterND", {20000, 2}, {4000, 1}, {4000, 2}, "none"), 20000, 2, 4000, 1, "none");
}

TEST(Scatter, ManyElementsOfColumns) {
  for (const std::string reduction : {"none", "add"}) {
    const std::string model = RandomScatter("ScatterElements", {6000, 2}, {10000, 2}, {10000, 2}, reduction);
    ExpectScattered(model, 6000, 2, 10000, 2, reduction);
  }
}

}  // namespace
}  // namespace hone::graph
