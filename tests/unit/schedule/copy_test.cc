// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies and pipelines as steps: legality, unchanged results, and that the interpreter finds planted bugs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/execution/model.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/grid.h"
#include "tests/unit/space/lowered.h"
#include "tests/unit/space/pipelines.h"

namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

using tests::kByFour;
using tests::kByOne;
using tests::kConv;
using tests::kConvTiles;
using tests::kEven;
using tests::kOdd;
using tests::kTiles;

target::Target Lanes() {
  target::Target target = target::TypicalTarget(target::Kind::kOpenCl);
  target.hierarchy.max_lanes = 64;
  return target;
}

ir::Workload Read(const char* text) { return ir::ParseWorkload(text).value(); }
Schedule Parse(std::string_view text) { return ParseSchedule(text).value(); }

absl::StatusOr<passes::Module> Lower(const ir::Workload& workload, const std::string& schedule,
                                     const target::Target& target = Lanes()) {
  HONE_ASSIGN_OR_RETURN(const State state, Replay(workload, Parse(schedule)));
  return execution::Lower(state, target, "kernel", {.verify = true});
}

absl::Status Check(const char* workload, const std::string& schedule) {
  return hone::tests::CheckLowered(Read(workload), Parse(schedule), Lanes());
}

int Count(const ir::Stmt& s, const std::function<bool(const ir::Stmt&)>& is) {
  int count = is(s) ? 1 : 0;
  ir::ForEachChild(s, [&](const ir::Stmt& child) { count += Count(child, is); }, [](const ir::Expr&) {});
  return count;
}
bool IsBarrier(const ir::Stmt& s) { return s.As<ir::Barrier>() != nullptr; }
bool IsWait(const ir::Stmt& s) { return s.As<ir::Wait>() != nullptr; }
bool IsCopy(const ir::Stmt& s) { return s.As<ir::Copy>() != nullptr; }

TEST(CopyAsync, MeansTheSame) {
  EXPECT_EQ(Check(kEven, kByFour), absl::OkStatus());
  EXPECT_EQ(Check(kEven, kByOne), absl::OkStatus());
  EXPECT_EQ(Check(kOdd, kByOne), absl::OkStatus());
  EXPECT_EQ(Check(kConv, kConvTiles), absl::OkStatus());
}

TEST(Pipeline, MeansTheSameWithAnyNumberOfBuffers) {
  // The reduction has 6, 3 and 4 steps, so with 8 buffers some copies of the prologue have nothing to do.
  for (const int buffers : {2, 3, 4, 8}) {
    const std::string suffix = " " + std::to_string(buffers) + "\n";
    EXPECT_EQ(Check(kEven, kByFour + "pipeline ko" + suffix), absl::OkStatus()) << buffers;
    EXPECT_EQ(Check(kOdd, kByOne + "pipeline ko" + suffix), absl::OkStatus()) << buffers;
    EXPECT_EQ(Check(kConv, kConvTiles + "pipeline rco" + suffix), absl::OkStatus()) << buffers;
  }
}

TEST(Pipeline, MayContainStagesFilledWithoutCopies) {
  // w is copied asynchronously; x is filled by loads and stores.
  const std::string mixed = kTiles +
                            "fuse xrt_0 xrt_1\nbind xrt_0_xrt_1 lane\n"
                            "fuse wrt_0 wrt_1\nbind wrt_0_wrt_1 lane\ncopy_async wrt 1\npipeline ko 2\n";
  EXPECT_EQ(Check(kEven, mixed), absl::OkStatus());
  EXPECT_EQ(Check(kOdd, mixed), absl::OkStatus());
}

