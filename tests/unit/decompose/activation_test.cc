// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "compiler/graph/decompose/table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char kMs[] = "com.microsoft";

double GeluOf(double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }
double TanhGeluOf(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double QuickGeluOf(double x, double alpha) { return x / (1 + std::exp(-alpha * x)); }

TEST(DecomposeActivation, Gelu) {
  ExpectDecomposed({"Gelu", {Floats({3}, {-1, 0.5, 2})}}, {3}, {GeluOf(-1), GeluOf(0.5), GeluOf(2)});
}

TEST(DecomposeActivation, GeluWithBias) {
  const Constant x = Floats({2, 2}, {-1, 0.5, 2, 3}), bias = Floats({2}, {0.25, -0.5});
  ExpectDecomposed({"BiasGelu", {x, bias}}, {2, 2}, {GeluOf(-0.75), GeluOf(0), GeluOf(2.25), GeluOf(2.5)});
  ExpectDecomposed({"FastGelu", {x, bias}}, {2, 2},
                   {TanhGeluOf(-0.75), TanhGeluOf(0), TanhGeluOf(2.25), TanhGeluOf(2.5)});
  ExpectDecomposed({"FastGelu", {x}}, {2, 2}, {TanhGeluOf(-1), TanhGeluOf(0.5), TanhGeluOf(2), TanhGeluOf(3)});
}

TEST(DecomposeActivation, QuickGelu) {
  const Constant x = Floats({2}, {-1, 2});
  ExpectDecomposed({"QuickGelu", {x}}, {2}, {QuickGeluOf(-1, 1.702), QuickGeluOf(2, 1.702)});
  ExpectDecomposed({"QuickGelu", {x}, {{"alpha", 0.5}}}, {2}, {QuickGeluOf(-1, 0.5), QuickGeluOf(2, 0.5)});
}

TEST(DecomposeActivation, BiasSplitGelu) {
  ExpectDecomposed({"BiasSplitGelu", {Floats({1, 1, 4}, {1, 2, 3, 4}), Floats({4}, {1, -1, 0.5, -2})}}, {1, 1, 2},
                   {2 * GeluOf(3.5), 1 * GeluOf(2)});
}

TEST(DecomposeActivation, BadAttributesAndMissingInputsAreErrors) {
  const Constant x = Floats({2}, {-1, 2});
  EXPECT_THAT(RunDecomposed({"QuickGelu", {x}, {{"alpha", std::string("a")}}}).status().message(),
              HasSubstr("attribute 'alpha' must be a float"));
  EXPECT_THAT(RunDecomposed({"BiasGelu", {x}}).status().message(), HasSubstr("input 1 is missing"));
}

// The importer: with the domain, without a version of the domain, and without the domain.
TEST(DecomposeImport, OldSpellingsAreTheSameOperator) {
  GraphBuilder b;
  b.Input("x", {2, 8}).Node("FastGelu", {"x"}, {"y"}, {}, kMs).Output("y");
  const Graph graph = ExpectPassesKeepMeaning(b.Model());
  EXPECT_THAT(Ops(graph), ElementsAre("Gelu"));
  EXPECT_EQ(graph.output_names, std::vector<std::string>{"y"});
  GraphBuilder old;
  old.Input("x", {2, 8}).Node("FastGelu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(Import(old.Model())), ElementsAre("Gelu"));
}

// The same name at an opset that defines it is ONNX's operator.
TEST(DecomposeImport, OnnxComesFirstSinceItDefinesTheOperator) {
  EXPECT_NE(decompose::FindRow("", "Gelu", 19), nullptr);
  EXPECT_EQ(decompose::FindRow("", "Gelu", 20), nullptr);
  EXPECT_NE(decompose::FindRow("", "SimplifiedLayerNormalization", 28), nullptr);
  EXPECT_NE(decompose::FindRow("com.microsoft", "Gelu", 28), nullptr);
  EXPECT_EQ(decompose::FindRow("com.example", "Gelu", 17), nullptr);
  EXPECT_EQ(decompose::FindRow("", "Relu", 17), nullptr);
}

TEST(DecomposeImport, ErrorsNameTheNode) {
  GraphBuilder b;
  b.Input("x", {2, 8}).Input("bias", {3}).Node("BiasGelu", {"x", "bias"}, {"y"}, {}, kMs).Output("y");
  const absl::Status error = ImportError(b.Model());
  EXPECT_THAT(error.message(), HasSubstr("(BiasGelu)")) << error;
  EXPECT_THAT(error.message(), HasSubstr("/Add")) << error;
}

TEST(DecomposeImport, ConstantsAreComputed) {
  GraphBuilder b;
  b.Floats("c", {2}, {1, 2}).Node("Gelu", {"c"}, {"g"}, {}, kMs);
  b.Input("x", {2}).Node("Add", {"x", "g"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(Import(b.Model())), ElementsAre("Add"));
}

}  // namespace
}  // namespace hone::graph
