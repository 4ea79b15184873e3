// SPDX-License-Identifier: Apache-2.0
// Random operators: the generator's own numbers, and distributions.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "gtest/gtest.h"
#include "tests/unit/opsets/import_case.h"

namespace hone::graph {
namespace {

using ir::DType;

std::vector<double> Drawn(const OpCase& test_case, const ImportOf& import = {}, size_t output = 0) {
  const absl::StatusOr<std::vector<Constant>> results = RunImported(test_case, import);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? Numbers((*results)[output]) : std::vector<double>();
}

double MeanOf(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

double DeviationOf(const std::vector<double>& numbers) {
  double squares = 0;
  for (const double x : numbers) squares += (x - MeanOf(numbers)) * (x - MeanOf(numbers));
  return std::sqrt(squares / static_cast<double>(numbers.size()));
}

TEST(Random, GeneratorHasThePublishedNumbers) {
  // Philox 2x32-10 of key 0 and counter 0 is ff1dae59 6cd10df2 (Random123's known answers). Its first word is the
  // lower one, and f32 takes the upper 24 bits of it.
  ExpectImported({"RandomUniform", {}, {{"seed", 0.0}, {"shape", IntList({1})}}, 22}, {1},
                 {0xff1dae / std::ldexp(1.0, 24)}, {}, 0, 1e-9);
  const uint64_t words = (uint64_t{0x6cd10df2} << 32) | 0xff1dae59;
  ExpectImported({"RandomUniform", {}, {{"seed", 0.0}, {"shape", IntList({1})}, {"dtype", Int(11)}}, 22}, {1},
                 {static_cast<double>(words >> 11) / std::ldexp(1.0, 53)}, {}, 0, 1e-15);
}

TEST(Random, UniformNumbersFillTheirRange) {
  const std::vector<double> x =
      Drawn({"RandomUniform", {}, {{"low", -1.0}, {"high", 3.0}, {"seed", 5.0}, {"shape", IntList({20000})}}, 1});
  EXPECT_NEAR(MeanOf(x), 1, 0.03);
  EXPECT_NEAR(DeviationOf(x), 4 / std::sqrt(12), 0.03);
  EXPECT_GE(*std::min_element(x.begin(), x.end()), -1);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 3);
  EXPECT_GT(std::set<double>(x.begin(), x.end()).size(), 19900u);
}

TEST(Random, NormalNumbers) {
  const Constant like = Tensor(DType::kFloat64, {100, 200}, std::vector<double>(20000));
  for (const OpCase& test_case :
       {OpCase{"RandomNormal", {}, {{"mean", 2.0}, {"scale", 0.5}, {"shape", IntList({20000})}}, 1},
        OpCase{"RandomNormalLike", {like}, {{"mean", 2.0}, {"scale", 0.5}}, 22}}) {
    const std::vector<double> x = Drawn(test_case);
    EXPECT_NEAR(MeanOf(x), 2, 0.02);
    EXPECT_NEAR(DeviationOf(x), 0.5, 0.02);
    const auto inside = std::count_if(x.begin(), x.end(), [](double v) { return std::abs(v - 2) < 0.5; });
    EXPECT_NEAR(static_cast<double>(inside) / 20000, 0.6827, 0.02);
  }
}

TEST(Random, SeedsDecideAndRunsRepeat) {
  const auto with = [](double seed) {
    return Drawn({"RandomUniform", {}, {{"seed", seed}, {"shape", IntList({8})}, {"dtype", Int(10)}}, 22});
  };
  EXPECT_EQ(with(1), with(1));
  EXPECT_NE(with(1), with(2));
}

TEST(Random, BernoulliDrawsWithTheGivenProbabilities) {
  std::vector<double> odds(30000);
  for (size_t i = 0; i < odds.size(); ++i) odds[i] = i < 10000 ? 0 : i < 20000 ? 0.3 : 1;
  const OpCase test_case = {"Bernoulli", {Floats({30000}, odds)}, {{"dtype", Int(6)}, {"seed", 3.0}}, 15};
  const std::vector<double> x = Drawn(test_case);
  EXPECT_EQ(std::accumulate(x.begin(), x.begin() + 10000, 0.0), 0);
  EXPECT_NEAR(std::accumulate(x.begin() + 10000, x.begin() + 20000, 0.0) / 10000, 0.3, 0.02);
  EXPECT_EQ(std::accumulate(x.begin() + 20000, x.end(), 0.0), 10000);
}

TEST(Random, MultinomialDrawsClasses) {
  const Constant logs = Floats({2, 3}, {std::log(1), std::log(2), std::log(5), 0, -kInf, -kInf});
  const std::vector<double> x =
      Drawn({"Multinomial", {logs}, {{"sample_size", Int(8000)}, {"dtype", Int(7)}, {"seed", 1.0}}, 22});
  ASSERT_EQ(x.size(), 16000u);
  for (const int k : {0, 1, 2}) {
    const double share = static_cast<double>(std::count(x.begin(), x.begin() + 8000, k)) / 8000;
    EXPECT_NEAR(share, k == 0 ? 0.125 : k == 1 ? 0.25 : 0.625, 0.02);
  }
  EXPECT_EQ(std::count(x.begin() + 8000, x.end(), 0), 8000);
}

TEST(Random, DropoutInTrainingKeepsTheMean) {
  const Constant x = Floats({10000}, std::vector<double>(10000, 3));
  const OpCase since_12 = {"Dropout", {x, Floats({}, {0.25}), Bools({}, {1})}, {{"seed", Int(7)}}, 13, 2};
  const ImportOf constants = {.constants = {1, 2}};
  const std::vector<double> y = Drawn(since_12, constants), mask = Drawn(since_12, constants, 1);
  EXPECT_NEAR(MeanOf(y), 3, 0.1);
  EXPECT_NEAR(MeanOf(mask), 0.75, 0.02);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], mask[i] != 0 ? 4 : 0, 1e-5);
  EXPECT_NEAR(MeanOf(Drawn({"Dropout", {x}, {{"ratio", 0.5}}, 6})), 3, 0.1);
  ExpectImported({"Dropout", {Floats({2}, {1, 2})}, {{"is_test", Int(1)}}, 6}, {2}, {1, 2});
  ExpectImported({"Dropout", {Floats({2}, {1, 2})}, {}, 7}, {2}, {1, 2});
}

}  // namespace
}  // namespace hone::graph
