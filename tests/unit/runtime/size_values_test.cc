// SPDX-License-Identifier: Apache-2.0
// Open sizes in a package: from PackageProgram through the manifest and its checks to the values of a run.
#include "deploy/runtime/size_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/ir/size.h"
#include "deploy/package/constant_section.h"
#include "deploy/package/manifest_builder.h"
#include "deploy/package/memory_plan.h"
#include "deploy/runtime/cpu_features.h"
#include "deploy/runtime/program_view.h"

namespace hone::tests {
namespace {

using package::ManifestHeader;
using package::SizeEntry;
using package::SizeOp;
using package::SizeStep;
using package::TensorKind;
using runtime::Fault;
using runtime::ProgramView;
using runtime::SizeValues;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Shapes = std::vector<std::vector<int64_t>>;
enum : package::TensorId { kX, kW, kY, kZ };

KernelBuffer Buffer(BufferRole role, std::string dtype, std::vector<int64_t> shape) {
  return {.role = role, .dtype = std::move(dtype), .shape = std::move(shape)};
}

// x f32[batch, 4 length], w f32[length] -> y f32[batch length + 1, 3], z f32[(length + 1) / 2, max(batch, 4), 5].
package::PackageProgram OpenProgram() {
  const ir::OpenSize batch = {"batch", 1, 8}, length = {"length", 2, 16};
  const ir::Size b = ir::Size::Open(batch), l = ir::Size::Open(length);
  const auto tensor = [](std::string name, const ir::Shape& shape, TensorKind kind) {
    return package::PackageTensor{
        .name = std::move(name), .shape = ir::MaxValues(shape), .extents = shape, .kind = kind, .data = {}};
  };
  package::PackageProgram program;
  program.units[0].kind = *runtime::HostCode();
  program.sizes = {batch, length};
  program.tensors = {tensor("x", {b, l * 4}, TensorKind::kInput), tensor("w", {l}, TensorKind::kInput),
                     tensor("y", {b * l + 1, 3}, TensorKind::kOutput),
                     tensor("z", {(l + 1) / 2, Max(b, 4), 5}, TensorKind::kOutput)};
  program.inputs = {kX, kW};
  program.outputs = {kY, kZ};
  program.kernels = {
      {.name = "k",
       .buffers = {Buffer(BufferRole::kInput, "f32", {8, 64}), Buffer(BufferRole::kInput, "f32", {16}),
                   Buffer(BufferRole::kOutput, "f32", {129, 3}), Buffer(BufferRole::kOutput, "f32", {8, 8, 5}),
                   Buffer(BufferRole::kSizes, "i64", {2})},
       .main = {{.function = "k"}}}};
  program.calls = {{.kernel = 0, .arguments = {kX, kW, kY, kZ, 0}, .sizes = {b * l, l}}};
  HONE_CHECK(package::PlanArena(program).ok());
  return program;
}

std::vector<uint8_t> ManifestOf(const package::PackageProgram& program) {
  package::ConstantSection constants;
  auto manifest = package::BuildManifest(program, "cpu", package::kFormatVersion, constants);
  EXPECT_TRUE(manifest.ok()) << manifest.status();
  return manifest.ok() ? *std::move(manifest) : std::vector<uint8_t>();
}

Fault View(std::span<const uint8_t> manifest, ProgramView* view) {
  return runtime::ViewProgram({package::kFormatVersion, manifest, {std::span<const uint8_t>()}}, 0, "", view);
}

class SizeValuesTest : public ::testing::Test {
 protected:
  SizeValuesTest() {
    const Fault fault = View(manifest_, &view_);
    EXPECT_TRUE(fault.ok()) << fault.text;
  }
  static std::vector<int64_t> ShapeOf(const SizeValues& values, uint32_t tensor) {
    const std::span<const int64_t> shape = values.Shape(tensor);
    return {shape.begin(), shape.end()};
  }
  std::vector<int64_t> Arguments(const SizeValues& values) const {
    return {values.arguments(), values.arguments() + view_.size_arguments.size()};
  }

