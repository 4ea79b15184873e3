// SPDX-License-Identifier: Apache-2.0
// Reads logs of TVM's tuners as hints for workloads. The lines have the formats of TVM 0.14 with made-up numbers.
#include "tuner/hints.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <streambuf>

#include "compiler/space/space.h"
#include "compiler/target/target.h"
#include "tuner/tvm_log.h"

namespace hone::tuner {

bool operator==(const TiledAxis& a, const TiledAxis& b) { return a.extent == b.extent && a.inner == b.inner; }
void PrintTo(const TiledAxis& axis, std::ostream* out) { *out << axis.extent << ':' << axis.inner; }

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using Axes = std::vector<TiledAxis>;

TvmLog Read(const std::string& text) {
  std::istringstream stream(text);
  absl::StatusOr<TvmLog> log = ReadTvmLog(stream);
  EXPECT_TRUE(log.ok()) << log.status();
  return log.ok() ? *std::move(log) : TvmLog();
}

std::string AutoTvm(std::string_view task, std::string_view args, std::string_view entity, std::string_view result) {
  return fmt::format(
      R"({{"input": ["llvm", "{}", [{}], {{}}], "config": {{"index": 1, "code_hash": null, "entity": [{}]}}, )"
      R"("result": [[{}, 1539972731.3], "version": 0.2, "tvm_version": "0.14.0"}})"
      "\n",
      task, args, entity, result);
}

constexpr char kNchw[] =
    R"(["TENSOR", [1, 64, 56, 56], "float32"], ["TENSOR", [128, 64, 3, 3], "float32"], [2, 2], [1, 1, 1, 1], [1, 1], )"
    R"("NCHW", "NCHW", "float32")";

TEST(TvmLogTest, ReadsConvolutionsOfAutoTvm) {
  const TvmLog log =
      Read("# a comment\n\n" +
           AutoTvm("conv2d_NCHWc.x86", kNchw,
                   R"(["tile_ic", "sp", [2, 32]], ["tile_oc", "sp", [2, 64]], ["tile_ow", "sp", [-1, 4]], )"
                   R"(["unroll_kw", "ot", false])",
                   "0.25, 0.75], 0, 1.5"));
  ASSERT_THAT(log.tasks, SizeIs(1));
  EXPECT_EQ(log.tasks[0].output, (Axes{{1, 1}, {28, 1}, {28, 4}, {128, 64}}));
  EXPECT_THAT(log.tasks[0].reduction, ElementsAre(64, 3, 3));
  EXPECT_EQ(log.tasks[0].seconds, 0.5);
  EXPECT_THAT(log.unread, IsEmpty());
}

TEST(TvmLogTest, ReadsTheOtherLayoutsAndKinds) {
  const std::string nhwc =
      R"(["TENSOR", [1, 20, 30, 8], "float32"], ["TENSOR", [5, 3, 8, 16], "float32"], 1, [2, 1], 1)";
  const std::string depthwise =
      R"(["TENSOR", [1, 32, 10, 12], "float32"], ["TENSOR", [32, 2, 3, 3], "float32"], [1, 1], [0, 0], [2, )"
      R"(2], "float32")";
  const std::string dense = R"(["TENSOR", [8, 512], "float32"], ["TENSOR", [1000, 512], "float32"], null, "float32")";
  const std::string batch = R"(["TENSOR", [12, 128, 64], "float32"], ["TENSOR", [12, 96, 64], "float32"])";
  const std::string ok = "1e-3], 0, 1.0";
  const TvmLog log =
      Read(AutoTvm("conv2d_nhwc.x86", nhwc, R"(["tile_oh", "ot", 2])", ok) +
           AutoTvm("depthwise_conv2d_nchw.cuda", depthwise,
                   R"(["tile_f", "sp", [-1, 2, 8, 4]], ["tile_y", "sp", [-1, 1, 2, 3]])", ok) +
           AutoTvm("dense_pack.x86", dense, R"(["tile_y", "sp", [-1, 2, 4]], ["tile_x", "sp", [-1, 2, 20]])", ok) +
           AutoTvm("batch_matmul.x86", batch, R"(["tile_y", "sp", [-1, 8]], ["tile_x", "sp", [-1, 32]])", ok));
  EXPECT_THAT(log.unread, IsEmpty());
  ASSERT_THAT(log.tasks, SizeIs(4));
  EXPECT_EQ(log.tasks[0].output, (Axes{{1, 1}, {20, 2}, {30, 1}, {16, 1}}));
  EXPECT_THAT(log.tasks[0].reduction, ElementsAre(8, 5, 3));
  EXPECT_EQ(log.tasks[1].output, (Axes{{1, 1}, {6, 3}, {8, 1}, {64, 8}})) << "virtual threads are a lane's work";
  EXPECT_THAT(log.tasks[1].reduction, ElementsAre(1, 3, 3));
  EXPECT_EQ(log.tasks[2].output, (Axes{{8, 4}, {1000, 20}}));
  EXPECT_EQ(log.tasks[3].output, (Axes{{12, 1}, {128, 8}, {96, 32}}));
  EXPECT_THAT(log.tasks[3].reduction, ElementsAre(64));
}

TEST(TvmLogTest, ReadsTheTiledStageOfAnsor) {
  const TvmLog log =
      Read(R"({"i": [["[\"0f1e\", 1, 56, 56, 64]", "llvm -mcpu=core-avx2", [2, 64, 64, 0, 0, 0, 0, 0], "", 1, []], )"
           R"([[], [["CI", 1], ["SP", 3, 0, 1, [1, 1, 1], 1], ["SP", 3, 4, 56, [2, 7, 4], 1], ["SP", 3, 8, 48, [1, )"
           R"(1, 14], 1], )"
           R"(["SP", 3, 12, 64, [2, 1, 32], 1], ["SP", 3, 16, 3, [3], 1], ["SP", 3, 18, 5, [1], 1], ["SP", 3, 20, )"
           R"(64, [16], 1], )"
           R"(["RE", 3, [0, 4]], ["FSP", 5, 0, 1, 2], ["SP", 7, 0, 99, [8], 1]]]], "r": [[0.004], 0, 1.2, )"
           R"(1600000000], "v": "v0.6"})"
           "\n");
  ASSERT_THAT(log.tasks, SizeIs(1));
  EXPECT_EQ(log.tasks[0].output, (Axes{{1, 1}, {56, 4}, {48, 14}, {64, 32}}));
  EXPECT_THAT(log.tasks[0].reduction, ElementsAre(3, 5, 64));
}

