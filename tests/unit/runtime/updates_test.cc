// SPDX-License-Identifier: Apache-2.0
// Updates in place in a package: which ones the checks accept, and the version of the format that they need. Runs are
// tested in tests/conformance/sizes/in_place_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "deploy/package/constant_section.h"
#include "deploy/package/manifest_builder.h"
#include "deploy/package/memory_plan.h"
#include "deploy/runtime/cpu_features.h"
#include "deploy/runtime/program_view.h"

namespace hone::tests {
namespace {

using package::PackageProgram;
using package::TensorKind;
using ::testing::HasSubstr;

enum : package::TensorId { kCache, kNewRows, kStarts, kPresent, kSum };

KernelBuffer CacheBuffer(BufferRole role, std::string dtype, std::vector<int64_t> shape) {
  return {.role = role, .dtype = std::move(dtype), .shape = std::move(shape)};
}

// cache f32[2, 3, 8, 4], rows f32[2, 3, 2, 4], starts i64[2] -> present of the cache's shape, sum f32[4] of it.
PackageProgram UpdatingProgram() {
  const auto tensor = [](std::string name, std::vector<int64_t> shape, TensorKind kind) {
    return package::PackageTensor{.name = std::move(name), .shape = std::move(shape), .kind = kind, .data = {}};
  };
  PackageProgram program;
  program.units[0].kind = *runtime::HostCode();
  program.tensors = {tensor("cache", {2, 3, 8, 4}, TensorKind::kInput),
                     tensor("rows", {2, 3, 2, 4}, TensorKind::kInput), tensor("starts", {2}, TensorKind::kInput),
                     tensor("present", {2, 3, 8, 4}, TensorKind::kOutput), tensor("sum", {4}, TensorKind::kOutput)};
  program.tensors[kStarts].dtype = package::DType::kInt64;
  program.inputs = {kCache, kNewRows, kStarts};
  program.outputs = {kPresent, kSum};
  program.kernels = {
      {.name = "update",
       .buffers = {CacheBuffer(BufferRole::kInput, "f32", {2, 3, 8, 4}),
                   CacheBuffer(BufferRole::kInput, "f32", {2, 3, 2, 4}), CacheBuffer(BufferRole::kInput, "i64", {2}),
                   CacheBuffer(BufferRole::kOutput, "f32", {2, 3, 8, 4})},
       .main = {{.function = "update"}}},
      {.name = "sum",
       .buffers = {CacheBuffer(BufferRole::kInput, "f32", {2, 3, 8, 4}), CacheBuffer(BufferRole::kOutput, "f32", {4})},
       .main = {{.function = "sum"}}}};
  program.calls = {{.kernel = 0, .arguments = {kCache, kNewRows, kStarts, kPresent}},
                   {.kernel = 1, .arguments = {kPresent, kSum}}};
  program.updates = {{.call = 0, .input = kCache, .output = kPresent, .rows = kNewRows, .starts = kStarts, .axis = 2}};
  return program;
}

// The manifest's text of what is wrong; "" if nothing is.
std::string CheckedProgram(PackageProgram program, uint32_t version = package::kFormatVersion) {
  HONE_CHECK(package::PlanArena(program).ok());
  package::ConstantSection constants;
  const auto manifest = package::BuildManifest(program, "cpu", version, constants);
  HONE_CHECK(manifest.ok());
  runtime::ProgramView view;
  const std::vector<std::span<const uint8_t>> codes(program.units.size());
  return runtime::ViewProgram({version, *manifest, codes}, 0, "", &view).text;
}

std::string ErrorAfter(const std::function<void(PackageProgram&)>& change) {
  PackageProgram program = UpdatingProgram();
  change(program);
  return CheckedProgram(program);
}

TEST(Updates, OfRowsOfAnInputAreAccepted) {
  EXPECT_EQ(CheckedProgram(UpdatingProgram()), "");
  EXPECT_EQ(ErrorAfter([](PackageProgram& p) { p.updates[0].starts = package::kNoTensor; }), "");
  EXPECT_EQ(ErrorAfter([](PackageProgram& p) { p.updates[0].axis = 1; }), "");
}

TEST(Updates, NeedTheNewestFormat) {
  PackageProgram program = UpdatingProgram();
  EXPECT_EQ(package::VersionFor(program), package::kActionsFormatVersion);
  program.updates.clear();
  EXPECT_EQ(package::VersionFor(program), package::kPlainFormatVersion);
  EXPECT_EQ(CheckedProgram(program, package::kPlainFormatVersion), "");
  EXPECT_EQ(CheckedProgram(program, package::kSizesFormatVersion), "");
}

TEST(Updates, ThatWouldWriteElsewhereAreRefused) {
  const std::pair<std::function<void(PackageProgram&)>, const char*> changes[] = {
      {[](PackageProgram& p) { p.updates[0].call = 2; }, "update 0 is of a call that is not there"},
      {[](PackageProgram& p) { p.updates.push_back(p.updates[0]); }, "update 1 is of a call that is not there, or out"},
      {[](PackageProgram& p) { p.updates[0].input = 9; }, "uses a tensor that is not there"},
      {[](PackageProgram& p) { p.updates[0].output = 9; }, "uses a tensor that is not there"},
      {[](PackageProgram& p) { p.updates[0].rows = 9; }, "uses a tensor that is not there"},
      {[](PackageProgram& p) { p.updates[0].starts = 9; }, "uses a tensor that is not there"},
      {[](PackageProgram& p) { p.updates[0].input = kPresent; }, "does not lead from an input to an output"},
      {[](PackageProgram& p) { p.updates[0].input = kNewRows; }, "does not lead from an input to an output"},
      {[](PackageProgram& p) { p.updates[0].output = kSum; }, "does not lead from an input to an output"},
      {[](PackageProgram& p) { p.updates[0].rows = kStarts; }, "does not lead from an input to an output"},
      {[](PackageProgram& p) { p.updates[0].starts = kNewRows; }, "does not begin at integers"},
      {[](PackageProgram& p) { p.updates[0].axis = 0; }, "has no axis"},
      {[](PackageProgram& p) { p.updates[0].axis = 4; }, "has no axis"},
      {[](PackageProgram& p) { p.updates[0].call = 1; }, "does not have its call's only output"},
      {[](PackageProgram& p) { p.updates[0].rows = kSum; }, "uses a tensor that its call does not read"},
      {[](PackageProgram& p) { p.calls[1].arguments[0] = kCache; }, "is of an input that is read later"},
  };
  for (const auto& [change, message] : changes) EXPECT_THAT(ErrorAfter(change), HasSubstr(message));
}

TEST(Updates, OfAnInputThatIsAnotherOutputAreRefused) {
  const auto change = [](PackageProgram& p) {
    package::PackageTensor same = p.tensors[kPresent];
    same.name = "same";
    p.tensors.push_back(same);
    p.outputs.push_back(static_cast<package::TensorId>(p.tensors.size() - 1));
    p.copies = {{kCache, p.outputs.back()}};
  };
  EXPECT_THAT(ErrorAfter(change), HasSubstr("is of an input that is copied later"));
}

}  // namespace
}  // namespace hone::tests
