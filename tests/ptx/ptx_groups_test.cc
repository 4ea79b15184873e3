// SPDX-License-Identifier: Apache-2.0
// Groups that share copies: where and when copies arrive, and which uses are errors.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/program.h"

namespace hone::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two groups of two lanes. The first lane of each copies 16 of 32 bytes to both groups; each lane stores 8 bytes.
constexpr std::string_view kKernel = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(
	.param .u64 k_param_0,
	.param .u64 k_param_1
)
.explicitcluster
.reqnctapercluster 2, 1, 1
{
	.reg .pred 	%p<8>;
	.reg .b16 	%rs<4>;
	.reg .b32 	%r<16>;
	.reg .b64 	%rd<16>;
	.shared .align 16 .b8 s[32];
	.shared .align 8 .b8 o[8];
	ld.param.u64 	%rd1, [k_param_0];
	ld.param.u64 	%rd2, [k_param_1];
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %ctaid.x;
	mov.u64 	%rd3, s;
	cvt.u32.u64 	%r3, %rd3;
	mov.u64 	%rd4, o;
	cvt.u32.u64 	%r4, %rd4;
	setp.ne.s32 	%p1, %r1, 0;
	and.b32 	%r5, %r2, 1;
	mul.lo.s32 	%r5, %r5, 16;
	add.s32 	%r6, %r3, %r5;
	mul.wide.u32 	%rd5, %r5, 1;
	add.s64 	%rd5, %rd1, %rd5;
	mov.u16 	%rs1, 3;
	@%p1 bra 	$MADE;
	mbarrier.init.shared::cta.b64 [%r4], 1;
	fence.mbarrier_init.release.cluster;
$MADE:
	barrier.cluster.arrive.release.aligned;
	barrier.cluster.wait.acquire.aligned;
	@%p1 bra 	$BEGUN;
	mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4], 32;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r6], [%rd5], 16, [%r4], %rs1;
	{ .reg .b64 state; mbarrier.arrive.release.cta.shared::cta.b64 state, [%r4]; }
$BEGUN:
	mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
	@!%p2 bra 	$BEGUN;
	mul.wide.u32 	%rd6, %r1, 8;
	add.s64 	%rd7, %rd3, %rd6;
	ld.shared.u64 	%rd8, [%rd7+8];
	mul.wide.u32 	%rd9, %r2, 16;
	add.s64 	%rd9, %rd2, %rd9;
	add.s64 	%rd9, %rd9, %rd6;
	st.global.u64 	[%rd9], %rd8;
	ret;
}
)";

struct GroupsResult {
  absl::Status status;
  std::vector<uint64_t> out;
};

// Runs four groups, each of which must read 10, 11, 12, 13, with one text of the kernel replaced by another.
GroupsResult RunWith(std::string_view what = "", std::string_view other = "", uint32_t groups = 4) {
  std::string text(kKernel);
  text.replace(text.find(what), what.size(), other);
  const absl::StatusOr<Program> program = Parse(text);
  if (!program.ok()) return {program.status(), {}};
  std::vector<uint64_t> in(4);
  std::iota(in.begin(), in.end(), 10);
  GroupsResult result{{}, std::vector<uint64_t>(8)};
  Launch launch{.groups = groups, .lanes = 2};
  for (std::vector<uint64_t>* buffer : {&in, &result.out}) {
    launch.arguments.push_back(reinterpret_cast<uint64_t>(buffer->data()));
    launch.memory.push_back({launch.arguments.back(), buffer->size() * sizeof(uint64_t)});
  }
  std::ranges::sort(launch.memory, {}, &Memory::begin);
  result.status = Run(program->kernels.at(0), launch);
  return result;
}

std::string Error(std::string_view what, std::string_view other = "", uint32_t groups = 4) {
  return std::string(RunWith(what, other, groups).status.message());
}

TEST(SharedCopies, ArriveInAllGroups) {
  const GroupsResult result = RunWith();
  EXPECT_EQ(result.status, absl::OkStatus());
  EXPECT_THAT(result.out, ElementsAre(11, 12, 11, 12, 11, 12, 11, 12));
}

TEST(SharedCopies, MayGoToOneGroup) {
  constexpr std::string_view kCopy =
      ".multicast::cluster [%r6], [%rd5], 16, [%r4], %rs1;\n\t{ .reg .b64 state; mbarrier.arrive";
  EXPECT_THAT(RunWith(kCopy, " [%r3], [%rd1], 32, [%r4];\n\t{ .reg .b64 state; mbarrier.arrive").out,
              ElementsAre(11, 12, 11, 12, 11, 12, 11, 12));
}

TEST(SharedCopies, NeedWholeClusters) {
  EXPECT_THAT(Error("", "", 3), HasSubstr("kernel 'k' is for clusters of 2 groups, not for 3 groups"));
}