TEST(TvmLogTest, ReadsTheTileSamplesOfMetaSchedule) {
  const TvmLog log =
      Read(R"(["1234", "AAAA"])"
           "\n"
           R"([0, [[[["GetBlock", [], ["conv"], ["b0"]], ["SamplePerfectTile", ["l1"], [4, 64], ["v1"]], )"
           R"(["SamplePerfectTile", ["l2"], [4, 64], ["v5"]], ["SamplePerfectTile", ["l3"], [2, 64], ["v9"]], )"
           R"(["SampleCategorical", [], [[0, 16], [0.5, 0.5]], ["v11"]]], [[1, [2, 4, 1, 7]], [2, [1, 2, 1, 32]], )"
           R"([3, [16, 4]], [4, 1]]], )"
           R"([0.002, 0.004], {"kind": "llvm"}, []]])"
           "\n");
  ASSERT_THAT(log.tasks, SizeIs(1));
  EXPECT_EQ(log.tasks[0].output, (Axes{{56, 7}, {64, 32}}));
  EXPECT_THAT(log.tasks[0].reduction, ElementsAre(64));
  EXPECT_EQ(log.tasks[0].seconds, 0.003);
  EXPECT_THAT(log.unread, IsEmpty());
}

TEST(TvmLogTest, CountsWhatFailedThere) {
  const TvmLog log =
      Read(AutoTvm("conv2d_NCHWc.x86", kNchw, "", "1000000000.0], 4, 1.5") + R"([0, [[[], []], [1e10], {}, []]])"
                                                                             "\n");
  EXPECT_EQ(log.failed, 2);
  EXPECT_THAT(log.tasks, IsEmpty());
}

TEST(TvmLogTest, ListsWhatCannotBeReadWithItsLines) {
  const std::string ok = "1e-3], 0, 1.0";
  const TvmLog log = Read("not json\n" + AutoTvm("conv2d_winograd.cuda", kNchw, "", ok) +
                          AutoTvm("conv2d_winograd.cuda", kNchw, "", ok) + "[1,2,3]\n{}\n" +
                          AutoTvm("conv2d_nchw.x86", R"(["TENSOR", [1, 8], "float32"])", "", ok) +
                          AutoTvm("conv2d_NCHWc.x86", kNchw, R"(["tile_ow", "sp", [1, 64]])", ok) +
                          R"({"input": 3, "result": [[0.1], 0]})" + "\n" + R"({"i": [], "r": [["x"], 0]})" + "\n" +
                          R"([0, [[[], [[7, [1, 2, 3, 4]]]], [1]]])" + "\n");
  EXPECT_THAT(log.tasks, IsEmpty());
  EXPECT_THAT(log.unread.at("it is not JSON"), ElementsAre(1));
  EXPECT_THAT(log.unread.at("hone knows no tiles for task 'conv2d_winograd.cuda'"), ElementsAre(2, 3));
  EXPECT_THAT(log.unread.at("it is not a record of AutoTVM, Ansor or MetaSchedule"), ElementsAre(4, 5));
  EXPECT_THAT(log.unread.at("its arguments are not those of a 2-D convolution on four dimensions"), ElementsAre(6));
  EXPECT_THAT(log.unread.at("its tiles are larger than its loops"), ElementsAre(7));
  EXPECT_THAT(log.unread.at("its task has no name"), ElementsAre(8));
  EXPECT_THAT(log.unread.at("its times are not numbers"), ElementsAre(9));
  EXPECT_THAT(log.unread.at("no block of it is tiled in several levels"), ElementsAre(10));
}

