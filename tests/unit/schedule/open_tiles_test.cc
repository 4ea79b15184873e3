// SPDX-License-Identifier: Apache-2.0
// Tiles of an axis whose extent is open: every length is right, and the code of a tile has no conditions.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "compiler/execution/model.h"
#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/fitted_tiles.h"
#include "tests/unit/space/lowered.h"

namespace hone::schedule {
namespace {

constexpr char kProduct[] = R"(workload "matmul"
size n in [1, 45]
input x: f32[n,8] in [-1, 1]
const w: f32[8,32] in [-1, 1]
t: f32[n,32] over i:n, j:32 = sum k:8 of x[i, k] * w[k, j]
y: f32[n,32] over a:n, b:32 = t[a, b] * 2.0f32
output y
)";

// Rows that threads share in pieces, so that the row's index is a remainder by an open number.
constexpr char kBatch[] = R"(workload "batch_matmul"
size b in [1, 3]
size n in [1, 20]
input x: f32[b,n,8] in [-1, 1]
const w: f32[8,16] in [-1, 1]
t: f32[b,n,16] over c:b, i:n, j:16 = sum k:8 of x[c, i, k] * w[k, j]
y: f32[b,n,16] over d:b, a:n, e:16 = t[d, a, e] + 1.0f32
output y
)";

constexpr char kTileOf[] = R"(split a {} fit
split b 16 mask
reorder ao ai bo bi
unroll ai
unroll bo
vectorize bi
compute_at t ao
split j 16 mask
reorder k i jo ji
unroll i
unroll jo
vectorize ji
)";

constexpr char kFusedTiles[] = R"(split a 6 fit
fuse d ao
unroll ai
vectorize e
compute_at t d_ao
reorder k c i j
unroll c
unroll i
vectorize j
)";

target::Target Host() { return target::ParseTarget("x86_64 -mcpu=x86-64-v4 -threads=1").value(); }

std::vector<tests::SizeMap> Rows(int64_t most) {
  std::vector<tests::SizeMap> sizes;
  for (int64_t n = 1; n <= most; ++n) sizes.push_back({{"n", n}});
  return sizes;
}

// The conditions in the func: around statements, in selects and in masks.
int Conditions(const ir::Stmt& s) {
  int count = 0;
  ir::AnyStmt(s, [&](const ir::Stmt& child) {
    const ir::Store* store = child.As<ir::Store>();
    count += store != nullptr && store->mask.defined() ? 1 : 0;
    return false;
  });
  ir::ForEachExpr(s, [&](const ir::Expr& e) {
    const ir::Load* load = e.As<ir::Load>();
    count += load != nullptr && load->mask.defined() ? 1 : 0;
    const ir::Select* select = e.As<ir::Select>();
    count += select != nullptr && e.type() != ir::kIndexType ? 1 : 0;
  });
  return count;
}

ir::Stmt LoweredBody(const char* workload, const std::string& steps) {
  const absl::StatusOr<State> state = Replay(ir::ParseWorkload(workload).value(), ParseSchedule(steps).value());
  EXPECT_TRUE(state.ok()) << state.status();
  const auto lowered = execution::Lower(*state, Host(), "k");
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered->main.at(0).body;
}

// TilesOf covers the axis, with at most one element twice, and leaves no tile of one or two elements behind full ones.
TEST(OpenTiles, ShareShortRests) {
  for (int64_t factor = 1; factor <= kFittedTileMax; ++factor) {
    for (int64_t extent = 1; extent <= 200; ++extent) {
      const FittedTiles tiles = TilesOf(extent, factor);
      const int64_t covered = tiles.full * factor + tiles.others * tiles.length;
      EXPECT_GE(covered, extent) << factor;
      EXPECT_LE(covered, extent + 1) << factor;
      EXPECT_LE(tiles.length, ShortTileMax(factor)) << factor << " " << extent;
      const bool is_short = factor >= 4 && extent > factor && tiles.others > 0;
      EXPECT_TRUE(!is_short || tiles.length >= 3) << factor << " " << extent;
    }
  }
}

