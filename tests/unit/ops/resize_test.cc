// SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

using ir::DType;

OpCase Resize(const Constant& x, std::vector<double> sizes, std::map<std::string, Attribute> attributes) {
  const int64_t rank = static_cast<int64_t>(sizes.size());
  return {"Resize", {x, Absent(), Absent(), Ints({rank}, std::move(sizes))}, std::move(attributes), 19};
}

TEST(ResizeOps, NearestNeighbours) {
  const Constant x = Floats({4}, {1, 2, 3, 4});
  const std::map<std::string, Attribute> floor = {{"coordinate_transformation_mode", std::string("asymmetric")},
                                                  {"nearest_mode", std::string("floor")}};
  ExpectNumbers(Resize(x, {8}, floor), {1, 1, 2, 2, 3, 3, 4, 4});
  ExpectNumbers(Resize(x, {2}, floor), {1, 3});
  ExpectNumbers(Resize(x, {7}, floor), {1, 1, 2, 2, 3, 3, 4});
  ExpectNumbers(Resize(x, {6}, {}), {1, 1, 2, 3, 3, 4});  // half_pixel, round_prefer_floor
  ExpectNumbers(
      Resize(x, {3},
             {{"coordinate_transformation_mode", std::string("align_corners")}, {"nearest_mode", std::string("ceil")}}),
      {1, 3, 4});
  ExpectNumbers({"Upsample", {x, Floats({1}, {2})}, {}, 9}, {1, 1, 2, 2, 3, 3, 4, 4});
  ExpectNumbers({"Upsample", {x}, {{"scales", std::vector<double>{2}}}, 7}, {1, 1, 2, 2, 3, 3, 4, 4});
}