// Extreme numbers must be refused before anything is computed with them.
TEST(TvmLogTest, RefusesArgumentsThatMakeNoSense) {
  const std::string ok = "1e-3], 0, 1.0";
  const char* const wrong[] = {
      R"(["TENSOR", [1, 64, 56, 56], ""], ["TENSOR", [128, 64, 300, 3], ""], 1, 0, 1)",
      R"(["TENSOR", [1, 64, 56, 56], ""], ["TENSOR", [128, 64, 3, 3], ""], 1, [4611686018427387904, 1], 1)",
      R"(["TENSOR", [1, 64, -56, 56], ""], ["TENSOR", [128, 64, 3, 3], ""], 1, 0, 1)",
      R"(["TENSOR", [1, 64, 0, 56], ""], ["TENSOR", [128, 64, 3, 3], ""], 1, 0, 1)",
      R"(["TENSOR", [1, 64, 9223372036854775807, 56], ""], ["TENSOR", [128, 64, 3, 3], ""], 1, 0, 1)",
      R"(["TENSOR", [1, 64, 56, 56], ""], ["TENSOR", [128, 64, 3, 3], ""], 1, 9223372036854775807, 1)",
      R"(["TENSOR", [1, 64, 56, 56], ""], ["TENSOR", [128, 64, 3, 3], ""], 1, 0, 9223372036854775807)"};
  for (const char* args : wrong) EXPECT_THAT(Read(AutoTvm("conv2d_nchw.x86", args, "", ok)).unread, SizeIs(1)) << args;
}

// The reader multiplies adjacent loop extents to find a hint. The product of the second hint's tiles is 2^64 + 4, which
// overflows.
TEST(TvmLogTest, RefusesLoopsThatAreNoNumberTogether) {
  const std::string ok = "1e-3], 0, 1.0";
  const TvmLog log = Read(
      AutoTvm("batch_matmul.x86",
              R"(["TENSOR", [2147483648, 2147483648, 64], ""], ["TENSOR", [2147483648, 2147483648, 64], ""])", "", ok) +
      R"({"i": [[], [[], [["SP", 3, 0, 64, [769546, 1, 494770, 48448661], 1]]]], )"
      R"("r": [[0.004], 0]})"
      "\n");
  EXPECT_THAT(log.tasks, IsEmpty());
  EXPECT_THAT(log.unread.at("its loops are longer than any tensor"), ElementsAre(1));
  EXPECT_THAT(log.unread.at("its tiles are larger than its loops"), ElementsAre(2));
}

// A stream of this many bytes without a line end.
class LongLine : public std::streambuf {
 public:
  explicit LongLine(int64_t blocks) : blocks_(blocks) {}
  int64_t blocks() const { return blocks_; }

 protected:
  int_type underflow() override {
    if (blocks_ == 0) return traits_type::eof();
    --blocks_;
    setg(block_.data(), block_.data(), block_.data() + block_.size());
    return 'x';
  }

 private:
  std::string block_ = std::string(1 << 20, 'x');
  int64_t blocks_;
};

TEST(TvmLogTest, ReadsNoMoreOfALineThanALogHas) {
  LongLine whole(16), endless(64);
  std::istream fits(&whole), text(&endless);
  const absl::StatusOr<TvmLog> log = ReadTvmLog(fits);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_THAT(log->unread.at("it is not JSON"), ElementsAre(1));
  const absl::Status refused = ReadTvmLog(text).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("line 1 has more than 16 MiB"));
  EXPECT_GE(endless.blocks(), 64 - 17) << "the rest may be a disk full of it";
}