// The loops of the split are those that TilesOf tells of.
TEST(OpenTiles, AreThoseOfTheSpaces) {
  const ir::Workload workload = ir::ParseWorkload(kProduct).value();
  for (const int64_t factor : {1, 2, 3, 4, 5, 6, 7, 14, 17}) {
    const absl::StatusOr<State> state =
        Replay(workload, ParseSchedule(fmt::format("split a {} {}", factor, factor == 1 ? "mask" : "fit")).value());
    ASSERT_TRUE(state.ok()) << state.status();
    const std::vector<Loop>& loops = state->FindNest("y")->loops;
    for (int64_t n = 1; n <= 45; ++n) {
      const FittedTiles tiles = TilesOf(n, factor);
      ASSERT_EQ(ir::ConstantValue(loops[0].extent, {{"n", {n, n}}}), tiles.full + tiles.others) << factor << " " << n;
      for (int64_t tile = 0; tile < tiles.full + tiles.others; ++tile) {
        EXPECT_EQ(ir::ConstantValue(loops[1].extent, {{"n", {n, n}}, {"ao", {tile, tile}}}),
                  tile < tiles.full ? factor : tiles.length)
            << factor << " " << n << " " << tile;
      }
    }
  }
}

TEST(OpenTiles, AreRightForEveryNumberOfRows) {
  const ir::Workload workload = ir::ParseWorkload(kProduct).value();
  for (const int factor : {1, 2, 3, 4, 5, 6, 7, 14, 17}) {
    const absl::StatusOr<Schedule> steps = ParseSchedule(fmt::format(kTileOf, factor));
    ASSERT_TRUE(steps.ok()) << steps.status();
    EXPECT_EQ(tests::CheckLowered(workload, *steps, Host(), {}, Rows(45)), absl::OkStatus()) << factor;
  }
}

// The larger the minimum, the fewer elements: code for its largest value is too short for the others.
TEST(OpenTiles, AnExtentMayShrinkWhereAMinimumGrows) {
  constexpr char kRest[] = R"(workload "slice"
size n in [3, 10]
const x: f32[33] in [-1, 1]
y: f32[max(0, min(33, n * 4) * -1 + 30)] over a:max(0, min(33, n * 4) * -1 + 30) = x[a + min(33, n * 4)]
output y
)";
  const ir::Workload workload = ir::ParseWorkload(kRest).value();
  for (const char* steps : {"split a 16 peel\nvectorize ai\n", "split a 16 mask\nvectorize ai\n",
                            "split a 16 fit\nvectorize ai\n", "split a 7 peel\nunroll ai\n"}) {
    const absl::StatusOr<Schedule> schedule = ParseSchedule(steps);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    std::vector<tests::SizeMap> sizes = Rows(10);
    sizes.erase(sizes.begin(), sizes.begin() + 2);
    EXPECT_EQ(tests::CheckLowered(workload, *schedule, Host(), {}, sizes), absl::OkStatus()) << steps;
  }
}

TEST(OpenTiles, HaveNoConditionsInside) {
  EXPECT_EQ(Conditions(LoweredBody(kProduct, fmt::format(kTileOf, 14))), 0);
  EXPECT_EQ(Conditions(LoweredBody(kBatch, kFusedTiles)), 0);
}

// Whether a loop other than that over tiles, ao, runs to an open size.
bool HasOpenLoopInside(const ir::Stmt& body) {
  return ir::AnyStmt(body, [](const ir::Stmt& s) {
    const ir::For* loop = s.As<ir::For>();
    return loop != nullptr && loop->var != "ao" && loop->extent.As<ir::IntImm>() == nullptr;
  });
}

// A tile as long as the axis can be has code for each length, like others: no loop inside runs to the open size.
TEST(OpenTiles, MayBeAsLongAsTheAxis) {
  std::string few = kProduct;
  few.replace(few.find("45"), 2, "4");
  const ir::Workload workload = ir::ParseWorkload(few).value();
  for (const int factor : {4, 6}) {
    const std::string steps = fmt::format(kTileOf, factor);
    EXPECT_FALSE(HasOpenLoopInside(LoweredBody(few.c_str(), steps))) << factor;
    EXPECT_EQ(tests::CheckLowered(workload, ParseSchedule(steps).value(), Host(), {}, Rows(4)), absl::OkStatus());
  }
}

