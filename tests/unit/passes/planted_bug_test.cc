// SPDX-License-Identifier: Apache-2.0
// Passes with deliberate bugs. The verifier, the interpreter or a golden file must find each of them, and the
// reproducer must show it again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/temporary_folder.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/ir/match.h"
#include "compiler/passes/passes.h"
#include "tests/unit/passes/golden_case.h"

namespace hone::opt {
namespace {

using ::testing::HasSubstr;

// A func with a tail: three rounds of eight iterations over 22 elements.
constexpr char kTail[] = R"(func f(A: f32[24], B: f32[24]) {
  for i in 3 {
    vectorized j in 8 {
      if i * 8 + j < 22 {
        A[i * 8 + j] = B[i * 8 + j] + 1.0f32
      }
    }
  }
}
)";

// Drops the loop when unrolling, so its variable has no value.
absl::Status UnrollWithoutTheVariable(ir::Func& func) {
  const std::function<ir::Stmt(const ir::Stmt&)> rewrite = [&](const ir::Stmt& s) {
    if (const ir::For* loop = s.As<ir::For>()) return rewrite(loop->body);
    return ir::MapChildren(s, rewrite, [](const ir::Expr& e) { return e; });
  };
  func.body = rewrite(func.body);
  return absl::OkStatus();
}

// Vectorizes without masks: legal code, but the tail writes past its end.
absl::Status VectorizeWithoutMasks(ir::Func& func) {
  HONE_ASSIGN_OR_RETURN(func.body, passes::Vectorize(func.body));
  const std::function<ir::Stmt(const ir::Stmt&)> rewrite = [&](const ir::Stmt& s) {
    const ir::Store* store = s.As<ir::Store>();
    if (store != nullptr) return ir::MakeStore(store->buffer, store->indices, store->value);
    return ir::MapChildren(s, rewrite, [](const ir::Expr& e) { return e; });
  };
  func.body = rewrite(func.body);
  return absl::OkStatus();
}

// Makes no change where one is expected.
absl::Status Idle(ir::Func&) { return absl::OkStatus(); }

// Changes a value's type to one that the operator does not produce.
absl::Status SimplifyToAnotherType(graph::Graph& graph) {
  graph.values[graph.nodes[0].outputs[0]].type.shape = {2, 2};
  return absl::OkStatus();
}

// Replaces every Relu by an Identity.
absl::Status SimplifyAwayRelus(graph::Graph& graph) {
  for (const graph::Node& node : std::vector<graph::Node>(graph.nodes)) {
    if (graph::Is(node, "Relu")) graph::ReplaceUses(graph, node.outputs[0], node.inputs[0]);
  }
  graph::Tidy(graph);
  return absl::OkStatus();
}

constexpr char kGraph[] = R"(graph
input x: f32[4]
a: f32[4] = Neg(x)
y: f32[4] = Relu(a)
output y as "y"
)";

std::string ErrorText(const absl::StatusOr<std::string>& result) {
  return result.ok() ? "no error" : std::string(result.status().message());
}

class PlantedBug : public ::testing::Test {
 protected:
  std::vector<Pass<ir::Func>> Broken(std::string_view name, absl::Status (*run)(ir::Func&)) {
    return WithPass(passes::FuncPasses(), {name, run});
  }
  std::vector<Pass<graph::Graph>> Broken(std::string_view name, absl::Status (*run)(graph::Graph&)) {
    return WithPass(graph::GraphPasses(), {name, run});
  }

  // Returns the text of the only reproducer.
  std::string Reproducer() {
    std::string text;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "repro")) {
      EXPECT_TRUE(text.empty()) << "more than one";
      std::ifstream file(entry.path());
      text.assign(std::istreambuf_iterator<char>(file), {});
    }
    return text;
  }

  TemporaryFolder folder_ = *TemporaryFolder::Create();
  const std::string reproducers_ = folder_ / "repro";
};