  const std::vector<uint8_t> manifest_ = ManifestOf(OpenProgram());
  ProgramView view_;
};

TEST_F(SizeValuesTest, TheManifestStatesWhereSizesComeFrom) {
  ASSERT_EQ(view_.sizes.size(), 2u);
  EXPECT_EQ(view_.Text(view_.sizes[0].name), "batch");
  EXPECT_EQ(view_.sizes[0].tensor, kX);
  EXPECT_EQ(view_.sizes[0].dimension, 0u);
  EXPECT_EQ(view_.sizes[0].step, 1);
  EXPECT_EQ(view_.sizes[1].tensor, kX);
  EXPECT_EQ(view_.sizes[1].dimension, 1u);
  EXPECT_EQ(view_.sizes[1].step, 4);
  EXPECT_EQ(view_.sizes[1].min, 2);
  EXPECT_EQ(view_.sizes[1].max, 16);
  EXPECT_EQ(view_.extents.size(), view_.shapes.size());
  EXPECT_EQ(view_.size_arguments.size(), 2u);
}

TEST_F(SizeValuesTest, BeginWithTheLargest) {
  const SizeValues values(view_);
  EXPECT_TRUE(values.IsOpen());
  EXPECT_THAT(ShapeOf(values, kX), ElementsAre(8, 64));
  EXPECT_THAT(ShapeOf(values, kW), ElementsAre(16));
  EXPECT_THAT(ShapeOf(values, kY), ElementsAre(129, 3));
  EXPECT_THAT(ShapeOf(values, kZ), ElementsAre(8, 8, 5));
  EXPECT_EQ(values.Bytes(kY), 129u * 3 * 4);
  EXPECT_THAT(Arguments(values), ElementsAre(128, 16));
}

TEST_F(SizeValuesTest, FollowTheShapesOfTheInputs) {
  SizeValues values(view_);
  const int64_t* const arguments = values.arguments();
  ASSERT_TRUE(values.Set(Shapes{{2, 12}, {3}}).ok());
  EXPECT_THAT(ShapeOf(values, kX), ElementsAre(2, 12));
  EXPECT_THAT(ShapeOf(values, kY), ElementsAre(7, 3));
  EXPECT_THAT(ShapeOf(values, kZ), ElementsAre(2, 4, 5));
  EXPECT_EQ(values.Bytes(kZ), 2u * 4 * 5 * 4);
  EXPECT_THAT(Arguments(values), ElementsAre(6, 3));
  EXPECT_EQ(values.arguments(), arguments) << "kernels keep the address";
  ASSERT_TRUE(values.Set(Shapes{{5, 40}, {10}}).ok());
  EXPECT_THAT(ShapeOf(values, kY), ElementsAre(51, 3));
  EXPECT_THAT(ShapeOf(values, kZ), ElementsAre(5, 5, 5));
}

TEST_F(SizeValuesTest, EveryPairOfSizesIsAsTheCompilerSays) {
  SizeValues values(view_);
  for (int64_t b = 1; b <= 8; ++b) {
    for (int64_t l = 2; l <= 16; ++l) {
      ASSERT_TRUE(values.Set(Shapes{{b, 4 * l}, {l}}).ok()) << b << " " << l;
      ASSERT_THAT(ShapeOf(values, kY), ElementsAre(b * l + 1, 3));
      ASSERT_THAT(ShapeOf(values, kZ), ElementsAre((l + 1) / 2, std::max<int64_t>(b, 4), 5));
      ASSERT_THAT(Arguments(values), ElementsAre(b * l, l));
    }
  }
}

TEST_F(SizeValuesTest, InputsHaveRanges) {
  SizeValues values(view_);
  ASSERT_TRUE(values.Set(Shapes{{2, 12}, {3}}).ok());
  EXPECT_EQ(values.MinExtent(kX, 0), 1);
  EXPECT_EQ(values.MaxExtent(kX, 0), 8);
  EXPECT_EQ(values.MinExtent(kX, 1), 8);
  EXPECT_EQ(values.MaxExtent(kX, 1), 64);
  EXPECT_EQ(values.MinExtent(kW, 0), 2);
  EXPECT_EQ(values.MaxExtent(kW, 0), 16);
}

TEST_F(SizeValuesTest, WhatDoesNotFitIsRefusedAndChangesNothing) {
  SizeValues values(view_);
  ASSERT_TRUE(values.Set(Shapes{{2, 12}, {3}}).ok());
  const std::pair<Shapes, const char*> cases[] = {
      {{{9, 12}, {3}}, "input 'x': dimension 0 ('batch') is 9; the package takes 1 to 8"},
      {{{0, 12}, {3}}, "input 'x': dimension 0 ('batch') is 0; the package takes 1 to 8"},
      {{{2, 14}, {3}}, "input 'x': dimension 1 ('length') is 14; the package takes 8 to 64 in steps of 4"},
      {{{2, 4}, {1}}, "input 'x': dimension 1 ('length') is 4; the package takes 8 to 64 in steps of 4"},
      {{{2, 12}, {4}}, "input 'w' has shape [4], which does not fit the other inputs: they need [3]"},
      {{{5, 16}, {3}}, "input 'w' has shape [3], which does not fit the other inputs: they need [4]"},
  };
  for (const auto& [shapes, message] : cases) {
    const Fault fault = values.Set(shapes);
    EXPECT_EQ(fault.code, HONE_INVALID_ARGUMENT) << message;
    EXPECT_THAT(fault.text, HasSubstr(message));
    EXPECT_THAT(ShapeOf(values, kX), ElementsAre(2, 12));
    EXPECT_THAT(ShapeOf(values, kY), ElementsAre(7, 3));
    EXPECT_THAT(Arguments(values), ElementsAre(6, 3));
  }
}

TEST_F(SizeValuesTest, AFixedProgramHasFixedValues) {
  package::PackageProgram program = OpenProgram();
  program.sizes = {};
  for (package::PackageTensor& tensor : program.tensors) tensor.extents = {};
  program.calls[0].sizes = {};
  program.calls[0].arguments.pop_back();
  program.kernels[0].buffers.pop_back();
  const std::vector<uint8_t> manifest = ManifestOf(program);
  ProgramView view;
  const Fault fault = View(manifest, &view);
  ASSERT_TRUE(fault.ok()) << fault.text;
  EXPECT_TRUE(view.sizes.empty() && view.size_steps.empty() && view.extents.empty() && view.size_arguments.empty());
  SizeValues values(view);
  EXPECT_FALSE(values.IsOpen());
  EXPECT_TRUE(values.Set(Shapes{{8, 64}, {16}}).ok());
  EXPECT_THAT(ShapeOf(values, kY), ElementsAre(129, 3));
  EXPECT_EQ(values.MinExtent(kX, 0), 8);
  EXPECT_EQ(values.MaxExtent(kX, 0), 8);
}

TEST_F(SizeValuesTest, ASizeThatNoInputGivesIsNoProgram) {
  package::PackageProgram program = OpenProgram();
  program.sizes.push_back({"other", 1, 4});
  package::ConstantSection constants;
  const auto manifest = package::BuildManifest(program, "cpu", package::kFormatVersion, constants);
  EXPECT_THAT(std::string(manifest.status().message()),
              HasSubstr("no dimension of an input gives the open size 'other'"));
}

// --- Damaged manifests

TEST_F(SizeValuesTest, TablesThatPointAstrayAreRefused) {
  const auto error = [&](package::TableRef ManifestHeader::* table, size_t index, auto change) {
    std::vector<uint8_t> bytes = manifest_;
    ManifestHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    EXPECT_LT(index, (header.*table).count);
    auto* const first = bytes.data() + (header.*table).offset;
    change(first, index);
    ProgramView view;
    const Fault fault = View(bytes, &view);
    EXPECT_EQ(fault.code, HONE_BAD_PACKAGE);
    return fault.text;
  };
  const auto size = [&](size_t index, const std::function<void(SizeEntry&)>& change) {
    return error(&ManifestHeader::sizes, index,
                 [&](uint8_t* first, size_t i) { change(reinterpret_cast<SizeEntry*>(first)[i]); });
  };
  const auto step = [&](size_t index, const std::function<void(SizeStep&)>& change) {
    return error(&ManifestHeader::size_steps, index,
                 [&](uint8_t* first, size_t i) { change(reinterpret_cast<SizeStep*>(first)[i]); });
  };
  const auto number = [&](package::TableRef ManifestHeader::* table, size_t index, uint32_t value) {
    return error(table, index, [&](uint8_t* first, size_t i) { reinterpret_cast<uint32_t*>(first)[i] = value; });
  };
  const auto values = static_cast<uint32_t>(view_.sizes.size() + view_.size_steps.size());
  EXPECT_THAT(size(0, [](SizeEntry& s) { s.min = -1; }), HasSubstr("size 0 has no valid range"));
  EXPECT_THAT(size(0, [](SizeEntry& s) { s.min = 9; }), HasSubstr("size 0 has no valid range"));
  EXPECT_THAT(size(1, [](SizeEntry& s) { s.step = 0; }), HasSubstr("size 1 has no valid range"));
  EXPECT_THAT(size(1, [](SizeEntry& s) { s.step = int64_t{1} << 62; }), HasSubstr("size 1 has no valid range"));
  EXPECT_THAT(size(0, [](SizeEntry& s) { s.max = 9; }), HasSubstr("size 0 is not a dimension of an input"));
  EXPECT_THAT(size(0, [](SizeEntry& s) { s.tensor = kY; }), HasSubstr("size 0 is not a dimension of an input"));
  EXPECT_THAT(size(0, [](SizeEntry& s) { s.tensor = 77; }), HasSubstr("size 0 is not a dimension of an input"));
  EXPECT_THAT(size(0, [](SizeEntry& s) { s.dimension = 2; }), HasSubstr("size 0 is not a dimension of an input"));
  EXPECT_THAT(size(0, [](SizeEntry& s) { s.name.offset = 0xfffffff0; }), HasSubstr("text out of range"));
  EXPECT_THAT(step(0, [](SizeStep& s) { s.op = SizeOp{0}; }), HasSubstr("step 0 computes no size"));
  EXPECT_THAT(step(0, [](SizeStep& s) { s.op = SizeOp{9}; }), HasSubstr("step 0 computes no size"));
  EXPECT_THAT(step(1, [](SizeStep& s) { s.op = SizeOp::kAdd, s.a = 3; }), HasSubstr("step 1 computes no size"))
      << "only earlier values are known";
  EXPECT_THAT(step(0, [](SizeStep& s) { s.op = SizeOp::kMin, s.b = 2; }), HasSubstr("step 0 computes no size"));
  EXPECT_THAT(number(&ManifestHeader::extents, 0, values), HasSubstr("a size that is not there"));
  EXPECT_THAT(number(&ManifestHeader::size_arguments, 1, values), HasSubstr("a size that is not there"));
  EXPECT_THAT(number(&ManifestHeader::size_arguments, 1, package::kFixedExtent), HasSubstr("a size that is not there"));
  EXPECT_THAT(number(&ManifestHeader::arguments, 4, 1), HasSubstr("call 0 has its sizes out of range"));
}

// --- Steps

// A program of one open size of 0 to 9 with these steps; every extent of its tensors is a value.
class Steps {
 public:
  explicit Steps(std::vector<SizeStep> steps) : steps_(std::move(steps)) {
    view_.strings = strings_;
    view_.tensors = tensors_;
    view_.shapes = shapes_;
    view_.sizes = sizes_;
    view_.inputs = inputs_;
    view_.size_steps = steps_;
    for (uint32_t i = 0; i < steps_.size(); ++i) arguments_.push_back(1 + i);
    view_.size_arguments = arguments_;
    last_ = {0, static_cast<uint32_t>(steps_.size())};
    view_.extents = last_;
  }
  // The values of the steps.
  std::vector<int64_t> Run(int64_t size) {
    SizeValues values(view_);
    const Fault fault = values.Set(Shapes{{size}});
    EXPECT_TRUE(fault.ok()) << fault.text;
    extent_ = values.Shape(1)[0];
    return {values.arguments(), values.arguments() + steps_.size()};
  }
  int64_t extent() const { return extent_; }  // of a tensor whose only dimension is the last step, at most 100

