// SPDX-License-Identifier: Apache-2.0
// Steps of a run in a package: what the checks of a manifest refuse, and how long tensors live that a loop uses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "deploy/package/constant_section.h"
#include "deploy/package/manifest_builder.h"
#include "deploy/package/memory_plan.h"
#include "deploy/runtime/cpu_features.h"
#include "deploy/runtime/program_view.h"

namespace hone::tests {
namespace {

using package::ManifestHeader;
using package::PackageTensor;
using package::StepEntry;
using package::StepOp;
using package::TensorKind;
using runtime::Fault;
using ::testing::HasSubstr;

enum : package::TensorId { kCount, kX, kOutside, kState, kNext, kInside, kY };

PackageTensor Tensor(std::string name, DType dtype, std::vector<int64_t> shape, TensorKind kind) {
  return {.name = std::move(name), .dtype = dtype, .shape = std::move(shape), .kind = kind, .data = {}};
}

// outside = k(x); state = x; for (step = 0; step < count; ++step) { inside = k(outside); next = k(inside); swap(state,
// next); } y = state.
package::PackageProgram LoopProgram() {
  const auto f32 = [](std::string name, TensorKind kind) {
    return Tensor(std::move(name), DType::kFloat32, {64}, kind);
  };
  package::PackageProgram program;
  program.units[0].kind = *runtime::HostCode();
  const ir::OpenSize step = {"step", 0, 9}, count = {"count", 0, 9};
  program.sizes = {step, count};
  program.tensors = {Tensor("count", DType::kInt64, {}, TensorKind::kInput),
                     f32("x", TensorKind::kInput),
                     f32("outside", TensorKind::kIntermediate),
                     f32("state", TensorKind::kIntermediate),
                     f32("next", TensorKind::kIntermediate),
                     f32("inside", TensorKind::kIntermediate),
                     f32("y", TensorKind::kOutput)};
  program.inputs = {kCount, kX};
  program.outputs = {kY};
  program.kernels = {{.name = "k",
                      .buffers = {{.role = BufferRole::kInput, .dtype = "f32", .shape = {64}},
                                  {.role = BufferRole::kOutput, .dtype = "f32", .shape = {64}}},
                      .main = {{.function = "k"}}}};
  program.calls = {{.kernel = 0, .arguments = {kX, kOutside}},
                   {.kernel = 0, .arguments = {kOutside, kInside}},
                   {.kernel = 0, .arguments = {kInside, kNext}}};
  const ir::Size done = ir::Size::Open(step);
  program.steps = {{.op = StepOp::kCopy, .call = 1, .source = kX, .target = kState},
                   {.op = StepOp::kReadSize, .call = 1, .size = "count", .source = kCount},
                   {.op = StepOp::kSetSize, .call = 1, .size = "step", .value = 0},
                   {.op = StepOp::kLabel, .call = 1},
                   {.op = StepOp::kJumpIfZero, .call = 1, .value = ir::Size::Open(count) - done, .destination = 7},
                   {.op = StepOp::kSwap, .call = 3, .source = kNext, .target = kState},
                   {.op = StepOp::kJump, .call = 3, .destination = 3},
                   {.op = StepOp::kLabel, .call = 3},
                   {.op = StepOp::kCopy, .call = 3, .source = kState, .target = kY}};
  HONE_CHECK(package::PlanArena(program).ok());
  return program;
}

std::vector<uint8_t> ManifestWith(const package::PackageProgram& program) {
  package::ConstantSection constants;
  auto manifest = package::BuildManifest(program, "cpu", package::kStepsFormatVersion, constants);
  EXPECT_TRUE(manifest.ok()) << manifest.status();
  return manifest.ok() ? *std::move(manifest) : std::vector<uint8_t>();
}

Fault ViewSteps(const std::vector<uint8_t>& manifest, size_t units = 1) {
  runtime::ProgramView view;
  return runtime::ViewProgram({package::kStepsFormatVersion, manifest, std::vector<std::span<const uint8_t>>(units)}, 0,
                              "", &view);
}

// The fault of the program with a changed step.
std::string FaultOf(size_t index, const std::function<void(StepEntry&)>& change) {
  std::vector<uint8_t> manifest = ManifestWith(LoopProgram());
  ManifestHeader header;
  std::memcpy(&header, manifest.data(), sizeof header);
  uint8_t* const place = manifest.data() + header.steps.offset + index * sizeof(StepEntry);
  StepEntry step;
  std::memcpy(&step, place, sizeof step);
  change(step);
  std::memcpy(place, &step, sizeof step);
  return ViewSteps(manifest).text;
}

TEST(RunSteps, AValidProgramIsViewed) { EXPECT_TRUE(ViewSteps(ManifestWith(LoopProgram())).ok()); }

TEST(RunSteps, StepsThatSayNothingSensibleAreRefused) {
  const std::string nothing = "does not say what to do";
  EXPECT_THAT(FaultOf(0, [](StepEntry& s) { s.op = static_cast<StepOp>(99); }), HasSubstr(nothing));
  EXPECT_THAT(FaultOf(0, [](StepEntry& s) { s.a = kX; }), HasSubstr(nothing)) << "writes an input";
  EXPECT_THAT(FaultOf(0, [](StepEntry& s) { s.b = 7; }), HasSubstr(nothing)) << "no such tensor";
  EXPECT_THAT(FaultOf(1, [](StepEntry& s) { s.b = kX; }), HasSubstr(nothing)) << "not an integer";
  EXPECT_THAT(FaultOf(1, [](StepEntry& s) { s.a = 2; }), HasSubstr(nothing)) << "no such size";
  EXPECT_THAT(FaultOf(2, [](StepEntry& s) { s.b = 1000; }), HasSubstr(nothing)) << "no such value";
  EXPECT_THAT(FaultOf(4, [](StepEntry& s) { s.c = 9; }), HasSubstr(nothing)) << "leads nowhere";
  EXPECT_THAT(FaultOf(5, [](StepEntry& s) { s.b = kY; }), HasSubstr(nothing)) << "an output has a place of its own";
  EXPECT_THAT(FaultOf(6, [](StepEntry& s) { s.c = 9; }), HasSubstr(nothing)) << "leads nowhere";
}

TEST(RunSteps, CallsOfStepsAscend) {
  EXPECT_THAT(FaultOf(8, [](StepEntry& s) { s.call = 2; }), HasSubstr("step of the run 8 is out of order"));
  EXPECT_THAT(FaultOf(8, [](StepEntry& s) { s.call = 4; }), HasSubstr("step of the run 8 is out of order"));
}

TEST(RunSteps, MemoryIsExchangedWithinAHome) {
  package::PackageProgram program = LoopProgram();
  package::PackageUnit& other = program.units.emplace_back();
  other.kind = CodeKind::kOpenCl;
  other.target = "opencl";
  other.lanes = 1;
  program.kernels.push_back(program.kernels[0]);
  program.kernels[1].name = "on_device";
  program.kernels[1].main = {{.function = "on_device", .groups = 1, .lanes = 1, .arguments = {0, 1}}};
  program.kernel_units = {0, 1};
  package::AssignHomes(program);
  ASSERT_TRUE(package::PlanArena(program).ok());
  EXPECT_EQ(ViewSteps(ManifestWith(program), 2).text, "");
  program.tensors[kNext].home = 1;
  ASSERT_TRUE(package::PlanArena(program).ok());
  EXPECT_THAT(ViewSteps(ManifestWith(program), 2).text, HasSubstr("step of the run 5 does not say what to do"));
}

// Whether two intermediates share bytes of the arena.
bool Share(const package::PackageProgram& program, package::TensorId a, package::TensorId b) {
  const uint64_t bytes = 64 * sizeof(float), from = program.tensors[a].arena_offset,
                 to = program.tensors[b].arena_offset;
  return from < to + bytes && to < from + bytes;
}

TEST(RunSteps, WhatALoopReadsFromOutsideLastsForAllSteps) {
  const package::PackageProgram program = LoopProgram();
  EXPECT_FALSE(Share(program, kOutside, kNext)) << "the next step reads it again";
  EXPECT_FALSE(Share(program, kState, kInside));
  EXPECT_FALSE(Share(program, kState, kNext)) << "they exchange their memory";
  EXPECT_FALSE(Share(program, kNext, kInside)) << "it may be the state";
}

}  // namespace
}  // namespace hone::tests