TEST_F(PlantedBug, TheVerifierNamesThePassAndItsReproducerReplays) {
  const auto broken = Broken("unroll", UnrollWithoutTheVariable);
  const PassTables tables{.func = broken};
  const std::string text = ErrorText(
      Opt(kTail, {.passes = "vectorize,unroll,simplify", .verify_each = true, .reproducers = reproducers_}, tables));
  EXPECT_THAT(text, HasSubstr("the program is illegal after unroll"));
  EXPECT_THAT(text, HasSubstr("'i'"));
  EXPECT_THAT(text, HasSubstr("to see it again: hone-opt " + reproducers_ + "/unroll-"));

  const std::string reproducer = Reproducer();
  EXPECT_THAT(reproducer, ::testing::StartsWith("# run: passes=unroll,simplify\n"));
  EXPECT_THAT(reproducer, HasSubstr("ramp(")) << "the program as vectorize left it";
  EXPECT_THAT(ErrorText(Opt(reproducer, {.verify_each = true}, tables)), HasSubstr("illegal after unroll"));
  EXPECT_EQ(ErrorText(Opt(reproducer, {.verify_each = true})), "no error") << "once the pass is mended";
}

TEST_F(PlantedBug, TheInterpreterFindsAWrongResult) {
  const auto broken = Broken("vectorize", VectorizeWithoutMasks);
  const PassTables tables{.func = broken};
  const std::string passes = "vectorize,simplify";
  EXPECT_EQ(ErrorText(Opt(kTail, {.passes = passes, .verify_each = true}, tables)), "no error") << "it is legal";
  const std::string text =
      ErrorText(Opt(kTail, {.passes = passes, .interpret = true, .reproducers = reproducers_}, tables));
  EXPECT_THAT(text, HasSubstr("after pass vectorize: element 22 of A is"));
  EXPECT_THAT(text, HasSubstr("--interpret"));
  const std::string reproducer = Reproducer();
  EXPECT_THAT(ErrorText(Opt(reproducer, {.interpret = true}, tables)), HasSubstr("after pass vectorize"));
  EXPECT_EQ(ErrorText(Opt(reproducer, {.interpret = true})), "no error") << "once the pass is mended";
}

// The golden files detect any pass that does nothing.
TEST_F(PlantedBug, AGoldenFileFindsIt) {
  std::vector<std::pair<std::string_view, absl::Status (*)(ir::Func&)>> bugs = {{"vectorize", VectorizeWithoutMasks},
                                                                                {"unroll", UnrollWithoutTheVariable}};
  for (const auto& pass : passes::FuncPasses()) bugs.emplace_back(pass.name, Idle);
  for (const auto& pass : passes::GridPasses()) bugs.emplace_back(pass.name, Idle);
  const std::vector<tests::GoldenFile> cases = ReadGoldenCases();
  for (const auto& [name, run] : bugs) {
    const auto broken = Broken(name, run);
    const auto broken_grid = WithPass(passes::GridPasses(), {name, run});
    int found = 0;
    for (const tests::GoldenFile& golden : cases)
      found += ActualOf(golden, {.func = broken, .grid = broken_grid}) != golden.expected;
    EXPECT_GT(found, 0) << name;
  }
}

TEST_F(PlantedBug, TheVerifierNamesAGraphPass) {
  const auto broken = Broken("simplify", SimplifyToAnotherType);
  const std::string text =
      ErrorText(Opt(kGraph, {.passes = "all", .verify_each = true, .reproducers = reproducers_}, {.graph = broken}));
  EXPECT_THAT(text, HasSubstr("illegal after simplify"));
  EXPECT_THAT(text, HasSubstr("is f32[2,2], but the operator makes f32[4]"));
  EXPECT_THAT(ErrorText(Opt(Reproducer(), {.verify_each = true}, {.graph = broken})),
              HasSubstr("illegal after simplify"));
  EXPECT_EQ(ErrorText(Opt(Reproducer(), {.verify_each = true})), "no error");
}

TEST_F(PlantedBug, TheInterpreterFindsAWrongGraph) {
  const auto broken = Broken("simplify", SimplifyAwayRelus);
  EXPECT_EQ(ErrorText(Opt(kGraph, {.passes = "all", .verify_each = true}, {.graph = broken})), "no error");
  EXPECT_THAT(ErrorText(Opt(kGraph, {.passes = "all", .interpret = true}, {.graph = broken})),
              HasSubstr("after pass simplify: element"));
}

}  // namespace
}  // namespace hone::opt
