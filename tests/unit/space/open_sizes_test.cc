// SPDX-License-Identifier: Apache-2.0
// Default schedules of kernels with open sizes on CPUs: they are right at every size, and their code does not ask more
// than that of a fixed size does.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/execution/model.h"
#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/text.h"
#include "compiler/space/space.h"
#include "tests/unit/space/compiled.h"

namespace hone::space {
namespace {

using ::testing::HasSubstr;

target::Target Host() { return target::ParseTarget("cpu -threads=1").value(); }
target::Target Wide() { return target::ParseTarget("x86_64 -mcpu=x86-64-v4 -threads=1").value(); }

constexpr char kSizes[] = "size b in [1, 2]\nsize h in [5, 14]\nsize w in [5, 14]\n";

// A workload over images of b x h x w.
ir::Workload Parsed(const std::string& op, const std::string& body, const std::string& sizes = kSizes) {
  const auto workload = ir::ParseWorkload(fmt::format("workload \"{}\"\n{}{}", op, sizes, body));
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *workload;
}

ir::Workload Gate() {
  return Parsed("elementwise", R"(input x: f32[b,20,h * w] in [-1, 1]
t: bool[b,20,h * w] over i:b, j:20, k:h * w = x[i, j, k] > 0.25f32
y: f32[b,20,h * w] over l:b, m:20, n:h * w = select(t[l, m, n], x[l, m, n], -1.0f32)
output y
)");
}

ir::Workload Slice() {
  return Parsed("slice", R"(input x: f32[b,h,w,32] in [-1, 1]
y: f32[b,h,w,16] over i:b, j:h, k:w, l:16 = x[i, j, k, l + 16]
output y
)");
}

ir::Workload Transposition() {
  return Parsed("transpose", R"(input x: f32[b,8,h * w] in [-1, 1]
y: f32[b,h * w,8] over i:b, j:h * w, k:8 = x[i, k, j]
output y
)");
}

ir::Workload Concat() {
  return Parsed("concat", R"(input x: f32[b,3,h * 16] in [-1, 1]
input z: f32[b,3,h * 4] in [-1, 1]
s: f32[b,3,h * 16] over i:b, j:3, k:h * 16 = sigmoid(x[i, j, k])
t: f32[b,3,h * 4] over l:b, m:3, n:h * 4 = sigmoid(z[l, m, n])
y: f32[b,3,h * 20] over o:b, p:3, q:h * 20 = select(q < h * 16, s[o, p, q], t[o, p, q - h * 16])
output y
)");
}

ir::Workload LastPlaceOfMost() {
  return Parsed("arg_max", R"(input x: f32[b,h * w * 3] in [-1, 1]
m: f32[b] over i:b = max k:h * w * 3 of x[i, k]
y: i32[b] over l:b = min o:h * w * 3 of select(x[l, o] == m[l], i32(o), 100000i32)
output y
)");
}

// A padded 3x3 convolution of 32 channels to as many.
// rows, columns: the extents of the images, in terms of the sizes.
ir::Workload ConvolutionOfImages(int stride, const std::string& sizes = kSizes, const std::string& rows = "h",
                                 const std::string& columns = "w") {
  const std::string out = stride == 1 ? "{}" : "({} + 1) // 2";
  const std::string h = fmt::format(fmt::runtime(out), rows), w = fmt::format(fmt::runtime(out), columns);
  const std::string padded = fmt::format(
      "p: f32[b,{0} + 2,{1} + 2,32] over a:b, c:{0} + 2, d:{1} + 2, e:32 = "
      "select(c >= 1 && c < {0} + 1 && d >= 1 && d < {1} + 1, x[a, c - 1, d - 1, e], 0.0f32)\n",
      rows, columns);
  const std::string sums = fmt::format(
      "s: f32[b,{0},{1},32] over i:b, j:{0}, k:{1}, l:32 = "
      "sum m:32, n:3, o:3 of p[i, j * {2} + n, k * {2} + o, m] * f[l, m, n, o]\n",
      h, w, stride);
  const std::string positive =
      fmt::format("y: f32[b,{0},{1},32] over q:b, r:{0}, t:{1}, u:32 = max(s[q, r, t, u], 0.0f32)\n", h, w);
  const std::string inputs =
      fmt::format("input x: f32[b,{},{},32] in [-1, 1]\nconst f: f32[32,32,3,3] in [-1, 1]\n", rows, columns);
  return Parsed("conv2d", inputs + padded + sums + positive + "output y\n", sizes);
}

std::vector<tests::SizeMap> Some() {
  std::vector<tests::SizeMap> sizes;
  for (int64_t b = 1; b <= 2; ++b) {
    for (const int64_t h : {5, 8, 11, 14}) {
      for (const int64_t w : {5, 6, 9, 13, 14}) sizes.push_back({{"b", b}, {"h", h}, {"w", w}});
    }
  }
  return sizes;
}

schedule::Schedule DefaultSteps(const ir::Workload& workload, const target::Target& target) {
  const auto candidate = Default(workload, target);
  EXPECT_TRUE(candidate.ok()) << candidate.status();
  return candidate->schedule;
}

ir::Stmt LoweredBody(const ir::Workload& workload) {
  const auto state = schedule::Replay(workload, DefaultSteps(workload, Wide()));
  EXPECT_TRUE(state.ok()) << state.status();
  const auto lowered = execution::Lower(*state, Wide(), "k");
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered->main.at(0).body;
}

// Divisions and remainders of vectors of indices: many times as slow as what they find.
int VectorDivisions(const ir::Stmt& s) {
  int count = 0;
  ir::ForEachExpr(s, [&](const ir::Expr& e) {
    const ir::Binary* b = e.As<ir::Binary>();
    const bool divides = b != nullptr && (b->op == ir::BinaryOp::kFloorDiv || b->op == ir::BinaryOp::kFloorMod);
    count += divides && e.type().width > 1 ? 1 : 0;
  });
  return count;
}

TEST(OpenSizes, DefaultSchedulesAreRight) {
  for (const ir::Workload& workload : {Gate(), Slice(), Transposition(), Concat(), LastPlaceOfMost(),
                                       ConvolutionOfImages(1), ConvolutionOfImages(2)}) {
    const schedule::Schedule steps = DefaultSteps(workload, Host());
    const tests::Tolerance tolerance{.relative = 1e-3, .least = 1e-4};  // Winograd's algorithm rounds more
    EXPECT_EQ(tests::CheckCompiled(workload, steps, Host(), tolerance, 2, codegen::Effort::kKernel, Some()),
              absl::OkStatus())
        << workload.op << "\n"
        << schedule::Print(steps);
  }
}

TEST(OpenSizes, IndicesAreNotDivided) {
  for (const ir::Workload& workload : {Gate(), Slice(), Concat()}) {
    EXPECT_EQ(VectorDivisions(LoweredBody(workload)), 0) << workload.op;
  }
}

// Loads with equal distances become contiguous loads and exchanges in registers.
TEST(OpenSizes, TranspositionsReadAtEqualDistances) {
  int loads = 0;
  ir::ForEachExpr(LoweredBody(Transposition()), [&](const ir::Expr& e) {
    const ir::Load* load = e.As<ir::Load>();
    if (load == nullptr || load->buffer->name != "x") return;
    ++loads;
    EXPECT_NE(load->indices[0].As<ir::Ramp>(), nullptr) << ir::Print(e);
  });
  EXPECT_GT(loads, 0);
}

// The blocks before the last one check nothing: the loop over them has no masks.
TEST(OpenSizes, OnlyTheLastBlockOfAReductionIsMasked) {
  int masked = 0, whole = 0;
  ir::AnyStmt(LoweredBody(LastPlaceOfMost()), [&](const ir::Stmt& s) {
    const ir::For* loop = s.As<ir::For>();
    if (loop == nullptr || !ir::UsesVar(loop->extent, "h")) return false;
    ir::ForEachExpr(loop->body, [&](const ir::Expr& e) {
      const ir::Load* load = e.As<ir::Load>();
      if (load == nullptr || load->buffer->name != "x" || !ir::UsesVar(e, loop->var)) return;
      ++(load->mask.defined() ? masked : whole);
    });
    return false;
  });
  EXPECT_EQ(masked, 0);
  EXPECT_GT(whole, 0);
}

// Chunks of tiles have any length, and so have the register tiles inside them.
TEST(OpenSizes, ChunksOfWinogradsTilesAreAsLongAsTheyMustBe) {
  const ir::Workload workload = ConvolutionOfImages(1, "size b in [1, 2]\nsize h in [40, 60]\nsize w in [40, 60]\n");
  const schedule::Schedule steps = DefaultSteps(workload, Host());
  const std::string text = schedule::Print(steps);
  ASSERT_THAT(text, HasSubstr("winograd s"));
  EXPECT_THAT(text, HasSubstr(" peel\n"));
  EXPECT_THAT(text, HasSubstr(" fit\n"));
  const tests::Tolerance tolerance{.relative = 1e-3, .least = 1e-4};
  EXPECT_EQ(tests::CheckCompiled(workload, steps, Host(), tolerance, 1, codegen::Effort::kKernel,
                                 {{{"b", 1}, {"h", 40}, {"w", 47}}, {{"b", 2}, {"h", 43}, {"w", 41}}}),
            absl::OkStatus())
      << text;
}

// A range is judged as a whole. The largest images alone would gain, but most here are smaller than a tile.
TEST(OpenSizes, WinogradMustPayForMostImages) {
  const auto steps = [](const std::string& rows) {
    const std::string sizes = fmt::format("size b in [1, 2]\nsize h in [{0}]\nsize w in [{0}]\n", rows);
    return schedule::Print(DefaultSteps(ConvolutionOfImages(1, sizes), Wide()));
  };
  EXPECT_THAT(steps("39, 40"), HasSubstr("winograd s"));
  EXPECT_THAT(steps("1, 40"), Not(HasSubstr("winograd s")));
}

// The number of tiles is a sum of products where the rows are a multiple of a size. The condition that a chunk is full
// must decide the comparisons inside nevertheless.
TEST(OpenSizes, FullChunksOfWinogradsTilesCompareNothing) {
  const ir::Workload workload =
      ConvolutionOfImages(1, "size b in [1, 2]\nsize h in [7, 20]\nsize w in [7, 20]\n", "h * 8", "w * 8");
  ASSERT_THAT(schedule::Print(DefaultSteps(workload, Host())), HasSubstr("winograd s"));
  int products = 0, compared = 0;
  ir::AnyStmt(LoweredBody(workload), [&](const ir::Stmt& s) {
    const ir::If* chunk = s.As<ir::If>();
    if (chunk == nullptr || !chunk->else_case.defined()) return false;
    ir::AnyStmt(chunk->then_case, [&](const ir::Stmt& inside) {
      const ir::Store* store = inside.As<ir::Store>();
      if (store == nullptr || store->buffer->name != "smc") return false;
      ++products;
      ir::ForEachExpr(store->value, [&](const ir::Expr& e) { compared += e.As<ir::Select>() != nullptr ? 1 : 0; });
      return false;
    });
    return true;  // the first one is the chunk; those inside the else case are of the last chunk
  });
  EXPECT_GT(products, 0);
  EXPECT_EQ(compared, 0);
}

// Attention of at most `longest` positions.
ir::Workload AttentionTo(int longest) {
  return ir::ParseWorkload(fmt::format(R"(workload "attention"
size b in [1, 4]
size n in [1, {}]
input q: f32[b,8,n,64] in [-1, 1]
input k: f32[b,8,64,n] in [-1, 1]
input v: f32[b,8,n,64] in [-1, 1]
t: f32[b,8,n,n] over t0:b, t1:8, i:n, j:n = sum d:64 of q[t0, t1, i, d] * k[t0, t1, d, j]
m: f32[b,8,n,1] over m0:b, m1:8, m2:n, m3:1 = max m4:n of t[m0, m1, m2, m4]
e: f32[b,8,n,n] over e0:b, e1:8, e2:n, e3:n = exp(t[e0, e1, e2, e3] - m[e0, e1, e2, 0])
s: f32[b,8,n,1] over s0:b, s1:8, s2:n, s3:1 = sum s4:n of e[s0, s1, s2, s4]
p: f32[b,8,n,n] over p0:b, p1:8, p2:n, p3:n = e[p0, p1, p2, p3] * (1f32 / s[p0, p1, p2, 0])
o: f32[b,8,n,64] over o0:b, o1:8, o2:n, o3:64 = sum o4:n of p[o0, o1, o2, o4] * v[o0, o1, o4, o3]
output o
)",
                                       longest))
      .value();
}

TEST(OpenSizes, AttentionHasItsTemplate) {
  for (const int longest : {40, 256, 512}) {
    const ir::Workload workload = AttentionTo(longest);
    const auto candidate = Default(workload, Wide());
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    const Entry* const entry = EntryOf(candidate->decisions, ApplicableEntries(workload, Wide()));
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->name, "attention_tile") << longest;
  }
}