// The loops as the step builds them, before any pass.
TEST(Pipeline, IssuesCopiesAheadOfTheIterationThatReadsThem) {
  const ir::Workload workload = Read(R"(workload "row"
input x: f32[8,16] in [-1, 1]
t: f32[8] over i:8 = sum k:16 of x[i, k]
u: f32[8] over a:8 = t[a]
output u
)");
  const State state =
      Replay(workload, Parse("cache_read x t\nstore_in xrt shared\nbind a lane\ncompute_at t a\nsplit k 4 "
                             "mask\ncompute_at xrt ko\nbind xrt_0 lane\ncopy_async xrt 4\n"
                             "pipeline ko 3\n"))
          .value();
  const auto loops = passes::BuildLoops(state, Lanes(), "kernel");
  ASSERT_TRUE(loops.ok()) << loops.status();
  EXPECT_EQ(ir::Print(loops->main), R"(func kernel(x: f32[8,16], u: f32[8]) {
  block u {
    lane a in 8 {
      alloc t: f32[1] local {
        block t {
          for i in 1 {
            t[a - a] = 0.0f32
            alloc xrt: f32[3,8,4] shared {
              block xrt {
                lane xrt_0 in 8 {
                  if 0 < 4 {
                    copy 4 xrt[0 %% 3, xrt_0, 0] = x[xrt_0, 0 * 4]
                  }
                }
              }
              commit
              block xrt {
                lane xrt_0 in 8 {
                  if 1 < 4 {
                    copy 4 xrt[1 %% 3, xrt_0, 0] = x[xrt_0, 1 * 4]
                  }
                }
              }
              commit
              for ko in 4 {
                wait 1
                block xrt {
                  lane xrt_0 in 8 {
                    if ko + 2 < 4 {
                      copy 4 xrt[(ko + 2) %% 3, xrt_0, 0] = x[xrt_0, (ko + 2) * 4]
                    }
                  }
                }
                commit
                for ki in 4 {
                  t[a - a] = t[a - a] + xrt[ko %% 3, a - 0, ko * 4 + ki - ko * 4]
                }
              }
            }
          }
        }
        u[a] = t[a - a]
      }
    }
  }
}
)");
}

TEST(Pipeline, HasOneBarrierAnIteration) {
  const auto module = Lower(Read(kEven), kByFour + "pipeline ko 3\n");
  ASSERT_TRUE(module.ok()) << module.status();
  const ir::Stmt& body = module->main[0].body;
  EXPECT_EQ(Count(body, IsBarrier), 1) << ir::Print(module->main[0]);
  EXPECT_EQ(Count(body, IsWait), 1);
  EXPECT_EQ(Count(body, IsCopy), 6);  // two in the prologue and one in the loop, for each operand
  const auto plain = Lower(Read(kEven), kByFour);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(Count(plain->main[0].body, IsBarrier), 2) << ir::Print(plain->main[0]);
}

TEST(Pipeline, TakesSharedMemoryForEveryBuffer) {
  const ir::Workload workload = Read(kEven);
  const State once = Replay(workload, Parse(kByFour)).value();
  const State thrice = Replay(workload, Parse(kByFour + "pipeline ko 3\n")).value();
  EXPECT_EQ(Grids(once)[0].shared_bytes, 4 * (8 * 8 + 4 * 8));
  EXPECT_EQ(Grids(thrice)[0].shared_bytes, 3 * Grids(once)[0].shared_bytes);
}

// Changes the launch with `plant` and returns the interpreter's verdict.
std::string AfterPlanting(const ir::Func& launch, const std::function<ir::Stmt(const ir::Stmt&)>& plant) {
  const std::function<ir::Stmt(const ir::Stmt&)> rewrite = [&](const ir::Stmt& s) {
    const ir::Stmt planted = plant(s);
    if (!planted.SameHandle(s)) return planted;
    return ir::MapChildren(s, rewrite, [](const ir::Expr& e) { return e; });
  };
  ir::Func func = launch;
  func.body = rewrite(func.body);
  std::vector<ir::Bytes> memory;
  for (const ir::Buffer& param : func.params) memory.emplace_back(static_cast<size_t>(ir::NumBytes(*param)));
  return std::string(ir::Interpret(func, std::vector<std::span<std::byte>>(memory.begin(), memory.end())).message());
}

class PlantedBug : public ::testing::TestWithParam<int> {};

TEST_P(PlantedBug, IsFoundByTheInterpreter) {
  const auto module = Lower(Read(kEven), kByFour + fmt::format("pipeline ko {}\n", GetParam()));
  ASSERT_TRUE(module.ok()) << module.status();
  const ir::Func& launch = module->main[0];
  EXPECT_EQ(AfterPlanting(launch, [](const ir::Stmt& s) { return s; }), "");
  const ir::Stmt nothing = ir::MakeBlock({});
  EXPECT_THAT(AfterPlanting(launch, [&](const ir::Stmt& s) { return IsWait(s) ? nothing : s; }),
              HasSubstr("is still copying; wait for the copy first"));
  EXPECT_THAT(
      AfterPlanting(launch,
                    [](const ir::Stmt& s) { return IsWait(s) ? ir::MakeWait(s.As<ir::Wait>()->pending + 1) : s; }),
      HasSubstr("is still copying; wait for the copy first"));
  EXPECT_THAT(AfterPlanting(launch, [&](const ir::Stmt& s) { return IsBarrier(s) ? nothing : s; }),
              ::testing::AnyOf(HasSubstr("race on element"), HasSubstr("is still copying")));
  EXPECT_THAT(AfterPlanting(launch, [&](const ir::Stmt& s) { return s.As<ir::Commit>() != nullptr ? nothing : s; }),
              HasSubstr("is still copying"));
}

