// SPDX-License-Identifier: Apache-2.0
// Asynchronous instructions that outlast the iteration that starts them: legality, unchanged results, and that the
// interpreter and the verifier find planted bugs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/execution/model.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"
#include "tests/unit/space/lowered.h"

namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

// A product whose reduction has six staged steps of 64.
constexpr char kProduct[] = R"(workload "matmul"
input x: f16[64,384] in [-1, 1]
input w: f16[16,384] in [-1, 1]
t: f32[64,16] over i:64, j:16 = sum k:384 of f32(x[i, k]) * f32(w[j, k])
u: f32[64,16] over a:64, b:16 = t[a, b]
output u
)";

// 64 rows by 128 lanes, 16 columns, rows of 128 bytes.
constexpr char kTiles[] = R"(pack x t 0 1
pack w t 0 1
store_in xpt swizzled
store_in wpt swizzled
split_axis t i 8
split_axis t ix 8
split a 64 mask
split ai 16 mask
split aii 8 mask
split_axis t j 8
split b 16 mask
split bi 8 mask
split bii 2 mask
reorder ao bo aio aiii biio aiio bio biii
bind ao group
bind bo group
bind aio lane
bind aiii lane
bind biio lane
vectorize biii
unroll aiio
unroll bio
compute_at t biio
split k 64 mask
split ki 16 mask
split ixy 2 mask
split kii 8 mask
reorder ko kio ixx ixyo iy jx ixyi jy kiio kiii
compute_at xpt ko
compute_at wpt ko
unroll kio
unroll ixx
unroll ixyo
unroll iy
unroll jx
tensorize t wgmma_f16
split xpt_1 8 mask
fuse xpt_0 xpt_1o
bind xpt_0_xpt_1o lane
split wpt_1 8 mask
fuse wpt_0 wpt_1o
bind wpt_0_wpt_1o lane
)";
constexpr char kCopies[] = "copy_async xpt 8\ncopy_async wpt 8\n";

// The same product with floats, in six steps of 32. Lanes load the first factor into registers and round it.
constexpr char kFloats[] = R"(workload "matmul"
input x: f32[64,192] in [-1, 1]
const w: f32[16,192] in [-1, 1]
t: f32[64,16] over i:64, j:16 = sum k:192 of x[i, k] * w[j, k]
u: f32[64,16] over a:64, b:16 = t[a, b]
output u
)";
constexpr char kFloatTiles[] = R"(round w t 10
fuse wnt_0 wnt_1
split wnt_0_wnt_1 64 mask
bind wnt_0_wnt_1o group
bind wnt_0_wnt_1i lane
pack x t 0 1
cache_read wnt t
store_in xpt swizzled
store_in wntrt swizzled
)";

