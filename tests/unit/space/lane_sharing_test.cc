// SPDX-License-Identifier: Apache-2.0
// How lanes share reductions other than rows, and blocks of transposed loads. The interpreter checks values and finds
// races.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/space/space.h"
#include "tests/unit/space/lowered.h"

namespace hone::space {
namespace {

using ::testing::HasSubstr;

struct Shared {
  const char* name;
  std::string text;
  const char* has;  // the part of its schedule that shows how lanes share it
};
std::ostream& operator<<(std::ostream& out, const Shared& shared) { return out << shared.name; }

// matrix: the declaration of the matrix. place: the indices of its elements.
std::string VectorProduct(const char* matrix, const char* place) {
  return fmt::format(R"(workload "matmul"
input x: f32[1,300] in [-1, 1]
{} in [-1, 1]
const b: f32[40] in [-1, 1]
t: f32[1,40] over i:1, j:40 = sum k:300 of x[i, k] * w[{}]
u: f32[1,40] over ui:1, uj:40 = max(t[ui, uj] + b[uj], 0.0f32)
output u
)",
                     matrix, place);
}

std::string MeanOfRows(int rows, int columns) {
  return fmt::format(R"(workload "reduce"
input x: f32[2,{0},{1}] in [-1, 1]
t: f32[2,{1}] over i:2, j:{1} = sum k:{0} of x[i, k, j]
u: f32[2,{1}] over ui:2, uj:{1} = t[ui, uj] * {2}f32
output u
)",
                     rows, columns, 1.0 / rows);
}

// The columns are not the last axis before the reduction, and one axis has one element.
constexpr char kPlanesOfColumns[] = R"(workload "reduce"
input x: f32[3,7,11,1,9] in [-1, 1]
t: f32[3,1,9] over n:3, i:1, c:9 = max h:7, v:11 of x[n, h, v, i, c]
output t
)";

std::string SumOfAll(int elements) {
  return fmt::format(R"(workload "reduce"
input x: f32[{0}] in [0, 1]
t: f32[1] over j:1 = sum k:{0} of x[k]
u: f32[1] over uj:1 = sqrt(t[uj])
output u
)",
                     elements);
}

std::string LongNorm(int columns) {
  return fmt::format(R"(workload "layer_norm"
input x: f32[2,{0}] in [-1, 1]
s: f32[2,1] over a0:2, a1:1 = sum a2:{0} of x[a0, a2]
m: f32[2,1] over b0:2, b1:1 = s[b0, b1] * {1}f32
d: f32[2,{0}] over c0:2, c1:{0} = x[c0, c1] - m[c0, 0]
q: f32[2,1] over d0:2, d1:1 = sum d2:{0} of d[d0, d2] * d[d0, d2]
o: f32[2,{0}] over e0:2, e1:{0} = d[e0, e1] / sqrt(q[e0, 0] * {1}f32 + 0.00001f32)
output o
)",
                     columns, 1.0 / columns);
}

std::string Turned(const char* type, int rows, int columns) {
  return fmt::format(R"(workload "transpose"
input x: {0}[3,{1},{2}] in [-1, 1]
input y: {0}[3,{2},{1}] in [-1, 1]
t: {0}[3,{2},{1}] over b:3, i:{2}, j:{1} = max(x[b, j, i], y[b, i, j])
output t
)",
                     type, rows, columns);
}

std::string DepthwiseFirst(int channels, int size) {
  return fmt::format(R"(workload "depthwise_conv2d"
input x: f32[1,{0},{1},{1}] in [-1, 1]
const w: f32[{0},1,3,3] in [-1, 1]
p: f32[1,{0},{2},{2}] over p0:1, p1:{0}, p2:{2}, p3:{2} = select(p2 >= 1 && p2 <= {1} && p3 >= 1 && p3 <= {1},
  x[p0, p1, p2 - 1, p3 - 1], 0.0f32)
t: f32[1,{0},{1},{1}] over n:1, c:{0}, i:{1}, j:{1} = sum r:3, s:3 of p[n, c, i + r, j + s] * w[c, 0, r, s]
output t
)",
                     channels, size, size + 2);
}

class LaneSharing : public ::testing::TestWithParam<Shared> {
 protected:
  static target::Target Gpu() { return target::ParseTarget("cuda:sm_75").value(); }

  // Returns the schedule of these decisions, after checking that it computes the right values; "" if there is none.
  static std::string Scheduled(const target::Target& target, Chooser& chooser) {
    const ir::Workload workload = ir::ParseWorkload(GetParam().text).value();
    const auto candidate = Build(workload, target, ApplicableEntries(workload, target), chooser);
    if (!candidate.ok()) {
      EXPECT_EQ(candidate.status().code(), absl::StatusCode::kFailedPrecondition) << candidate.status();
      return "";
    }
    const std::string steps = schedule::Print(candidate->schedule);
    const absl::Status status = tests::CheckLowered(workload, candidate->schedule, target);
    if (status.code() == absl::StatusCode::kFailedPrecondition) return "";
    EXPECT_EQ(status, absl::OkStatus()) << Print(candidate->decisions) << "\n" << steps;
    return steps;
  }
};

TEST_P(LaneSharing, TheDefaultIsCorrectAndSharesAsMemoryLies) {
  Chooser chooser;
  EXPECT_THAT(Scheduled(Gpu(), chooser), HasSubstr(GetParam().has));
}

TEST_P(LaneSharing, RandomCandidatesAreCorrect) {
  Random random(29);
  int built = 0;
  for (int i = 0; i < 16; ++i) {
    Chooser chooser(nullptr, &random);
    built += Scheduled(Gpu(), chooser).empty() ? 0 : 1;
  }
  EXPECT_GE(built, 8) << "most random decisions should lead somewhere";
}

TEST_P(LaneSharing, WorksWithoutShuffles) {
  target::Target target = Gpu();
  target.hierarchy.shuffle_lanes = 0;
  Chooser chooser;
  EXPECT_NE(Scheduled(target, chooser), "");
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, LaneSharing,
    ::testing::Values(Shared{"matrix_of_columns", VectorProduct("const w: f32[300,40]", "k, j"), "pack w t 1 0\n"},
                      Shared{"matrix_of_rows", VectorProduct("input w: f32[40,300]", "j, k"),
                             "bind kyxff lane\nbind kyy lane\n"},
                      Shared{"columns", MeanOfRows(70, 40), "bind kyf lane\nbind jf lane\n"},
                      Shared{"columns_odd", MeanOfRows(67, 45), "bind kyf lane\nbind jf lane\n"},
                      Shared{"columns_long", MeanOfRows(5000, 16), " outer first\ncache_write tf\n"},
                      Shared{"columns_of_planes", kPlanesOfColumns, "bind vcyf lane\nbind ccf lane\n"},
                      Shared{"all", SumOfAll(70'000), " outer\ncache_write tf\n"},
                      Shared{"norm_long", LongNorm(70'000), "inline d\n"},
                      Shared{"depthwise_first", DepthwiseFirst(5, 11), "bind n_c_i_ji lane\ncompute_at tc n_c_i_ji\n"},
                      Shared{"turned", Turned("f32", 16, 32), "bind jio lane\nbind iio lane\n"},
                      Shared{"turned_odd", Turned("f32", 25, 77), "bind jio lane\nbind iio lane\n"},
                      Shared{"turned_halves", Turned("i16", 40, 24), "vectorize jii\n"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone::space