// The number of loops over up to `rows` rows, the rows of a task, of which open sizes decide the number.
int VaryingRows(const ir::Stmt& s, int64_t rows) {
  int count = 0;
  ir::AnyStmt(s, [&](const ir::Stmt& child) {
    const ir::For* loop = child.As<ir::For>();
    if (loop == nullptr || loop->extent.As<ir::IntImm>() != nullptr) return false;
    count += ir::BoundsOf(loop->extent, {{"n", {1, 512}}}).high <= rows ? 1 : 0;
    return false;
  });
  return count;
}

// A full task of attention has as many rows as the task of a fixed size, and loops over them of constant lengths. Only
// the last task has fewer rows.
TEST(OpenSizes, OnlyTheLastTaskOfAttentionHasVaryingRows) {
  constexpr int64_t kRows = 12;
  const ir::Workload workload = AttentionTo(512);
  const std::string text = schedule::Print(DefaultSteps(workload, Wide()));
  ASSERT_THAT(text, HasSubstr(fmt::format(" {} peel\nfuse", kRows)));
  int tasks = 0;
  ir::AnyStmt(LoweredBody(workload), [&](const ir::Stmt& s) {
    const ir::If* choice = s.As<ir::If>();
    if (choice == nullptr || !ir::UsesVar(choice->condition, "n") || !choice->else_case.defined()) return false;
    if (!ir::AnyStmt(choice->then_case, [](const ir::Stmt& child) { return child.As<ir::Block>() != nullptr; }))
      return false;
    if (++tasks > 1) return false;
    EXPECT_EQ(VaryingRows(choice->then_case, kRows), 0);
    EXPECT_GT(VaryingRows(choice->else_case, kRows), 0);
    return false;
  });
  EXPECT_GE(tasks, 1);
}

TEST(OpenSizes, AttentionOfAnyNumberOfRowsIsRight) {
  const ir::Workload workload = AttentionTo(64);
  const schedule::Schedule steps = DefaultSteps(workload, Host());
  std::vector<tests::SizeMap> sizes;
  for (const int64_t n : {1, 2, 5, 11, 12, 13, 17, 24, 31, 35, 64}) sizes.push_back({{"b", 2}, {"n", n}});
  const tests::Tolerance tolerance{.relative = 1e-4, .least = 1e-5};
  EXPECT_EQ(tests::CheckCompiled(workload, steps, Host(), tolerance, 1, codegen::Effort::kKernel, sizes),
            absl::OkStatus())
      << schedule::Print(steps);
}

}  // namespace
}  // namespace hone::space