INSTANTIATE_TEST_SUITE_P(Buffers, PlantedBug, ::testing::Values(2, 3));

// With one buffer fewer than copies in flight, a buffer is refilled while it is still read.
TEST(PlantedBugInARingOfBuffers, IsFoundByTheInterpreter) {
  const auto module = Lower(Read(kEven), kByFour + "pipeline ko 3\n");
  ASSERT_TRUE(module.ok()) << module.status();
  std::string text = ir::Print(module->main[0]);
  for (size_t at = 0; (at = text.find("%% 3", at)) != std::string::npos; ++at) text.replace(at, 4, "%% 2");
  const auto func = ir::ParseFunc(text);
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_THAT(AfterPlanting(*func, [](const ir::Stmt& s) { return s; }), HasSubstr("is still copying"));
}

struct Illegal {
  const char* workload;
  std::string schedule;
  const char* message;
};
class IllegalCopy : public ::testing::TestWithParam<Illegal> {};

TEST_P(IllegalCopy, SaysWhichStageAndWhy) {
  EXPECT_THAT(std::string(Lower(Read(GetParam().workload), GetParam().schedule).status().message()),
              HasSubstr(GetParam().message));
}

constexpr char kHalves[] = R"(workload "halves"
input x: f32[6,8] in [-1, 1]
y: f32[6,8] over i:6, j:8 = select(j < 6, x[i, j], 0f32)
e: f32[6,8] over i1:6, j1:8 = exp(x[i1, j1])
u: f32[6,8] over a:6, b:8 = y[a, 7 - b] + e[a, b]
output u
)";

constexpr char kOneRow[] = R"(workload "matmul"
input x: f32[1,24] in [-1, 1]
input w: f32[24,20] in [-1, 1]
t: f32[1,20] over i:1, j:20 = sum k:24 of x[i, k] * w[k, j]
u: f32[1,20] over a:1, b:20 = max(t[a, b], 0f32)
output u
)";
const std::string kOneRowTiles =
    "cache_read x t\nstore_in xrt shared 1\nsplit b 8 mask\nbind a group\nbind bo group\nbind bi lane\n"
    "compute_at t bi\nsplit k 4 mask\nreorder ko ki i j\ncompute_at xrt ko\n"
    "split xrt_1 4 mask\nfuse xrt_0 xrt_1o\nbind xrt_0_xrt_1o lane\ncopy_async xrt 4\n";