struct Case {
  const char* name;
  const char* workload;
  std::string tiles, copies;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::string Replaced(std::string text, std::initializer_list<std::pair<std::string_view, std::string_view>> pairs) {
  for (const auto& [from, to] : pairs) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

Case Halves() { return {"halves", kProduct, kTiles, kCopies}; }
Case Floats() {
  std::string tiles = kTiles;
  tiles = kFloatTiles + tiles.substr(tiles.find("split_axis t i 8"));
  return {"floats", kFloats,
          Replaced(tiles, {{"wpt", "wntrt"},
                           {"split k 64", "split k 32"},
                           {"split ki 16", "split ki 8"},
                           {"split kii 8", "split kii 4"},
                           {"_1 8 mask", "_1 4 mask"},
                           {"wgmma_f16", "wgmma_tf32_registers"}}),
          "copy_async xpt 4\ncopy_async wntrt 4\n"};
}

target::Target Hopper() { return target::ParseTarget("cuda:sm_90a -tf32").value(); }

absl::Status Check(const Case& c, const std::string& pipeline) {
  HONE_ASSIGN_OR_RETURN(const Schedule steps, ParseSchedule(c.tiles + c.copies + pipeline));
  return tests::CheckLowered(ir::ParseWorkload(c.workload).value(), steps, Hopper(), {4e-3, 4e-3});
}

std::string Lowered(const Case& c, const std::string& pipeline) {
  const auto state =
      Replay(ir::ParseWorkload(c.workload).value(), ParseSchedule(c.tiles + c.copies + pipeline).value());
  EXPECT_TRUE(state.ok()) << state.status();
  const auto module = execution::Lower(*state, Hopper(), "kernel", {.verify = true});
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? ir::Print(module->main[0]) : "";
}

class AsyncMmaTest : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Types, AsyncMmaTest, ::testing::Values(Halves(), Floats()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(AsyncMmaTest, MeansTheSame) {
  EXPECT_EQ(Check(GetParam(), ""), absl::OkStatus());
  for (const char* pipeline : {"2", "3 1", "4", "4 1", "8 1"}) {
    EXPECT_EQ(Check(GetParam(), fmt::format("pipeline ko {}\n", pipeline)), absl::OkStatus()) << pipeline;
  }
  for (const char* pipeline : {"4 2", "8 6"}) {
    EXPECT_EQ(Check(Halves(), fmt::format("pipeline ko {}\n", pipeline)), absl::OkStatus()) << pipeline;
  }
}

TEST(AsyncMma, WaitsOneIterationLater) {
  const std::string at_once = Lowered(Halves(), "pipeline ko 3\n");
  EXPECT_THAT(at_once, HasSubstr("settle 0"));
  EXPECT_THAT(at_once, HasSubstr("wait 1"));
  const std::string later = Lowered(Halves(), "pipeline ko 3 1\n");
  EXPECT_THAT(later, HasSubstr("settle 1"));
  EXPECT_THAT(later, HasSubstr("wait 0")) << "one buffer is still read, so that copies begin one iteration later";
  EXPECT_LT(later.find("settle 1"), later.find("settle 0"));
}

// Each of the four steps of an iteration has registers of its own, which are refilled four steps later.
TEST(AsyncMma, WaitsBeforeRegistersAreRefilled) {
  const std::string later = Lowered(Floats(), "pipeline ko 4 1\n");
  EXPECT_THAT(later, HasSubstr("settle 3"));
  EXPECT_LT(later.find("settle 3"), later.find("settle 0"));
  EXPECT_THAT(std::string(Check(Floats(), "pipeline ko 4 2").message()),
              HasSubstr("its lanes would overwrite factors that are still read"));
}

TEST(AsyncMma, SaysWhatDoesNotFit) {
  const auto error = [](const Case& c, const std::string& pipeline) {
    return std::string(Check(c, pipeline).message());
  };
  EXPECT_THAT(error(Halves(), "pipeline ko 3 2"),
              HasSubstr("2 iterations cannot stay in flight with 3 buffers; the number must be from 0 to 1"));
  EXPECT_THAT(error(Halves(), "pipeline ko 3 -1"), HasSubstr("-1 iterations cannot stay in flight"));
  Case copied = Halves();
  copied.copies = "copy_async xpt 8\n";
  EXPECT_THAT(
      error(copied, "pipeline ko 4 1"),
      HasSubstr("instructions of stage t cannot stay in flight while stage wpt is computed, because they may read it"));
  Case rolled = Halves();
  rolled.tiles = Replaced(rolled.tiles, {{"unroll jx\n", ""}});
  EXPECT_THAT(error(rolled, "pipeline ko 4 1"), HasSubstr("loop ko is not a whole reduction with sums in registers"));
  rolled = Halves();
  rolled.tiles = Replaced(rolled.tiles, {{"unroll kio\n", ""}});
  EXPECT_EQ(Check(rolled, "pipeline ko 4 1"), absl::OkStatus());
  rolled = Floats();
  rolled.tiles = Replaced(rolled.tiles, {{"unroll kio\n", ""}});
  EXPECT_THAT(error(rolled, "pipeline ko 4 1"), HasSubstr("loop ko is not a whole reduction with sums in registers"));
  Case plain = Halves();
  plain.tiles = Replaced(plain.tiles, {{"tensorize t wgmma_f16\n", ""}});
  EXPECT_THAT(error(plain, "pipeline ko 4 1"), HasSubstr("stage t has no asynchronous tensor instruction"));
}

// Replaces every `from` by `to` in the lowered loops and returns the interpreter's verdict.
std::string AfterPlanting(const Case& c, const std::string& pipeline, const std::string& from, const std::string& to) {
  const std::string text = Lowered(c, fmt::format("pipeline ko {}\n", pipeline));
  EXPECT_THAT(text, HasSubstr(from));
  const auto func = ir::ParseFunc(Replaced(text, {{from, to}}));
  EXPECT_TRUE(func.ok()) << func.status();
  std::vector<ir::Bytes> memory;
  for (const ir::Buffer& param : func->params) {
    memory.emplace_back(static_cast<size_t>(ir::NumBytes(*param)));
    for (size_t i = 0; i < memory.back().size(); i += 2) {
      memory.back()[i] = static_cast<std::byte>(i / 128 % 64);  // different numbers in every step
      memory.back()[i + 1] = std::byte{0x3c};
    }
  }
  return std::string(ir::Interpret(*func, std::vector<std::span<std::byte>>(memory.begin(), memory.end())).message());
}

TEST(AsyncMma, ARefillBeforeTheWaitIsFound) {
  EXPECT_EQ(AfterPlanting(Halves(), "4 1", "settle 1", "settle 1"), "");
  EXPECT_EQ(AfterPlanting(Floats(), "4 1", "settle 3", "settle 3"), "");
  const auto changed = ::testing::AnyOf(HasSubstr("is still copying"), HasSubstr("changed while a tensor instruction"),
                                        HasSubstr("race on element"));
  EXPECT_THAT(AfterPlanting(Halves(), "4 1", "settle 1", "settle 2"), changed);
  EXPECT_THAT(AfterPlanting(Halves(), "3 1", "%% 3", "%% 2"), changed);
  EXPECT_THAT(AfterPlanting(Halves(), "3", "settle 0", "settle 1"), changed);
  EXPECT_THAT(AfterPlanting(Floats(), "4 1", "settle 3", "settle 9"), changed);
}

TEST(AsyncMma, TheVerifierRequiresAFinalWait) {
  std::string text = Lowered(Halves(), "pipeline ko 4 1\n");
  const auto verdict = [](const std::string& text) {
    const auto func = ir::ParseFunc(text);
    EXPECT_TRUE(func.ok()) << func.status();
    return std::string(ir::Verify(*func, {128, 1 << 18}).message());
  };
  EXPECT_EQ(verdict(text), "");
  text.erase(text.rfind("settle 0"), 8);
  EXPECT_THAT(verdict(text),
              HasSubstr("is freed while a tensor instruction may still use it; wait for the instruction first"));
}

}  // namespace
}  // namespace hone::schedule
