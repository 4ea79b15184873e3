// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/abstract_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "compiler/ir/simplify.h"
#include "compiler/ir/size.h"
#include "compiler/ir/text.h"
#include "compiler/ir/workload.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ir::Workload Parsed(std::string_view text) {
  auto workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return workload.ok() ? *workload : ir::Workload();
}

// The text with numbers for the sizes, and arithmetic on these numbers done.
std::string TextWith(const ir::Workload& workload, const std::map<std::string, int64_t, std::less<>>& values) {
  ir::Workload fixed = ir::WithSizes(workload, values);
  for (ir::Stage& stage : fixed.stages) stage.value = ir::Simplify(stage.value);
  return ir::Print(fixed);
}

struct Abstracted {
  ir::Workload workload;
  std::vector<std::string> meaning;
};

// Abstracts the workload, and checks that it still is the same one for any values of its open sizes.
Abstracted Abstract(std::string_view text) {
  const ir::Workload before = Parsed(text);
  Abstracted result{before, {}};
  const std::vector<ir::Size> meaning = AbstractSizes(result.workload);
  EXPECT_EQ(ir::Verify(result.workload), absl::OkStatus()) << ir::Print(result.workload);
  EXPECT_EQ(meaning.size(), result.workload.sizes.size());
  for (const ir::Size& size : meaning) result.meaning.push_back(ir::Print(size));
  for (int64_t round = 0; round < 5; ++round) {
    std::map<std::string, int64_t, std::less<>> values, abstract_values;
    std::map<std::string, ir::Size, std::less<>> numbers;
    for (const ir::OpenSize& size : before.sizes) {
      const int64_t value = std::min(size.max, size.min + round * (1 + static_cast<int64_t>(values.size())));
      values.emplace(size.name, value);
      numbers.emplace(size.name, value);
    }
    for (size_t i = 0; i < meaning.size(); ++i) {
      const int64_t value = meaning[i].Substitute(numbers).value();
      EXPECT_GE(value, result.workload.sizes[i].min);
      EXPECT_LE(value, result.workload.sizes[i].max);
      abstract_values.emplace(result.workload.sizes[i].name, value);
    }
    EXPECT_EQ(TextWith(result.workload, abstract_values), TextWith(before, values));
  }
  return result;
}

TEST(AbstractSizes, AProductBecomesOneSize) {
  const Abstracted a = Abstract(R"(workload "w"
size b in [1, 8]
size s in [2, 512]
input x: f32[b * s,768]
y: f32[b * s,768] over i:b * s, j:768 = x[i, j] + 1.0f32
output y
)");
  EXPECT_EQ(ir::Print(a.workload), R"(workload "w"
size size0 in [2, 4096]
input x: f32[size0,768] in [-1, 1]
y: f32[size0,768] over i:size0, j:768 = x[i, j] + 1.0f32
output y
)");
  EXPECT_THAT(a.meaning, ElementsAre("b * s"));
}

TEST(AbstractSizes, MultiplesKeepTheirFactor) {
  const Abstracted a = Abstract(R"(workload "w"
size b in [1, 8]
size s in [1, 512]
input x: f32[b * s * 2]
input w: f32[s * b * 6]
y: f32[b * s * 2] over i:b * s * 2 = x[i] * w[i * 3] + f32(b * s * 4)
output y
)");
  EXPECT_THAT(a.meaning, ElementsAre("b * s * 2"));
  ASSERT_EQ(a.workload.sizes.size(), 1u);
  const ir::Size size0 = ir::Size::Open(a.workload.sizes[0]);
  EXPECT_TRUE(a.workload.params[1].buffer->shape == (ir::Shape{size0 * 3}));
}

TEST(AbstractSizes, SizesThatDoNotMeetGetOneEach) {
  const Abstracted a = Abstract(R"(workload "w"
size b in [1, 8]
size s in [1, 512]
input x: f32[b,s * 4]
y: f32[b] over i:b = sum k:s * 4 of x[i, k]
output y
)");
  EXPECT_THAT(a.meaning, ElementsAre("b", "s * 4"));
  EXPECT_THAT(a.workload.sizes, ElementsAre(ir::OpenSize{"size0", 1, 8}, ir::OpenSize{"size1", 4, 2048}));
}

TEST(AbstractSizes, AQuotientIsASizeOfItsOwn) {
  const Abstracted a = Abstract(R"(workload "w"
size s in [1, 512]
input x: f32[(s + 1) // 2]
y: f32[(s + 1) // 2] over i:(s + 1) // 2 = x[i]
output y
)");
  EXPECT_THAT(a.meaning, ElementsAre("(s + 1) // 2"));
  EXPECT_THAT(a.workload.sizes, ElementsAre(ir::OpenSize{"size0", 1, 256}));
}

TEST(AbstractSizes, UnrelatedExpressionsOfOneSizeStay) {
  constexpr std::string_view kText = R"(workload "w"
size s in [1, 512]
input x: f32[s + 1] in [-1, 1]
y: f32[s] over i:s = x[i] - x[i + 1]
output y
)";
  const Abstracted a = Abstract(kText);
  EXPECT_EQ(ir::Print(a.workload), kText);
  EXPECT_THAT(a.meaning, ElementsAre("s"));
}

TEST(AbstractSizes, AFactorThatIsUsedAloneStays) {
  constexpr std::string_view kExtent = R"(workload "w"
size b in [1, 8]
size s in [1, 512]
input x: f32[b * s] in [-1, 1]
y: f32[b,s] over i:b, j:s = x[i * s + j]
output y
)";
  EXPECT_EQ(ir::Print(Abstract(kExtent).workload), kExtent);
  constexpr std::string_view kValue = R"(workload "w"
size b in [1, 8]
size s in [1, 512]
input x: f32[b * s] in [-1, 1]
y: f32[b * s] over i:b * s = x[i] * f32(s)
output y
)";
  const Abstracted a = Abstract(kValue);
  EXPECT_EQ(ir::Print(a.workload), kValue);
  EXPECT_THAT(a.meaning, ElementsAre("b", "s"));
}

TEST(AbstractSizes, AFixedWorkloadStays) {
  constexpr std::string_view kText = R"(workload "w"
input x: f32[4] in [-1, 1]
y: f32[4] over i:4 = x[i]
output y
)";
  const Abstracted a = Abstract(kText);
  EXPECT_EQ(ir::Print(a.workload), kText);
  EXPECT_THAT(a.meaning, IsEmpty());
}

TEST(AbstractSizes, TheSameLayerIsTheSameWorkload) {
  const auto digest = [](const std::string& sizes, const std::string& extent) {
    const std::string shape = extent + ",768", text = "workload \"w\"\n" + sizes + "input x: f32[" + shape +
                                                      "]\ny: f32[" + shape + "] over i:" + extent +
                                                      ", j:768 = x[i, j] + 1.0f32\noutput y\n";
    return ir::WorkloadDigest(Abstract(text).workload);
  };
  const std::string product = digest("size b in [1, 8]\nsize s in [1, 512]\n", "b * s");
  EXPECT_EQ(product, digest("size tokens in [1, 4096]\n", "tokens"));
  EXPECT_NE(product, digest("size tokens in [1, 4095]\n", "tokens"));
}

}  // namespace
}  // namespace hone::graph