 private:
  const std::vector<char> strings_ = {'n', 0};
  const std::vector<package::TensorEntry> tensors_ = {
      {.name = {0, 1}, .dtype = package::DType::kFloat32, .kind = TensorKind::kInput, .rank = 1, .shape = 0},
      {.name = {0, 1}, .dtype = package::DType::kFloat32, .kind = TensorKind::kOutput, .rank = 1, .shape = 1}};
  const std::vector<int64_t> shapes_ = {9, 100};
  const std::vector<SizeEntry> sizes_ = {{.name = {0, 1}, .min = 0, .max = 9, .step = 1, .tensor = 0, .dimension = 0}};
  const std::vector<uint32_t> inputs_ = {0};
  std::vector<SizeStep> steps_;
  std::vector<uint32_t> arguments_, last_;
  ProgramView view_;
  int64_t extent_ = 0;
};

SizeStep Number(int64_t number) { return {SizeOp::kNumber, 0, 0, 0, number}; }
SizeStep Op(SizeOp op, uint32_t a, uint32_t b) { return {op, a, b, 0, 0}; }

TEST(SizeSteps, EveryOperation) {
  constexpr SizeOp kOps[] = {SizeOp::kAdd,         SizeOp::kSubtract,       SizeOp::kMultiply,
                             SizeOp::kFloorDivide, SizeOp::kFloorRemainder, SizeOp::kMin,
                             SizeOp::kMax};
  const auto results = [&](int64_t a, int64_t b) {  // of a, b: values 1 and 2
    std::vector<SizeStep> steps = {Number(a), Number(b)};
    for (const SizeOp op : kOps) steps.push_back(Op(op, 1, 2));
    const std::vector<int64_t> values = Steps(steps).Run(3);
    return std::vector<int64_t>(values.begin() + 2, values.end());
  };
  EXPECT_THAT(results(7, 2), ElementsAre(9, 5, 14, 3, 1, 2, 7));
  EXPECT_THAT(results(-7, 2), ElementsAre(-5, -9, -14, -4, 1, -7, 2));
  EXPECT_THAT(results(7, -2), ElementsAre(5, 9, -14, -4, -1, -2, 7));
  EXPECT_THAT(results(-8, -2), ElementsAre(-10, -6, 16, 4, 0, -8, -2));
  EXPECT_THAT(results(7, 0), ElementsAre(7, 7, 0, 0, 0, 0, 7)) << "by 0: 0";
}

TEST(SizeSteps, ReadTheSizeAndEarlierSteps) {
  Steps steps({Number(3), Op(SizeOp::kMultiply, 0, 1), Op(SizeOp::kAdd, 2, 0)});
  EXPECT_THAT(steps.Run(5), ElementsAre(3, 15, 20));
  EXPECT_EQ(steps.extent(), 20);
  EXPECT_THAT(steps.Run(0), ElementsAre(3, 0, 0));
  EXPECT_EQ(steps.extent(), 0);
}

TEST(SizeSteps, ExtentsStayInsideTheMemory) {
  Steps large({Number(1'000'000), Op(SizeOp::kMultiply, 0, 1)});
  large.Run(5);
  EXPECT_EQ(large.extent(), 100);
  Steps negative({Number(-1), Op(SizeOp::kMultiply, 0, 1)});
  negative.Run(5);
  EXPECT_EQ(negative.extent(), 0);
}

// A manifest may state any numbers: none may stop the process.
TEST(SizeSteps, NumbersAtTheEndsOfTheRangeNeverCrash) {
  constexpr int64_t kNumbers[] = {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), -1, 0, 1};
  for (const int64_t a : kNumbers) {
    for (const int64_t b : kNumbers) {
      for (auto op = static_cast<uint32_t>(SizeOp::kAdd); op <= static_cast<uint32_t>(SizeOp::kMax); ++op) {
        Steps({Number(a), Number(b), Op(SizeOp{op}, 1, 2)}).Run(3);
      }
    }
  }
}

}  // namespace
}  // namespace hone::tests