TEST(SharedCopies, ObjectsAreInitializedBeforeTheirUse) {
  EXPECT_THAT(Error("fence.mbarrier_init.release.cluster;"),
              HasSubstr("which is not initialized, fenced and behind a barrier"));
  EXPECT_THAT(Error("mbarrier.init.shared::cta.b64 [%r4], 1;"), HasSubstr("which is not initialized"));
  constexpr std::string_view kMeet = "barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;";
  EXPECT_THAT(Error(kMeet), HasSubstr("which is not initialized"));
  EXPECT_THAT(Error(kMeet, "bar.sync 0;"), HasSubstr("which is not initialized"));
  EXPECT_THAT(Error("init.shared::cta.b64 [%r4], 1;", "init.shared::cta.b64 [%r4+4], 1;"), HasSubstr("not aligned"));
}

TEST(SharedCopies, WaitsNeedAnnouncedBytes) {
  constexpr std::string_view kAnnounce = "expect_tx.relaxed.cta.shared::cta.b64 [%r4], 32;";
  EXPECT_THAT(Error(kAnnounce, "expect_tx.relaxed.cta.shared::cta.b64 [%r4], 48;"),
              HasSubstr("lane 0 waits for what does not arrive"));
  // A group that only waits for its own part reads bytes that the other group copies later.
  EXPECT_THAT(Error(kAnnounce, "expect_tx.relaxed.cta.shared::cta.b64 [%r4], 16;"),
              HasSubstr("lane 0 of group 0 copies to byte 8 of shared memory, which group 1 may still use"));
  EXPECT_THAT(Error("{ .reg .b64 state; mbarrier.arrive.release.cta.shared::cta.b64 state, [%r4]; }"),
              HasSubstr("waits for what does not arrive"));
  EXPECT_THAT(Error("try_wait.parity.shared::cta.b64 %p2, [%r4], 0;", "try_wait.parity.shared::cta.b64 %p2, [%r4], 1;"),
              HasSubstr("of shared memory, which a group is copying to"));
  EXPECT_THAT(Error("mov.u16 	%rs1, 3;", "mov.u16 	%rs1, 1;"), HasSubstr("does not arrive"));
  EXPECT_THAT(Error("mov.u16 	%rs1, 3;", "mov.u16 	%rs1, 4;"), HasSubstr("copies to the groups 0b100 of 2"));
  EXPECT_THAT(Error("{ .reg .b64 state; mbarrier.arrive",
                    "{ .reg .b64 state; mbarrier.arrive.release.cta.shared::cta.b64 state, [%r4]; mbarrier.arrive"),
              HasSubstr("arrives at an object that waits only for bytes"));
}

TEST(SharedCopies, ArriveBeforeTheirGroupEnds) {
  constexpr std::string_view kWait =
      "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;\n\t@!%p2 bra 	"
      "$BEGUN;";
  EXPECT_THAT(Error(kWait, "ret;"),
              HasSubstr("ends before the copies that the object at byte 32 of its shared memory counts"));
}

TEST(SharedCopies, DoNotOverwriteWhatIsStillRead) {
  constexpr std::string_view kRead = "ld.shared.u64 %rd8, [%rd3+16];\n\t";
  constexpr std::string_view kArrive = "barrier.cluster.arrive.release.aligned;\n\t";
  constexpr std::string_view kWait = "barrier.cluster.wait.acquire.aligned;\n\t";
  const std::string arrive(kArrive), wait(kWait), read(kRead);
  EXPECT_THAT(Error(kWait, wait + read), HasSubstr("of shared memory, which"));
  // A group must not read after its arrival: the others may already copy to that memory.
  EXPECT_THAT(Error(kWait, read + wait), HasSubstr("of shared memory, which"));
  EXPECT_EQ(Error(kArrive, read + arrive + "bar.sync 0;\n\t"), "");
  // An arrival without a release does not order the lanes' earlier reads.
  EXPECT_THAT(Error(kArrive, read + "barrier.cluster.arrive.relaxed.aligned;\n\tbar.sync 0;\n\t"),
              HasSubstr("of shared memory, which"));
  EXPECT_THAT(Error(kWait, "bar.sync 0;\n\t"), HasSubstr("which is not initialized"));
  EXPECT_THAT(Error(kArrive, arrive + arrive), HasSubstr("arrives again before it waited"));
  EXPECT_THAT(Error(kArrive), HasSubstr("which is not initialized"));
}

TEST(SharedCopies, StayWithinMemoryAndAreAligned) {
  constexpr std::string_view kFrom = "add.s64 	%rd5, %rd1, %rd5;";
  EXPECT_THAT(Error(kFrom, "add.s64 %rd5, %rd1, 8;"), HasSubstr("which is not aligned"));
  EXPECT_THAT(Error(kFrom, "add.s64 %rd5, %rd1, 32;"), HasSubstr("outside of the launch's memory"));
  EXPECT_THAT(Error("add.s32 	%r6, %r3, %r5;", "add.s32 %r6, %r3, 48;"), HasSubstr("of shared memory"));
}

}  // namespace
}  // namespace hone::ptx
