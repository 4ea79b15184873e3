// SPDX-License-Identifier: Apache-2.0
// Tests the ranges that open dimensions get by default: each is checked by an import with these ranges.
#include "compiler/graph/default_ranges.h"

#include <filesystem>
#include <fstream>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "compiler/graph/check_onnx.h"
#include "compiler/graph/onnx_import.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"

namespace hone::graph {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<float> Zeros(size_t count) { return std::vector<float>(count, 0.0F); }

class DefaultRanges : public ::testing::Test {
 protected:
  absl::StatusOr<OpenRanges> Choose(const GraphBuilder& b, ImportOptions options = {}) {
    const std::string path = (std::filesystem::path(folder_.path()) / "model.onnx").string();
    std::ofstream(path, std::ios::binary) << b.Model();
    absl::StatusOr<OpenRanges> open = ChooseOpenRanges(path, options);
    if (!open.ok()) return open;
    options.ranges = open->ranges;
    EXPECT_EQ(ImportOnnx(path, options).status(), absl::OkStatus());
    return open;
  }
  std::vector<std::string> ShapesOf(const GraphBuilder& b, const ImportOptions& options = {}) {
    const absl::StatusOr<OpenRanges> open = Choose(b, options);
    EXPECT_EQ(open.status(), absl::OkStatus());
    return open.ok() ? open->shapes : std::vector<std::string>();
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

TEST_F(DefaultRanges, AModelWithoutOpenDimensionsHasNone) {
  GraphBuilder b;
  b.Input("x", {2, 3}).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(ShapesOf(b), IsEmpty());
}

TEST_F(DefaultRanges, ABatchIsShorterThanOtherDimensions) {
  GraphBuilder b;
  b.Input("ids", Dims({Dim("batch"), Dim("sequence")})).Input("frames", Dims({Dim("seq_len"), Dim("my_batch")}));
  b.Input("row", Dims({Dim("n")})).Input("rows", Dims({Dim("rows"), Dim("m")}));
  for (const char* name : {"ids", "frames", "row", "rows"}) b.Node("Relu", {name}, {name + std::string("_out")});
  for (const char* name : {"ids", "frames", "row", "rows"}) b.Output(name + std::string("_out"));
  EXPECT_THAT(ShapesOf(b), ElementsAre("ids=1..8,1..512", "frames=1..512,1..8", "row=1..512", "rows=1..8,1..512"));
}

TEST_F(DefaultRanges, OneNameIsOneSizeAndUnnamedDimensionsShareNone) {
  GraphBuilder b;
  b.Input("a", Dims({Dim("batch"), Dim("n")})).Input("b", Dims({Dim("batch"), Dim("n")}));
  b.Input("c", Dims({Dim("?"), Dim("?")})).Node("Add", {"a", "b"}, {"y"}).Node("Relu", {"c"}, {"z"});
  b.Output("y").Output("z");
  const absl::StatusOr<OpenRanges> open = Choose(b);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_THAT(open->shapes, ElementsAre("a=1..8,1..512", "c=1..8,1..512"));
  EXPECT_THAT(open->numbers, ElementsAre("a=1,64", "c=1,64"));
  EXPECT_EQ(open->ranges.size(), 4U);
}

TEST_F(DefaultRanges, ASumFollowsFromItsTerms) {
  GraphBuilder b;
  b.Input("mask", Dims({Dim("batch"), Dim("past + sequence")})).Input("x", Dims({Dim("batch"), Dim("sequence")}));
  b.Input("keys", Dims({Dim("batch"), Dim("past")}));
  b.Node("Concat", {"keys", "x"}, {"all"}, {Attr("axis", 1)}).Node("Add", {"all", "mask"}, {"y"}).Output("y");
  const absl::StatusOr<OpenRanges> open = Choose(b);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(open->ranges.size(), 3U);
  EXPECT_FALSE(open->ranges.contains("past + sequence"));
}

TEST_F(DefaultRanges, DimensionsThatTheUserGivesStay) {
  GraphBuilder b;
  b.Input("x", Dims({Dim("batch"), Dim("n")})).Input("z", Dims({Dim("batch"), Dim("m")}));
  b.Node("Relu", {"x"}, {"a"}).Node("Relu", {"z"}, {"c"}).Output("a").Output("c");
  ImportOptions options;
  options.shapes = {{"x", {DimRange(2, 3), 5}}};
  EXPECT_THAT(ShapesOf(b, options), ElementsAre("z=2..3,1..512"));
}

TEST_F(DefaultRanges, AnOperatorsNumberIsTaken) {
  GraphBuilder b;
  b.Input("image", Dims({Dim("n"), Dim("c"), Dim("h"), Dim("w")})).Floats("w1", {8, 3, 3, 3}, Zeros(216));
  b.Node("Conv", {"image", "w1"}, {"y"}, {Attr("pads", std::vector<int64_t>{1, 1, 1, 1})}).Output("y");
  EXPECT_THAT(ShapesOf(b), ElementsAre("image=1..8,3,1..512,1..512"));
}

TEST_F(DefaultRanges, NumbersOfSeveralOperatorsAreTaken) {
  GraphBuilder b;
  b.Input("x", Dims({Dim("?"), Dim("?")})).Input("z", Dims({Dim("?"), Dim("?")}));
  b.Floats("w1", {10, 4}, Zeros(40)).Floats("w2", {7, 4}, Zeros(28));
  b.Node("MatMul", {"x", "w1"}, {"a"}).Node("MatMul", {"z", "w2"}, {"c"}).Output("a").Output("c");
  EXPECT_THAT(ShapesOf(b), ElementsAre("x=1..8,10", "z=1..8,7"));
}

TEST_F(DefaultRanges, AShapeInTheFileMayTieTheBatchToOne) {
  GraphBuilder b;
  b.Input("x", Dims({Dim("batch"), Dim(int64_t{6})})).Ints("shape", {1, 6}).Node("Reshape", {"x", "shape"}, {"y"});
  b.Output("y");
  EXPECT_THAT(ShapesOf(b), ElementsAre("x=1,6"));
}

TEST_F(DefaultRanges, AKernelNeedsAnImageOfItsSize) {
  GraphBuilder b;
  b.Input("image", Dims({Dim("n"), Dim(int64_t{1}), Dim("h"), Dim("w")})).Floats("w1", {4, 1, 5, 5}, Zeros(100));
  b.Node("Conv", {"image", "w1"}, {"y"}).Output("y");
  EXPECT_THAT(ShapesOf(b), ElementsAre("image=1..8,1,8..512,8..512"));
}

TEST_F(DefaultRanges, ASizeThatIsHalvedAndDoubledHasSteps) {
  GraphBuilder b;
  b.Input("image", Dims({Dim("n"), Dim(int64_t{2}), Dim("h"), Dim("w")}));
  b.Node("MaxPool", {"image"}, {"half"},
         {Attr("kernel_shape", std::vector<int64_t>{2, 2}), Attr("strides", std::vector<int64_t>{2, 2})});
  b.Floats("scales", {4}, {1, 1, 2, 2}).Node("Resize", {"half", "", "scales"}, {"up"});
  b.Node("Concat", {"image", "up"}, {"y"}, {Attr("axis", 1)}).Output("y");
  EXPECT_THAT(ShapesOf(b), ElementsAre("image=1..8,2,8..512:8,8..512:8"));
}

TEST_F(DefaultRanges, LargeImagesAreSmallerThanOthers) {
  GraphBuilder b;
  b.Input("image", Dims({Dim(int64_t{1}), Dim(int64_t{512}), Dim("h"), Dim("w")})).Node("Relu", {"image"}, {"a"});
  b.Node("Add", {"image", "a"}, {"y"}).Output("y");  // three values of 512 MiB at 512 x 512
  EXPECT_THAT(ShapesOf(b), ElementsAre("image=1,512,1..256,1..256"));
}

TEST_F(DefaultRanges, ATableLimitsASum) {
  GraphBuilder b;  // the rows of a table from the past on, as positions of new tokens
  b.Input("x", Dims({Dim("batch"), Dim("sequence"), Dim(int64_t{4})}));
  b.Input("past_keys", Dims({Dim("batch"), Dim("past"), Dim(int64_t{4})})).Floats("table", {512, 4}, Zeros(2048));
  b.Node("Concat", {"past_keys", "x"}, {"keys"}, {Attr("axis", 1)}).Node("Shape", {"keys"}, {"shape"});
  b.Node("Shape", {"past_keys"}, {"past_shape"}).Ints("axis0", {0}).Ints("one", {1}).Ints("two", {2});
  b.Node("Slice", {"past_shape", "one", "two", "axis0"}, {"begin"});
  b.Node("Slice", {"shape", "one", "two", "axis0"}, {"end"});
  b.Node("Slice", {"table", "begin", "end", "axis0"}, {"rows"}).Node("Add", {"x", "rows"}, {"y"}).Output("y");
  EXPECT_THAT(ShapesOf(b), ElementsAre("x=1..8,1..256,4", "past_keys=1..8,0..256,4"));
}

TEST_F(DefaultRanges, AProblemOfAllSizesIsNotTheirs) {
  GraphBuilder b;
  b.Input("x", Dims({Dim("batch"), Dim("n")})).Node("Spline", {"x"}, {"a"}).Node("Relu", {"x"}, {"y"});
  b.Output("a").Output("y");
  const std::string path = (std::filesystem::path(folder_.path()) / "model.onnx").string();
  std::ofstream(path, std::ios::binary) << b.Model();
  const absl::StatusOr<OpenRanges> open = ChooseOpenRanges(path, {});
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_THAT(open->shapes, ElementsAre("x=1..8,1..512"));
}

TEST_F(DefaultRanges, ADimensionThatCannotBeOpenIsNamedWithShapesThatWork) {
  GraphBuilder b;  // the rows of a matrix that is inverted
  b.Input("x", Dims({Dim("batch"), Dim("n"), Dim("m")})).Input("z", Dims({Dim("batch"), Dim("k")}));
  b.Node("Add", {"x", "x"}, {"twice"}).Node("Det", {"twice"}, {"y"}).Node("Relu", {"z"}, {"c"}).Output("y").Output("c");
  const absl::Status status = Choose(b).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("dimension 1 ('n') of input 'x' and dimension 2 ('m') of input 'x' cannot be open"),
                    HasSubstr("node 'node_of_y' (Det)"),
                    HasSubstr("give them numbers, for example with --shape x=1..8,64,64 --shape z=1..8,1..512")));
}

// One step works, and so does any other number: the number is not the operator's, so it is not taken.
TEST_F(DefaultRanges, ANumberThatIsOneOfManyIsNotTaken) {
  GraphBuilder b;
  b.Input("x", Dims({Dim("batch"), Dim("samples"), Dim(int64_t{1})}));
  b.Node("DFT", {"x"}, {"y"}, {Attr("axis", 1)}).Output("y");
  EXPECT_THAT(std::string(Choose(b).status().message()),
              AllOf(HasSubstr("dimension 1 ('samples') of input 'x' cannot be open: node 'node_of_y' (DFT)"),
                    HasSubstr("give it a number, for example with --shape x=1..8,64,1")));
}

}  // namespace
}  // namespace hone::graph
