// SPDX-License-Identifier: Apache-2.0
// The preferred lane tile of every workload can be lowered: it fits shared memory, and instructions find operands in
// the layout that they require.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/execution/model.h"
#include "compiler/passes/pipeline.h"
#include "compiler/space/space.h"
#include "tests/unit/space/lowered.h"

namespace hone::space {
namespace {

using ::testing::HasSubstr;

struct ImageConvolution {
  bool channels_last;
  int batch, size, in, out, kernel, stride;
  const char* type;
};

std::string CastTo(const std::string& type, const std::string& value) {
  return type == "f32" ? value : fmt::format("{}({})", type, value);
}

std::string TextOfConvolution(const ImageConvolution& c) {
  const int pad = c.kernel / 2, padded = c.size + 2 * pad, size = (padded - c.kernel) / c.stride + 1;
  const auto dims = [&](const auto& channel, const auto& row, const auto& column) {
    return c.channels_last ? fmt::format("{}, {}, {}", row, column, channel)
                           : fmt::format("{}, {}, {}", channel, row, column);
  };
  const auto axes = [&](std::string_view name, int channels, int extent) {
    return dims(fmt::format("{}c:{}", name, channels), fmt::format("{}h:{}", name, extent),
                fmt::format("{}v:{}", name, extent));
  };
  const std::string type = c.type;
  const auto wide = [&](const std::string& load) { return type == "f32" ? load : "f32(" + load + ")"; };
  std::string text = fmt::format("workload \"conv2d\"\ninput x: {0}[{1}, {2}] in [-1, 1]\n", type, c.batch,
                                 dims(c.in, c.size, c.size));
  text += fmt::format("const w: {0}[{1}, {2}, {3}, {3}] in [-1, 1]\n", type, c.out, c.in, c.kernel);
  if (pad > 0) {
    text += fmt::format(
        "p: {0}[{1}, {2}] over pn:{1}, {3} = select(ph >= {4} && ph < {5} && pv >= {4} && pv < {5}, x[pn, {6}], "
        "0{0})\n",
        type, c.batch, dims(c.in, padded, padded), axes("p", c.in, padded), pad, c.size + pad,
        dims("pc", fmt::format("ph - {}", pad), fmt::format("pv - {}", pad)));
  }
  text += fmt::format("t: f32[{0}, {1}] over n:{0}, {2} = sum ci:{3}, r:{4}, s:{4} of ", c.batch,
                      dims(c.out, size, size), axes("o", c.out, size), c.in, c.kernel);
  const std::string load =
      fmt::format("{}[n, {}]", pad > 0 ? "p" : "x",
                  dims("ci", fmt::format("oh * {} + r", c.stride), fmt::format("ov * {} + s", c.stride)));
  text += wide(load) + " * " + wide("w[oc, ci, r, s]") + "\n";
  return text + fmt::format("u: {0}[{1}, {2}] over un:{1}, {3} = {4}\noutput u\n", type, c.batch,
                            dims(c.out, size, size), axes("u", c.out, size),
                            CastTo(type, "max(t[un, " + dims("uc", "uh", "uv") + "], 0f32)"));
}

// A transposed convolution with a 4x4 window and stride 2: every output uses every second element of the window.
std::string TransposedConvolution(int size, int in, int out) {
  return fmt::format(R"(workload "conv_transpose"
input x: f32[1,{0},{0},{1}] in [-1, 1]
const w: f32[2,2,2,2,{1},{2}] in [-1, 1]
p: f32[1,{3},{3},{1}] over p0:1, p1:{3}, p2:{3}, p3:{1} = select(p1 >= 1 && p1 < {4} && p2 >= 1 && p2 < {4},
  x[p0, p1 - 1, p2 - 1, p3], 0f32)
t: f32[1,{0},2,{0},2,{2}] over n:1, h:{0}, a:2, v:{0}, e:2, c:{2} = sum k:{1}, s:2, r:2 of
  p[n, h + (a + 1) // 2 + 1 - s, v + (e + 1) // 2 + 1 - r, k] * w[a, e, s, r, k, c]
output t
)",
                     size, in, out, size + 2, size + 1);
}

struct RoomCase {
  const char* name;
  std::string text;
};
std::ostream& operator<<(std::ostream& out, const RoomCase& c) { return out << c.name; }

const RoomCase kRoomCases[] = {
    {"pointwise_halves", TextOfConvolution({true, 1, 14, 64, 64, 1, 1, "f16"})},
    {"strided_pointwise_halves", TextOfConvolution({true, 8, 56, 64, 64, 1, 2, "f16"})},
    {"pointwise_halves_of_many", TextOfConvolution({true, 1, 224, 256, 255, 1, 1, "f16"})},
    {"first_layer", TextOfConvolution({true, 1, 224, 3, 16, 7, 1, "f32"})},
    {"channels_first", TextOfConvolution({false, 1, 14, 64, 64, 3, 1, "f32"})},
    {"channels_first_strided", TextOfConvolution({false, 1, 27, 64, 64, 3, 2, "f32"})},
    {"channels_first_pointwise", TextOfConvolution({false, 1, 56, 256, 256, 1, 1, "f32"})},
    {"columns_apart", TextOfConvolution({false, 1, 224, 256, 256, 1, 2, "f16"})},
    {"rows_apart", TextOfConvolution({true, 1, 256, 512, 64, 1, 2, "f32"})},
    {"rows_of_an_image", TextOfConvolution({true, 16, 64, 32, 512, 1, 1, "f16"})},
    {"kernel_longer_than_a_part", TextOfConvolution({true, 1, 13, 32, 512, 9, 1, "f32"})},
    {"transposed", TransposedConvolution(7, 64, 64)},
    {"transposed_odd", TransposedConvolution(27, 96, 48)},
};

// Targets for every architecture, and with TF32 for those that have it.
std::vector<target::Target> CudaTargets() {
  std::vector<target::Target> targets;
  for (const std::string_view word : target::kCudaEntry.words) {
    if (word == target::kCudaEntry.words.front()) continue;  // "cuda" is the device of this machine
    targets.push_back(target::ParseTarget(word).value());
    auto rounding = target::ParseTarget(fmt::format("{} -tf32", word));
    if (rounding.ok()) targets.push_back(*std::move(rounding));
  }
  return targets;
}

class LaneRoom : public ::testing::TestWithParam<RoomCase> {};

TEST_P(LaneRoom, PreferredDecisionsMakeTheDefault) {
  const absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(GetParam().text);
  ASSERT_TRUE(workload.ok()) << workload.status() << GetParam().text;
  const std::vector<target::Target> targets = CudaTargets();
  ASSERT_EQ(targets.size(), 19u);
  for (const target::Target& target : targets) {
    const std::vector<const Entry*> fitting = ApplicableEntries(*workload, target);
    const Decisions given = {{std::string(kSpaceDecision), fitting[0]->id, {}}};
    Chooser chooser(&given);
    const auto candidate = Build(*workload, target, fitting, chooser);
    ASSERT_TRUE(candidate.ok()) << target::Print(target) << ": " << candidate.status();
    EXPECT_EQ(execution::Lower(candidate->state, target, "k").status(), absl::OkStatus())
        << target::Print(target) << "\n"
        << schedule::Print(candidate->schedule);
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, LaneRoom, ::testing::ValuesIn(kRoomCases),
                         [](const auto& test) { return test.param.name; });

struct RoomOfInstruction {
  const char* instruction;
  const char* target;
  std::string text;
};

// Workloads like those above, small enough for the interpreter.
TEST(LaneRoomOfInstructions, IsFilledRight) {
  const RoomOfInstruction cases[] = {
      {"mma_f16", "cuda:sm_80", TextOfConvolution({true, 1, 8, 64, 16, 1, 1, "f16"})},
      {"mma_f16", "cuda:sm_80", TextOfConvolution({true, 1, 9, 32, 16, 1, 2, "f16"})},
      {"mma_tf32", "cuda:sm_80 -tf32", TextOfConvolution({false, 1, 8, 32, 16, 1, 1, "f32"})},
      {"mma_tf32", "cuda:sm_80 -tf32", TransposedConvolution(7, 16, 16)},
      {"wgmma_f16", "cuda:sm_90a", TextOfConvolution({true, 1, 64, 16, 32, 1, 1, "f16"})},
  };
  for (const auto& [name, text, workload_text] : cases) {
    SCOPED_TRACE(fmt::format("{} {}\n{}", name, text, workload_text));
    const ir::Workload workload = ir::ParseWorkload(workload_text).value();
    const target::Target target = target::ParseTarget(text).value();
    const auto instruction = static_cast<int64_t>(*ir::ParseTensorInstruction(name));
    const Decisions given = {{"space", 3, {}}, {"instruction", instruction + 1, {}}};
    Chooser chooser(&given);
    const auto candidate = Build(workload, target, ApplicableEntries(workload, target), chooser);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    EXPECT_THAT(schedule::Print(candidate->schedule), HasSubstr(fmt::format(" {}\n", name)));
    EXPECT_EQ(tests::CheckLowered(workload, candidate->schedule, target, {1e-3, 1e-3}), absl::OkStatus())
        << schedule::Print(candidate->schedule);
  }
}

// The loaded indices do not vary along the steps, so they need no padding.
TEST(LaneRoomOfInstructions, AProductMayReadThroughAnIndex) {
  const ir::Workload workload = ir::ParseWorkload(R"(workload "matmul"
input g: i64[64] in [0, 127]
input x: f16[128,64] in [-1, 1]
const w: f16[64,64] in [-1, 1]
h: f16[64,64] over a:64, b:64 = x[g[a], b]
t: f32[64,64] over i:64, j:64 = sum k:64 of f32(h[i, k]) * f32(w[k, j])
output t
)")
                                    .value();
  const target::Target target = target::ParseTarget("cuda:sm_80").value();
  const auto instruction = static_cast<int64_t>(*ir::ParseTensorInstruction("mma_f16"));
  const Decisions given = {{"space", 3, {}}, {"instruction", instruction + 1, {}}};
  Chooser chooser(&given);
  const auto candidate = Build(workload, target, ApplicableEntries(workload, target), chooser);
  if (!candidate.ok()) return;  // an error is allowed, wrong values are not
  EXPECT_EQ(tests::CheckLowered(workload, candidate->schedule, target, {1e-3, 1e-3}), absl::OkStatus());
}

// The target's warps are wider than on any device. A warp must be a legal group all the same.
TEST(LaneRoomOfGroups, LanesThatRunInStepAlwaysHaveRoom) {
  const ir::Workload workload = ir::ParseWorkload(R"(workload "matmul"
input x: f32[256,256] in [-1, 1]
const w: f32[256,256] in [-1, 1]
t: f32[256,256] over i:256, j:256 = sum k:256 of x[i, k] * w[k, j]
output t
)")
                                    .value();
  const auto target = target::ParseTarget("opencl -units=8 -lanes=2048 -shared=32768 -width=2048");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_TRUE(Default(workload, *target).ok());
}

}  // namespace
}  // namespace hone::space
