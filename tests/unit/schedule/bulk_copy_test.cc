// SPDX-License-Identifier: Apache-2.0
// Copies by a group, and by groups that share them, as steps: legality and unchanged results.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "base/status.h"
#include "compiler/execution/model.h"
#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/grid.h"
#include "tests/unit/space/lowered.h"

namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

// Four groups of four rows. Each group reads all of w, in steps of eight adjacent rows.
constexpr char kProduct[] = R"(workload "matmul"
input x: f32[16,40] in [-1, 1]
input w: f32[40,8] in [-1, 1]
t: f32[16,8] over i:16, j:8 = sum k:40 of x[i, k] * w[k, j]
u: f32[16,8] over a:16, b:8 = max(t[a, b], 0f32)
output u
)";
// The first `rows` rows of w are read as they are, the others as zeros.
std::string WithZeros(int rows) {
  return fmt::format(R"(workload "matmul"
input x: f32[16,40] in [-1, 1]
input w: f32[40,8] in [-1, 1]
v: f32[40,8] over r:40, c:8 = select(r < {}, w[r, c], 0f32)
t: f32[16,8] over i:16, j:8 = sum k:40 of x[i, k] * v[k, j]
output t
)",
                     rows);
}
const std::string kTiles =
    "cache_read w t\nstore_in wrt shared\nsplit a 4 mask\nbind ao group\nbind ai lane\ncompute_at t ai\n"
    "split k 8 mask\nreorder ko ki i j\ncompute_at wrt ko\n";
const std::string kFused = kTiles + "fuse wrt_0 wrt_1\n";

target::Target Hopper() { return target::ParseTarget("cuda:sm_90").value(); }
ir::Workload Read(const std::string& text) { return ir::ParseWorkload(text).value(); }

std::string Verdict(const std::string& workload, const std::string& schedule, const target::Target& target = Hopper()) {
  const auto lower = [&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(const State state, Replay(Read(workload), ParseSchedule(schedule).value()));
    return execution::Lower(state, target, "kernel", {.verify = true}).status();
  };
  const absl::Status status = lower();
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kFailedPrecondition) << status;
  return std::string(status.message());
}

absl::Status Check(const std::string& schedule) {
  return hone::tests::CheckLowered(Read(kProduct), ParseSchedule(schedule).value(), Hopper());
}

TEST(BulkCopies, MeanTheSame) {
  for (const int groups : {1, 2, 4}) {
    const std::string copy = kFused + fmt::format("copy_async wrt 64 {}\n", groups);
    EXPECT_EQ(Check(copy), absl::OkStatus()) << groups;
    for (const int buffers : {2, 3, 8}) {
      EXPECT_EQ(Check(copy + fmt::format("pipeline ko {}\n", buffers)), absl::OkStatus()) << groups << " " << buffers;
    }
  }
  // One copy for each row.
  EXPECT_EQ(Check(kTiles + "copy_async wrt 8 2\npipeline ko 2\n"), absl::OkStatus());
}

// Commit groups of one pass through the loop must not be mistaken for those of the next.
TEST(BulkCopies, MeanTheSameWhenTheLoopIsEnteredAgain) {
  const std::string twice =
      "cache_read w t\nstore_in wrt shared\nsplit a 8 mask\nsplit ai 2 mask\nbind ao group\nbind aio lane\n"
      "compute_at t aii\nsplit k 8 mask\nreorder ko ki i j\ncompute_at wrt ko\nfuse wrt_0 wrt_1\n"
      "copy_async wrt 64 2\npipeline ko 8\n";
  EXPECT_EQ(Check(twice), absl::OkStatus());
}

// The group copies w at an outer loop and lanes copy x at an inner loop, with these numbers of buffers.
std::string Nested(int outer, int inner, const std::string& copy) {
  return fmt::format(
      "cache_read x t\nstore_in xrt shared\ncache_read w t\nstore_in wrt shared\nsplit a 4 mask\nbind ao group\n"
      "bind ai lane\ncompute_at t ai\nsplit k 8 mask\nsplit ki 2 mask\nreorder ko kio kii i j\ncompute_at xrt kio\n"
      "compute_at wrt ko\nfuse wrt_0 wrt_1\n{}fuse xrt_0 xrt_1\nbind xrt_0_xrt_1 lane\ncopy_async xrt 1\n"
      "pipeline ko {}\npipeline kio {}\n",
      copy, outer, inner);
}

TEST(BulkCopies, NestedPipelinesLimitCommitGroupsInFlight) {
  const std::string by_group = "copy_async wrt 64\n", by_lanes = "bind wrt_0_wrt_1 lane\ncopy_async wrt 1\n";
  EXPECT_THAT(Verdict(kProduct, Nested(5, 6, by_group)),
              HasSubstr("the pipelines of loops ko and kio have 9 commit groups in flight; bulk copies allow up to 8"));
  EXPECT_EQ(Check(Nested(5, 5, by_group)), absl::OkStatus());
  EXPECT_EQ(Check(Nested(5, 6, by_lanes)), absl::OkStatus());
}