TEST(OpenTiles, MayBeFusedWithAnOpenBatch) {
  std::vector<tests::SizeMap> sizes;
  for (int64_t b = 1; b <= 3; ++b) {
    for (int64_t n = 1; n <= 20; ++n) sizes.push_back({{"b", b}, {"n", n}});
  }
  EXPECT_EQ(
      tests::CheckLowered(ir::ParseWorkload(kBatch).value(), ParseSchedule(kFusedTiles).value(), Host(), {}, sizes),
      absl::OkStatus());
}

// A tail of tiles inside a tail of tasks: unrolled loops keep their full length, and conditions leave out the rest.
TEST(OpenTiles, OfAPeeledTaskCanBeUnrolled) {
  constexpr char kSteps[] = R"(split a 12 peel
compute_at t ao
split i 4 peel
reorder io k ii j
unroll ii
vectorize j
)";
  EXPECT_EQ(
      tests::CheckLowered(ir::ParseWorkload(kProduct).value(), ParseSchedule(kSteps).value(), Host(), {}, Rows(45)),
      absl::OkStatus());
}

// A tile of a task that may be short itself has any length up to half, too.
TEST(OpenTiles, OfAPeeledTaskHaveNoConditionsInside) {
  static constexpr char kSteps[] = R"(split a {} peel
compute_at t ao
split i {} fit
reorder io k ii j
unroll ii
vectorize j
)";
  for (const auto& [task, tile] : {std::pair(12, 4), {12, 5}, {20, 14}, {3, 7}}) {
    const std::string steps = fmt::format(kSteps, task, tile);
    EXPECT_EQ(
        tests::CheckLowered(ir::ParseWorkload(kProduct).value(), ParseSchedule(steps).value(), Host(), {}, Rows(45)),
        absl::OkStatus())
        << steps;
    EXPECT_EQ(Conditions(LoweredBody(kProduct, steps)), 0) << steps;
  }
}

// The extent of the axis is a minimum itself. The vectors are within a minimum of it and the vector's width.
TEST(OpenTiles, OfAnAxisThatIsCutShort) {
  const ir::Workload workload = ir::ParseWorkload(R"(workload "slice"
size n in [0, 45]
input x: f32[n] in [-1, 1]
y: f32[min(20, n)] over i:min(20, n) = x[i] * 2.0f32
output y
)")
                                    .value();
  for (const int width : {4, 8}) {
    const std::string steps = fmt::format("split i {} peel\nvectorize ii\n", width);
    EXPECT_EQ(tests::CheckLowered(workload, ParseSchedule(steps).value(), Host(), {}, Rows(45)), absl::OkStatus())
        << width;
  }
}

// The second, third and fourth tile prefetch the next columns of weights for all tiles: 8 steps read 3 cache lines
// each, and each step of the three tiles prefetches one.
TEST(OpenTiles, ShareAPrefetch) {
  const std::string product = absl::StrReplaceAll(kProduct, {{"8,32]", "8,96]"}, {"n,32]", "n,96]"}, {":32", ":96"}});
  const std::string steps =
      "pack w t 1/48 0 1%48\nsplit b 48 mask\nsplit bi 16 mask\nsplit a 4 fit\nreorder bo ao ai bio bii\nunroll ai\n"
      "unroll bio\nvectorize bii\ncompute_at t ao\nsplit j 16 mask\nreorder k i jo ji\nunroll i\nunroll jo\n"
      "vectorize ji\nprefetch wpt t bo 1\n";
  EXPECT_EQ(tests::CheckLowered(ir::ParseWorkload(product).value(), ParseSchedule(steps).value(), Host(), {}, Rows(20)),
            absl::OkStatus());
  const std::string body = ir::Print(LoweredBody(product.c_str(), steps));
  EXPECT_THAT(body, testing::HasSubstr("if k + select(ao == 0, 3, ao - 1) * 8 < 24"));
  EXPECT_THAT(body,
              testing::HasSubstr("prefetch 16 wpt from bo * 384 + k * 16 + select(ao == 0, 3, ao - 1) * 128 + 384"));
}

}  // namespace
}  // namespace hone::schedule