// Before opset 11 there was no attribute for the rounding: indices are floored if an axis grows, and raised if it
// shrinks.
TEST(ResizeOps, NearestNeighboursOfOpset10) {
  const Constant x = Floats({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  ExpectOutput({"Resize", {x, Floats({4}, {1, 1, 0.6, 0.6})}, {}, 10}, {1, 1, 1, 2}, {1, 3});
  ExpectNumbers({"Resize", {Floats({2}, {1, 2}), Floats({1}, {1.5})}, {}, 10}, {1, 1, 2});
}

// The scale differs from out / in, so the source index has no closed form.
TEST(ResizeOps, NearestNeighboursByTable) {
  ExpectNumbers({"Resize",
                 {Counting({7}), Absent(), Floats({1}, {0.6})},
                 {{"coordinate_transformation_mode", std::string("asymmetric")},
                  {"nearest_mode", std::string("round_prefer_ceil")}},
                 13},
                {0, 2, 3, 5});
}

TEST(ResizeOps, Linear) {
  const Constant x = Floats({1, 2}, {0, 4});
  const Attribute linear = std::string("linear");
  ExpectOutput(Resize(x, {1, 4}, {{"mode", linear}}), {1, 4}, {0, 1, 3, 4});
  ExpectOutput(Resize(x, {1, 3}, {{"mode", linear}, {"coordinate_transformation_mode", std::string("align_corners")}}),
               {1, 3}, {0, 2, 4});
  ExpectOutput(Resize(Floats({2, 2}, {0, 4, 8, 12}), {1, 1}, {{"mode", linear}}), {1, 1}, {6});
  ExpectNumbers(Resize(Floats({4}, {0, 1, 2, 3}), {2}, {{"mode", linear}}), {0.5, 2.5});
  // Antialiasing widens the triangle: weights 1, 3, 3, 1 (of 8) for the samples inside the input.
  ExpectNumbers(Resize(Floats({4}, {0, 0, 8, 8}), {2}, {{"mode", linear}, {"antialias", Int(1)}}), {1, 7});
  ExpectNumbers(Resize(Tensor(DType::kUInt8, {2}, {0, 255}), {4}, {{"mode", linear}}), {0, 63, 191, 255});
}

// The fraction is dropped, unless a sum of weights would be whole without rounding errors.
TEST(ResizeOps, LinearOfIntegers) {
  const std::map<std::string, Attribute> linear = {{"mode", std::string("linear")}};
  ExpectNumbers(Resize(Tensor(DType::kInt16, {2}, {0, -255}), {4}, linear), {0, -63, -191, -255});
  for (const double same : {7.0, 16777217.0}) {
    const auto resized = RunCase(Resize(Tensor(DType::kInt32, {3}, {same, same, same}), {7}, linear));
    ASSERT_TRUE(resized.ok()) << resized.status();
    EXPECT_EQ(Numbers((*resized)[0]), std::vector<double>(7, same));
  }
  ExpectNumbers(Resize(Tensor(DType::kUInt8, {3}, {7, 7, 7}), {7}, linear), std::vector<double>(7, 7));
}

TEST(ResizeOps, NearestNeighboursOfBools) { ExpectNumbers(Resize(Bools({2}, {0, 1}), {4}, {}), {0, 0, 1, 1}); }

TEST(ResizeOps, Cubic) {
  const Attribute cubic = std::string("cubic");
  // Halfway between samples the weights are -0.09375, 0.59375, 0.59375, -0.09375.
  ExpectNumbers(Resize(Floats({4}, {0, 1, 1, 0}), {1}, {{"mode", cubic}}), {1.1875});
  ExpectNumbers(Resize(Floats({2}, {1, 1}), {1}, {{"mode", cubic}, {"exclude_outside", Int(1)}}), {1});
}

TEST(ResizeOps, CropAndExtrapolate) {
  const OpCase crop{"Resize",
                    {Floats({3}, {1, 2, 3}), Floats({2}, {0.5, 1.5}), Absent(), Ints({1}, {3})},
                    {{"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                     {"mode", std::string("linear")},
                     {"extrapolation_value", 9.0}},
                    13};
  ExpectNumbers(crop, {2, 3, 9});
}

TEST(ResizeOps, KeepsTheAspectRatioIfAsked) {
  OpCase resize = Resize(Counting({2, 4}), {4, 4}, {{"keep_aspect_ratio_policy", std::string("not_larger")}});
  ExpectOutput(resize, {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  resize.attributes["keep_aspect_ratio_policy"] = std::string("not_smaller");
  const auto larger = RunCase(resize);
  ASSERT_TRUE(larger.ok()) << larger.status();
  EXPECT_EQ((*larger)[0].type.shape, (Shape{4, 8}));
}

TEST(SampleOps, GridSample) {
  const Constant x = Floats({1, 1, 2, 2}, {0, 1, 2, 3});
  auto sample = [&](double gx, double gy, const std::string& mode, const std::string& padding) {
    return OpCase{"GridSample", {x, Floats({1, 1, 1, 2}, {gx, gy})}, {{"mode", mode}, {"padding_mode", padding}}, 16};
  };
  ExpectOutput(sample(0, 0, "bilinear", "zeros"), {1, 1, 1, 1}, {1.5});
  ExpectOutput(sample(0.5, -0.5, "nearest", "zeros"), {1, 1, 1, 1}, {1});
  ExpectOutput(sample(1, -0.5, "bilinear", "zeros"), {1, 1, 1, 1}, {0.5});
  ExpectOutput(sample(5, -0.5, "bilinear", "border"), {1, 1, 1, 1}, {1});
  ExpectOutput(sample(1.5, -0.5, "bilinear", "reflection"), {1, 1, 1, 1}, {1});
  ExpectOutput(sample(2.5, -0.5, "bilinear", "reflection"), {1, 1, 1, 1}, {0});
  ExpectOutput(sample(0, 0, "bicubic", "border"), {1, 1, 1, 1}, {1.5});
}

TEST(SampleOps, RoiAlign) {
  auto align = [](const std::string& mode) {
    return OpCase{"RoiAlign",
                  {Counting({1, 1, 4, 4}), Floats({1, 4}, {0, 0, 2, 2}), Ints({1}, {0})},
                  {{"sampling_ratio", Int(2)},
                   {"mode", mode},
                   {"coordinate_transformation_mode", std::string("output_half_pixel")}},
                  16};
  };
  ExpectOutput(align("avg"), {1, 1, 1, 1}, {5});
  ExpectOutput(align("max"), {1, 1, 1, 1}, {2.5});
}

}  // namespace
}  // namespace hone::graph