// The barriers that report finished copies are reused. So groups start the next copies only after all lanes know of the
// earlier ones, whatever branches they take.
TEST(BulkCopies, ABarrierSeparatesAWaitFromTheNextCopies) {
  const auto barriers = [](const std::string& copy) {
    const std::string fill = "{ if lane.id == 0 { copy " + copy;
    const auto func = ir::ParseFunc(
        "func f(x: f32[64], y: f32[16]) grid 4 lanes 4 { alloc s: f32[8] shared { alloc r: f32[8] shared {"
        " block a " +
        fill + " s[0] = x[0] } } commit wait 0 block b " + fill +
        " r[0] = x[8] } } commit wait 0"
        " y[group.id * 4 + lane.id] = s[0] + r[0] } } }");
    EXPECT_TRUE(func.ok()) << func.status();
    const std::string text = ir::Print(passes::InsertBarriers(func->body, {}));
    int count = 0;
    for (size_t at = text.find("barrier"); at != std::string::npos; at = text.find("barrier", at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(barriers("4"), 1);
  EXPECT_EQ(barriers("8"), 2);
  EXPECT_EQ(barriers("8 group 2"), 2);
}

TEST(BulkCopies, TakeSharedMemoryForMbarriers) {
  const State state = Replay(Read(kProduct), ParseSchedule(kFused + "copy_async wrt 64\n").value()).value();
  EXPECT_EQ(Grids(state)[0].shared_bytes, 8 * 8 * 4 + ir::kMbarriersBytes);
}

TEST(BulkCopies, TextReadsBack) {
  const std::string text = "copy_async wrt 64\ncopy_async wrt 64 2\n";
  EXPECT_EQ(Print(ParseSchedule(text).value()), text);
  EXPECT_FALSE(ParseSchedule("copy_async wrt 64 two").ok());
}

struct Illegal {
  std::string schedule, message;
};

void PrintTo(const Illegal& c, std::ostream* out) { *out << c.schedule; }

class IllegalBulkCopy : public ::testing::TestWithParam<Illegal> {};

TEST_P(IllegalBulkCopy, SaysWhy) { EXPECT_THAT(Verdict(kProduct, GetParam().schedule), HasSubstr(GetParam().message)); }

INSTANTIATE_TEST_SUITE_P(
    Steps, IllegalBulkCopy,
    ::testing::Values(
        Illegal{kTiles + "copy_async wrt 8 4",
                "one copy of 8 elements has 32 bytes; a copy by one lane must have 4, 8, 16 bytes, a bulk copy a "
                "multiple of 16 bytes"},
        Illegal{kTiles + "split wrt_1 4 mask\ncopy_async wrt 4 2", "one copy of 4 elements has 16 bytes"},
        Illegal{kFused + "copy_async wrt 64 0", "one copy of 64 elements has 256 bytes"},
        Illegal{kTiles + "bind wrt_0 lane\ncopy_async wrt 8 2",
                "loops of stage wrt are bound to lanes; a bulk copy is issued by one lane"},
        Illegal{kTiles + "reorder wrt_1 wrt_0\ncopy_async wrt 8 2", "are not contiguous"},
        Illegal{kTiles + "copy_async wrt 8 2\nbind wrt_0 lane", "must be issued by the first lane alone"},
        Illegal{
            "cache_read w t\nstore_in wrt swizzled\n" + kFused.substr(kFused.find("split a")) + "copy_async wrt 64 2",
            "stage wrt is swizzled; a bulk copy cannot write swizzled memory"},
        // Groups also divide the columns, so each group has columns of its own.
        Illegal{"cache_read w t\nstore_in wrt shared\nsplit a 4 mask\nsplit b 4 mask\nreorder ao bo ai bi\n"
                "bind ao group\nbind bo group\nbind ai lane\ncompute_at t ai\nsplit k 8 mask\nreorder ko ki i j\n"
                "compute_at wrt ko\nsplit wrt_0 2 mask\nfuse wrt_0i wrt_1\ncopy_async wrt 8 2",
                "are not contiguous"},
        Illegal{"cache_read x t\nstore_in xrt shared\nsplit a 4 mask\nbind ao group\nbind ai lane\ncompute_at t ao\n"
                "compute_at xrt i\ncopy_async xrt 40 2",
                "the 2 groups that share a copy to 'xrt' do not copy the same elements"}));

TEST(BulkCopies, MoveEverything) {
  const auto tiles = [](const std::string& copy) {
    return "store_in v shared\nsplit i 4 mask\nbind io group\nsplit k 8 mask\nreorder io ko ki ii j\n"
           "compute_at v ko\nfuse r c\n" +
           copy;
  };
  EXPECT_THAT(Verdict(WithZeros(16), tiles("copy_async v 64 2")),
              HasSubstr("stage v is zero where a condition does not hold; a bulk copy cannot have a condition"));
}

TEST(BulkCopies, ATargetWithoutThemRefusesThem) {
  const std::string copy = kFused + "copy_async wrt 64 2";
  EXPECT_EQ(Verdict(kProduct, copy), "");
  EXPECT_THAT(Verdict(kProduct, copy, target::ParseTarget("cuda:sm_89").value()),
              HasSubstr("stage wrt uses bulk copies, which the target does not have"));
  target::Target few = Hopper();
  few.hierarchy.sharing_groups = 1;
  EXPECT_THAT(Verdict(kProduct, copy, few), HasSubstr("its copies are shared by 2 groups; the target allows up to 1"));
  EXPECT_EQ(Verdict(kProduct, kFused + "copy_async wrt 64", few), "");
}

}  // namespace
}  // namespace hone::schedule
