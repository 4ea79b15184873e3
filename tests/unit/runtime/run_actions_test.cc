// SPDX-License-Identifier: Apache-2.0
// Actions of a run in a package: what the checks of a manifest refuse, and how long tensors live that a loop uses.
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

using package::ActionEntry;
using package::ActionOp;
using package::ManifestHeader;
using package::PackageTensor;
using package::TensorKind;
using runtime::Fault;
using ::testing::HasSubstr;

enum : package::TensorId { kCount, kX, kOutside, kState, kNext, kInside, kY };

PackageTensor Tensor(std::string name, DType dtype, std::vector<int64_t> shape, TensorKind kind) {
  return {.name = std::move(name), .dtype = dtype, .shape = std::move(shape), .kind = kind, .data = {}};
}

// outside = k(x); state = x; for (i = 0; i < count; ++i) { inside = k(outside); next = k(inside); swap(state,
// next); } y = state.
package::PackageProgram LoopProgram() {
  const auto f32 = [](std::string name, TensorKind kind) {
    return Tensor(std::move(name), DType::kFloat32, {64}, kind);
  };
  package::PackageProgram program;
  program.units[0].kind = *runtime::HostCode();
  const ir::OpenSize iteration = {"iteration", 0, 9}, count = {"count", 0, 9};
  program.sizes = {iteration, count};
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
  const ir::Size done = ir::Size::Open(iteration);
  program.actions = {{.op = ActionOp::kCopy, .call = 1, .source = kX, .target = kState},
                     {.op = ActionOp::kReadSize, .call = 1, .size = "count", .source = kCount},
                     {.op = ActionOp::kSetSize, .call = 1, .size = "iteration", .value = 0},
                     {.op = ActionOp::kLabel, .call = 1},
                     {.op = ActionOp::kJumpIfZero, .call = 1, .value = ir::Size::Open(count) - done, .destination = 7},
                     {.op = ActionOp::kSwap, .call = 3, .source = kNext, .target = kState},
                     {.op = ActionOp::kJump, .call = 3, .destination = 3},
                     {.op = ActionOp::kLabel, .call = 3},
                     {.op = ActionOp::kCopy, .call = 3, .source = kState, .target = kY}};
  HONE_CHECK(package::PlanArena(program).ok());
  return program;
}

std::vector<uint8_t> ManifestWith(const package::PackageProgram& program) {
  package::ConstantSection constants;
  auto manifest = package::BuildManifest(program, "cpu", package::kActionsFormatVersion, constants);
  EXPECT_TRUE(manifest.ok()) << manifest.status();
  return manifest.ok() ? *std::move(manifest) : std::vector<uint8_t>();
}

Fault ViewActions(const std::vector<uint8_t>& manifest, size_t units = 1) {
  runtime::ProgramView view;
  return runtime::ViewProgram({package::kActionsFormatVersion, manifest, std::vector<std::span<const uint8_t>>(units)},
                              0, "", &view);
}

// The fault of the program with a changed action.
std::string FaultOf(size_t index, const std::function<void(ActionEntry&)>& change) {
  std::vector<uint8_t> manifest = ManifestWith(LoopProgram());
  ManifestHeader header;
  std::memcpy(&header, manifest.data(), sizeof header);
  uint8_t* const place = manifest.data() + header.actions.offset + index * sizeof(ActionEntry);
  ActionEntry action;
  std::memcpy(&action, place, sizeof action);
  change(action);
  std::memcpy(place, &action, sizeof action);
  return ViewActions(manifest).text;
}

TEST(RunActions, AValidProgramIsViewed) { EXPECT_TRUE(ViewActions(ManifestWith(LoopProgram())).ok()); }

TEST(RunActions, ActionsThatSayNothingSensibleAreRefused) {
  const std::string nothing = "does not say what to do";
  EXPECT_THAT(FaultOf(0, [](ActionEntry& s) { s.op = static_cast<ActionOp>(99); }), HasSubstr(nothing));
  EXPECT_THAT(FaultOf(0, [](ActionEntry& s) { s.a = kX; }), HasSubstr(nothing)) << "writes an input";
  EXPECT_THAT(FaultOf(0, [](ActionEntry& s) { s.b = 7; }), HasSubstr(nothing)) << "no such tensor";
  EXPECT_THAT(FaultOf(1, [](ActionEntry& s) { s.b = kX; }), HasSubstr(nothing)) << "not an integer";
  EXPECT_THAT(FaultOf(1, [](ActionEntry& s) { s.a = 2; }), HasSubstr(nothing)) << "no such size";
  EXPECT_THAT(FaultOf(2, [](ActionEntry& s) { s.b = 1000; }), HasSubstr(nothing)) << "no such value";
  EXPECT_THAT(FaultOf(4, [](ActionEntry& s) { s.c = 9; }), HasSubstr(nothing)) << "leads nowhere";
  EXPECT_THAT(FaultOf(5, [](ActionEntry& s) { s.b = kY; }), HasSubstr(nothing)) << "an output has a place of its own";
  EXPECT_THAT(FaultOf(6, [](ActionEntry& s) { s.c = 9; }), HasSubstr(nothing)) << "leads nowhere";
}

TEST(RunActions, CallsOfActionsAscend) {
  EXPECT_THAT(FaultOf(8, [](ActionEntry& s) { s.call = 2; }), HasSubstr("action of the run 8 is out of order"));
  EXPECT_THAT(FaultOf(8, [](ActionEntry& s) { s.call = 4; }), HasSubstr("action of the run 8 is out of order"));
}

TEST(RunActions, MemoryIsExchangedWithinAHome) {
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
  EXPECT_EQ(ViewActions(ManifestWith(program), 2).text, "");
  program.tensors.push_back(program.tensors[kNext]);
  program.tensors.back().home = 1;
  program.actions[5].source = static_cast<package::TensorId>(program.tensors.size() - 1);
  ASSERT_TRUE(package::PlanArena(program).ok());
  EXPECT_THAT(ViewActions(ManifestWith(program), 2).text, HasSubstr("action of the run 5 does not say what to do"));
}

// Whether two intermediates share bytes of the arena.
bool Share(const package::PackageProgram& program, package::TensorId a, package::TensorId b) {
  const uint64_t bytes = 64 * sizeof(float), from = program.tensors[a].arena_offset,
                 to = program.tensors[b].arena_offset;
  return from < to + bytes && to < from + bytes;
}

TEST(RunActions, WhatALoopReadsFromOutsideLastsForAllIterations) {
  const package::PackageProgram program = LoopProgram();
  EXPECT_FALSE(Share(program, kOutside, kNext)) << "the next iteration reads it again";
  EXPECT_FALSE(Share(program, kState, kInside));
  EXPECT_FALSE(Share(program, kState, kNext)) << "they exchange their memory";
  EXPECT_FALSE(Share(program, kNext, kInside)) << "it may be the state";
}

}  // namespace
}  // namespace hone::tests