INSTANTIATE_TEST_SUITE_P(
    Steps, IllegalCopy,
    ::testing::Values(
        Illegal{kEven, "copy_async v 4", "no stage v"},
        Illegal{kEven, "copy_async t 4", "stage t must be computed inside a loop and stored in shared memory"},
        Illegal{kEven, kTiles + "copy_async xrt 3",
                "one copy of 3 elements has 12 bytes; a copy by one lane must have 4, 8, 16"},
        Illegal{kEven, kTiles + "split xrt_1 2 mask\ncopy_async xrt 4",
                "innermost loop of stage xrt must have 4 iterations"},
        Illegal{kEven, kTiles + "split xrt_1 2 mask\nunroll xrt_1i\ncopy_async xrt 2",
                "must have 2 iterations and no annotation"},
        Illegal{kEven, kByFour + "copy_async xrt 4", "stage xrt is copied asynchronously or tensorized already"},
        Illegal{kEven, kByFour + "split xrt_1i 2 mask", "loop xrt_1i is a part of a copy of 4 elements"},
        Illegal{kOdd, kTiles + "split xrt_1 4 mask\ncopy_async xrt 4",
                "a copy of 4 elements of x is not known to be aligned to 4 elements: copy fewer at once"},
        Illegal{kEven, kTiles + "reorder xrt_1 xrt_0\nsplit xrt_0 4 mask\ncopy_async xrt 4",
                "the elements that loop xrt_0i accesses in"},
        Illegal{kHalves, "store_in y shared\nbind a group\nbind b lane\ncompute_at y a\nsplit j 4 mask\ncopy_async y 4",
                "a condition holds for only some of the 4 elements of one copy"},
        Illegal{kHalves, "store_in e shared\nbind a group\nbind b lane\ncompute_at e a\ncopy_async e 1",
                "stage e computes its elements; an asynchronous copy can only move loaded elements or write zeros"},
        Illegal{kEven,
                "cache_read x t\ncache_read xrt t\nstore_in xrt shared\nstore_in xrtrt shared\nbind a group\nbind b "
                "lane\ncompute_at t b\nreorder k i j\ncompute_at xrtrt k\ncompute_at xrt k\ncopy_async xrtrt 1",
                "stage xrtrt reads shared memory of xrt"},
        Illegal{kEven, kByFour + "pipeline kk 2", "no loop kk"},
        Illegal{kEven, kTiles + "pipeline ko 2",
                "no stage is copied asynchronously at loop ko: apply copy_async first"},
        Illegal{kEven, kByFour + "pipeline ko 1", "1 buffers; the number must be from 2 to 8"},
        Illegal{kEven, kByFour + "pipeline ko 9", "9 buffers; the number must be from 2 to 8"},
        Illegal{kEven, kByFour + "pipeline ko 2\npipeline ko 2", "loop ko is pipelined already"},
        Illegal{kEven, kByFour + "pipeline ko 2\nunroll ko", "loop ko is pipelined already"},
        Illegal{kEven, kByFour + "pipeline bi 2", "loop bi is annotated already"}));

// One buffer, a row of 5, begins at an address where copies may begin; the buffer after it does not.
TEST(Pipeline, BuffersMustBeginWhereCopiesMay) {
  EXPECT_EQ(Check(kOneRow, kOneRowTiles), absl::OkStatus());
  EXPECT_THAT(std::string(Replay(Read(kOneRow), Parse(kOneRowTiles + "pipeline ko 2")).status().message()),
              HasSubstr("is not known to be aligned to 4 elements: copy fewer at once"));
}

TEST(CopyAsync, AConditionMayCoverWholeCopies) {
  EXPECT_EQ(Check(kHalves,
                  "store_in y shared\nbind a group\nbind b lane\ncompute_at y a\nsplit j 2 mask\nfuse i jo\nbind i_jo "
                  "lane\ncopy_async y 2\ninline e"),
            absl::OkStatus());
}

TEST(CopyAsync, ZerosHaveNoSign) {
  std::string text = kHalves;
  text.replace(text.find("0f32)"), 4, "-0.0f32");
  EXPECT_THAT(std::string(Replay(Read(text.c_str()), Parse("store_in y shared\nbind a group\nbind b lane\n"
                                                           "compute_at y a\ncopy_async y 1"))
                              .status()
                              .message()),
              HasSubstr("stage y computes"));
}

TEST(CopyAsync, ATargetWithoutSharedMemoryRefusesIt) {
  target::Target target = Lanes();
  target.memory.shared_bytes = 0;
  EXPECT_THAT(std::string(Lower(Read(kEven), kByFour, target).status().message()),
              HasSubstr("stage xrt is copied asynchronously to shared memory, which the target does not have"));
  const std::string unbound = "cache_read x t\nstore_in xrt shared\ncompute_at t b\ncompute_at xrt j\ncopy_async xrt 1";
  EXPECT_THAT(std::string(Lower(Read(kEven), unbound, target::TypicalTarget(target::Kind::kCpu)).status().message()),
              HasSubstr("stage xrt is copied asynchronously to shared memory, which the target does not have"));
}

TEST(CopyAsync, TextReadsBack) {
  const std::string text = "copy_async xrt 4\npipeline ko 2\npipeline ko 4 1\n";
  EXPECT_EQ(Print(Parse(text)), text);
  EXPECT_FALSE(ParseSchedule("copy_async xrt").ok());
  EXPECT_FALSE(ParseSchedule("copy_async xrt four").ok());
  EXPECT_FALSE(ParseSchedule("pipeline ko").ok());
  EXPECT_FALSE(ParseSchedule("pipeline ko 2 three").ok());
}

}  // namespace
}  // namespace hone::schedule