ir::Workload Parse(const std::string& text) {
  absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

const char kConvolution[] =
    "workload \"conv2d\" input p0: f32[1,58,58,64] const p1: f32[128,64,3,3] "
    "t0: f32[1,28,28,128] over i0:1, i1:28, i2:28, i3:128 = sum i4:64, i5:3, i6:3 of "
    "p0[i0, i1 * 2 + i5, i2 * 2 + i6, i4] * p1[i3, i4, i5, i6] "
    "t1: f32[1,28,28,128] over i7:1, i8:28, i9:28, i10:128 = max(t0[i7, i8, i9, i10], 0.0f32) output t1";

TEST(HintsTest, AreOfTheTaskWithTheSameLoops) {
  const std::vector<TiledTask> tasks = FastestFirst({{{{1, 1}, {28, 1}, {28, 4}, {128, 64}}, {64, 3, 3}, 0.5},
                                                     {{{1, 1}, {28, 2}, {28, 7}, {128, 32}}, {64, 3, 3}, 0.25},
                                                     {{{1, 1}, {28, 2}, {28, 7}, {128, 32}}, {64, 3, 3}, 0.75},
                                                     {{{1, 1}, {28, 1}, {28, 2}, {128, 64}}, {64, 5, 3}, 0.1},
                                                     {{{1, 1}, {27, 1}, {28, 2}, {128, 64}}, {64, 3, 3}, 0.1}});
  const space::TileHint fast = {{1, 28, 28, 128}, {1, 2, 7, 32}}, slow = {{1, 28, 28, 128}, {1, 1, 4, 64}};
  EXPECT_THAT(HintsFor(Parse(kConvolution), tasks, 3), ElementsAre(fast, slow));
  EXPECT_THAT(HintsFor(Parse(kConvolution), tasks, 1), ElementsAre(fast));
}

TEST(HintsTest, PixelsOfASmallConvolutionAreRowsOfAProduct) {
  const ir::Workload product = Parse(
      "workload \"matmul\" input p0: f32[784,64] const p1: f32[64,128] "
      "t0: f32[784,128] over i0:784, i1:128 = sum i2:64 of p0[i0, i2] * p1[i2, i1] output t0");
  const std::vector<TiledTask> tasks = {{{{1, 1}, {28, 2}, {28, 7}, {128, 32}}, {64, 1, 1}, 0.5}};
  EXPECT_THAT(HintsFor(product, tasks, 3), ElementsAre(space::TileHint{{784, 128}, {14, 32}}));
}

TEST(HintsTest, SpacesPreferThem) {
  const ir::Workload workload = Parse(kConvolution);
  const target::Target target = *target::ParseTarget("x86_64 -mcpu=x86-64-v3 -threads=2");
  const auto value = [&](const space::Decisions& decisions, std::string_view name) {
    for (const space::Decision& d : decisions) {
      if (d.name == name) return d.value;
    }
    return int64_t{-1};
  };
  for (const auto& [vectors, rows] : {std::pair(1, 7), std::pair(2, 4), std::pair(3, 2)}) {
    const space::TileHint hint = {{1, 28, 28, 128}, {1, 1, rows, 8 * vectors}};
    const std::vector<space::Decisions> hinted = space::Hinted(workload, target, hint);
    ASSERT_THAT(hinted, SizeIs(2)) << "the template and the sketch";
    EXPECT_EQ(value(hinted[0], "vectors"), vectors);
    EXPECT_EQ(value(hinted[0], "rows"), rows);
    EXPECT_EQ(value(hinted[1], "vectors"), vectors);
    EXPECT_EQ(value(hinted[1], "s3.2"), rows);
  }
  const std::vector<space::Decisions> other = space::Hinted(workload, target, {{1, 28, 28, 64}, {1, 1, 1, 8}});
  ASSERT_THAT(other, SizeIs(2));
  EXPECT_EQ(space::Print(other[0]), space::Print(space::Default(workload, target)->decisions))
      << "not of this workload";
}

TEST(HintsTest, SpacesTakeWhatFitsOfAHintThatIsTooLarge) {
  const ir::Workload workload = Parse(kConvolution);
  const target::Target target = *target::ParseTarget("x86_64 -mcpu=x86-64-v3 -threads=2");
  EXPECT_THAT(space::Hinted(workload, target, {{1, 28, 28, 128}, {1, 28, 28, 128}}), SizeIs(2));
  EXPECT_THAT(space::Hinted(workload, target, {{1, 28, 28, 128}, {1, 1, 1, 1}}), SizeIs(2));
}

TEST(TileHintTest, IsTextAndNothingElse) {
  const space::TileHint hint = {{1, 56, 64}, {1, 7, 32}};
  EXPECT_EQ(space::Print(hint), "1x56x64:1x7x32");
  EXPECT_EQ(*space::ParseTileHint("1x56x64:1x7x32"), hint);
  for (const char* wrong : {"", ":", "1", "1x2", "1:", ":1", "1x2:1", "1:1x2", "1x:1", "1x2:1x", "1x2:1x3", "1x2:0x1",
                            "1x2:1x2:1x2", "a:b", "4:-1", "4:2 ", " 4:2", "99999999999999999999:1", "4;2"}) {
    EXPECT_FALSE(space::ParseTileHint(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace hone::tuner
