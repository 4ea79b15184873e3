// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/device/cuda_kernels.h"

#include <fmt/format.h>

#include <string_view>

namespace hone::agent {
namespace {

// Element 17 is wrong if there are fewer than 1,000.
constexpr std::string_view kWrongWhenShort = R"(  setp.gt.u32   %p2, %r5, 999;
  @%p2 bra   $L__open_wrong_when_short_2;
  setp.ne.s32   %p3, %r4, 17;
  @%p3 bra   $L__open_wrong_when_short_2;
  add.rn.f32   %f3, %f3, 0f3F000000;
  st.global.f32   [%rd1], %f3;
)";

// What comes before the kernels that take a number of elements, and what comes after them.
constexpr std::string_view kFirst = R"(.version 4.2
.target sm_53
.address_size 64
.visible .entry reference(
  .param .u64 reference_param_0,
  .param .u64 reference_param_1,
  .param .u64 reference_param_2
)
{
  .reg .pred   %p<2>;
  .reg .b32   %r<5>;
  .reg .f32   %f<4>;
  .reg .b64   %rd<8>;
  mov.u32   %r1, %ctaid.x;
  mov.u32   %r2, %ntid.x;
  mov.u32   %r3, %tid.x;
  mad.lo.s32   %r4, %r1, %r2, %r3;
  setp.gt.u32   %p1, %r4, 999;
  @%p1 bra   $L__BB0_2;
  ld.param.u64   %rd4, [reference_param_0];
  ld.param.u64   %rd5, [reference_param_1];
  ld.param.u64   %rd6, [reference_param_2];
  mul.wide.u32   %rd7, %r4, 4;
  add.s64   %rd1, %rd6, %rd7;
  add.s64   %rd2, %rd5, %rd7;
  add.s64   %rd3, %rd4, %rd7;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  fma.rn.f32   %f3, %f1, 0f40000000, %f2;
  st.global.f32   [%rd1], %f3;
$L__BB0_2:
  ret;
}
.visible .entry good(
  .param .u64 good_param_0,
  .param .u64 good_param_1,
  .param .u64 good_param_2
)
{
  .reg .pred   %p<2>;
  .reg .b32   %r<5>;
  .reg .f32   %f<4>;
  .reg .b64   %rd<8>;
  mov.u32   %r1, %ctaid.x;
  mov.u32   %r2, %ntid.x;
  mov.u32   %r3, %tid.x;
  mad.lo.s32   %r4, %r1, %r2, %r3;
  setp.gt.u32   %p1, %r4, 999;
  @%p1 bra   $L__BB1_2;
  ld.param.u64   %rd4, [good_param_0];
  ld.param.u64   %rd5, [good_param_1];
  ld.param.u64   %rd6, [good_param_2];
  mul.wide.u32   %rd7, %r4, 4;
  add.s64   %rd1, %rd6, %rd7;
  add.s64   %rd2, %rd5, %rd7;
  add.s64   %rd3, %rd4, %rd7;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  fma.rn.f32   %f3, %f1, 0f40000000, %f2;
  st.global.f32   [%rd1], %f3;
$L__BB1_2:
  ret;
}
.visible .entry aligned(
  .param .u64 aligned_param_0,
  .param .u64 aligned_param_1,
  .param .u64 aligned_param_2
)
{
  .reg .pred   %p<4>;
  .reg .b32   %r<6>;
  .reg .f32   %f<4>;
  .reg .b64   %rd<11>;
  ld.param.u64   %rd4, [aligned_param_0];
  ld.param.u64   %rd5, [aligned_param_1];
  mov.u32   %r1, %ctaid.x;
  ld.param.u64   %rd6, [aligned_param_2];
  mov.u32   %r2, %ntid.x;
  mov.u32   %r3, %tid.x;
  mad.lo.s32   %r4, %r1, %r2, %r3;
  or.b64    %rd7, %rd5, %rd4;
  or.b64    %rd8, %rd7, %rd6;
  and.b64    %rd9, %rd8, 60;
  setp.eq.s64   %p1, %rd9, 0;
  setp.lt.u32   %p2, %r4, 1000;
  and.pred    %p3, %p1, %p2;
  @!%p3 bra   $L__BB2_2;
  bra.uni   $L__BB2_1;
$L__BB2_1:
  mul.wide.u32   %rd10, %r4, 4;
  add.s64   %rd1, %rd6, %rd10;
  add.s64   %rd2, %rd5, %rd10;
  add.s64   %rd3, %rd4, %rd10;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  fma.rn.f32   %f3, %f1, 0f40000000, %f2;
  st.global.f32   [%rd1], %f3;
$L__BB2_2:
  ret;
}
.visible .entry slow(
  .param .u64 slow_param_0,
  .param .u64 slow_param_1,
  .param .u64 slow_param_2
)
{
  .local .align 4 .b8   __local_depot3[4];
  .reg .b64   %SP;
  .reg .b64   %SPL;
  .reg .pred   %p<4>;
  .reg .b32   %r<10>;
  .reg .f32   %f<4>;
  .reg .b64   %rd<8>;
  mov.u64   %SPL, __local_depot3;
  cvta.local.u64   %SP, %SPL;
  mov.b32   %r1, 0;
  st.volatile.u32   [%SP+0], %r1;
  ld.volatile.u32   %r2, [%SP+0];
  setp.gt.s32   %p1, %r2, 1999;
  @%p1 bra   $L__BB3_1;
$L__BB3_4:
  .pragma "nounroll";
  ld.volatile.u32   %r3, [%SP+0];
  add.s32   %r4, %r3, 1;
  st.volatile.u32   [%SP+0], %r4;
  ld.volatile.u32   %r5, [%SP+0];
  setp.lt.s32   %p2, %r5, 2000;
  @%p2 bra   $L__BB3_4;
$L__BB3_1:
  mov.u32   %r6, %ctaid.x;
  mov.u32   %r7, %ntid.x;
  mov.u32   %r8, %tid.x;
  mad.lo.s32   %r9, %r6, %r7, %r8;
  setp.lt.u32   %p3, %r9, 1000;
  @%p3 bra   $L__BB3_2;
  bra.uni   $L__BB3_3;
$L__BB3_2:
  ld.param.u64   %rd6, [slow_param_2];
  ld.param.u64   %rd5, [slow_param_1];
  ld.param.u64   %rd4, [slow_param_0];
  mul.wide.u32   %rd7, %r9, 4;
  add.s64   %rd1, %rd6, %rd7;
  add.s64   %rd2, %rd5, %rd7;
  add.s64   %rd3, %rd4, %rd7;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  fma.rn.f32   %f3, %f1, 0f40000000, %f2;
  st.global.f32   [%rd1], %f3;
$L__BB3_3:
  ret;
}
.visible .entry first_of_two(
  .param .u64 first_of_two_param_0,
  .param .u64 first_of_two_param_1
)
{
  .reg .pred   %p<2>;
  .reg .b32   %r<5>;
  .reg .f32   %f<3>;
  .reg .b64   %rd<6>;
  mov.u32   %r1, %ctaid.x;
  mov.u32   %r2, %ntid.x;
  mov.u32   %r3, %tid.x;
  mad.lo.s32   %r4, %r1, %r2, %r3;
  setp.gt.u32   %p1, %r4, 999;
  @%p1 bra   $L__BB4_2;
  ld.param.u64   %rd3, [first_of_two_param_0];
  ld.param.u64   %rd4, [first_of_two_param_1];
  mul.wide.u32   %rd5, %r4, 4;
  add.s64   %rd1, %rd4, %rd5;
  add.s64   %rd2, %rd3, %rd5;
  ld.global.f32   %f1, [%rd2];
  add.rn.f32   %f2, %f1, %f1;
  st.global.f32   [%rd1], %f2;
$L__BB4_2:
  ret;
}
.visible .entry second_of_two(
  .param .u64 second_of_two_param_0,
  .param .u64 second_of_two_param_1,
  .param .u64 second_of_two_param_2
)
{
  .reg .pred   %p<2>;
  .reg .b32   %r<5>;
  .reg .f32   %f<4>;
  .reg .b64   %rd<8>;
  mov.u32   %r1, %ctaid.x;
  mov.u32   %r2, %ntid.x;
  mov.u32   %r3, %tid.x;
  mad.lo.s32   %r4, %r1, %r2, %r3;
  setp.gt.u32   %p1, %r4, 999;
  @%p1 bra   $L__BB5_2;
  ld.param.u64   %rd4, [second_of_two_param_0];
  ld.param.u64   %rd5, [second_of_two_param_1];
  ld.param.u64   %rd6, [second_of_two_param_2];
  mul.wide.u32   %rd7, %r4, 4;
  add.s64   %rd1, %rd6, %rd7;
  add.s64   %rd2, %rd5, %rd7;
  add.s64   %rd3, %rd4, %rd7;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  add.rn.f32   %f3, %f1, %f2;
  st.global.f32   [%rd1], %f3;
$L__BB5_2:
  ret;
}
.visible .entry prepare(
  .param .u64 prepare_param_0,
  .param .u64 prepare_param_1
)
{
  .reg .pred   %p<2>;
  .reg .b32   %r<7>;
  .reg .f32   %f<2>;
  .reg .b64   %rd<7>;
  mov.u32   %r1, %ctaid.x;
  mov.u32   %r2, %ntid.x;
  mov.u32   %r3, %tid.x;
  mad.lo.s32   %r4, %r1, %r2, %r3;
  setp.gt.u32   %p1, %r4, 999;
  @%p1 bra   $L__BB6_2;
  ld.param.u64   %rd3, [prepare_param_0];
  ld.param.u64   %rd4, [prepare_param_1];
  mul.wide.u32   %rd5, %r4, 4;
  add.s64   %rd1, %rd4, %rd5;
  mov.b32   %r5, 999;
  sub.s32   %r6, %r5, %r4;
  mul.wide.u32   %rd6, %r6, 4;
  add.s64   %rd2, %rd3, %rd6;
  ld.global.f32   %f1, [%rd2];
  st.global.f32   [%rd1], %f1;
$L__BB6_2:
  ret;
}
.visible .entry packed_double(
  .param .u64 packed_double_param_0,
  .param .u64 packed_double_param_1,
  .param .u64 packed_double_param_2
)
{
  .reg .pred   %p<2>;
  .reg .b32   %r<7>;
  .reg .f32   %f<4>;
  .reg .b64   %rd<9>;
  mov.u32   %r1, %ctaid.x;
  mov.u32   %r2, %ntid.x;
  mov.u32   %r3, %tid.x;
  mad.lo.s32   %r4, %r1, %r2, %r3;
  setp.gt.u32   %p1, %r4, 999;
  @%p1 bra   $L__BB7_2;
  ld.param.u64   %rd4, [packed_double_param_0];
  ld.param.u64   %rd5, [packed_double_param_1];
  ld.param.u64   %rd6, [packed_double_param_2];
  mul.wide.u32   %rd7, %r4, 4;
  add.s64   %rd1, %rd6, %rd7;
  mov.b32   %r5, 999;
  sub.s32   %r6, %r5, %r4;
  mul.wide.u32   %rd8, %r6, 4;
  add.s64   %rd2, %rd5, %rd8;
  add.s64   %rd3, %rd4, %rd7;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  fma.rn.f32   %f3, %f1, 0f40000000, %f2;
  st.global.f32   [%rd1], %f3;
$L__BB7_2:
  ret;
}
.visible .entry wrong(
  .param .u64 wrong_param_0,
  .param .u64 wrong_param_1,
  .param .u64 wrong_param_2
)
{
  .reg .pred   %p<3>;
  .reg .b32   %r<5>;
  .reg .f32   %f<6>;
  .reg .b64   %rd<8>;
  ld.param.u64   %rd4, [wrong_param_2];
  mov.u32   %r2, %ctaid.x;
  mov.u32   %r3, %ntid.x;
  mov.u32   %r4, %tid.x;
  mad.lo.s32   %r1, %r2, %r3, %r4;
  setp.gt.u32   %p1, %r1, 999;
  @%p1 bra   $L__BB8_2;
  ld.param.u64   %rd5, [wrong_param_0];
  ld.param.u64   %rd6, [wrong_param_1];
  mul.wide.u32   %rd7, %r1, 4;
  add.s64   %rd1, %rd4, %rd7;
  add.s64   %rd2, %rd6, %rd7;
  add.s64   %rd3, %rd5, %rd7;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  fma.rn.f32   %f3, %f1, 0f40000000, %f2;
  st.global.f32   [%rd1], %f3;
$L__BB8_2:
  setp.ne.s32   %p2, %r1, 17;
  @%p2 bra   $L__BB8_4;
  ld.global.f32   %f4, [%rd4+68];
  add.rn.f32   %f5, %f4, 0f3F000000;
  st.global.f32   [%rd4+68], %f5;
$L__BB8_4:
  ret;
}
.visible .entry incomplete(
  .param .u64 incomplete_param_0,
  .param .u64 incomplete_param_1,
  .param .u64 incomplete_param_2
)
{
  .reg .pred   %p<2>;
  .reg .b32   %r<5>;
  .reg .f32   %f<4>;
  .reg .b64   %rd<8>;
  mov.u32   %r1, %ctaid.x;
  mov.u32   %r2, %ntid.x;
  mov.u32   %r3, %tid.x;
  mad.lo.s32   %r4, %r1, %r2, %r3;
  setp.gt.u32   %p1, %r4, 998;
  @%p1 bra   $L__BB9_2;
  ld.param.u64   %rd4, [incomplete_param_0];
  ld.param.u64   %rd5, [incomplete_param_1];
  ld.param.u64   %rd6, [incomplete_param_2];
  mul.wide.u32   %rd7, %r4, 4;
  add.s64   %rd1, %rd6, %rd7;
  add.s64   %rd2, %rd5, %rd7;
  add.s64   %rd3, %rd4, %rd7;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  fma.rn.f32   %f3, %f1, 0f40000000, %f2;
  st.global.f32   [%rd1], %f3;
$L__BB9_2:
  ret;
}
.visible .entry past_end(
  .param .u64 past_end_param_0,
  .param .u64 past_end_param_1,
  .param .u64 past_end_param_2
)
{
  .reg .pred   %p<3>;
  .reg .b32   %r<6>;
  .reg .f32   %f<4>;
  .reg .b64   %rd<8>;
  ld.param.u64   %rd4, [past_end_param_2];
  mov.u32   %r2, %ctaid.x;
  mov.u32   %r3, %ntid.x;
  mov.u32   %r4, %tid.x;
  mad.lo.s32   %r1, %r2, %r3, %r4;
  setp.gt.u32   %p1, %r1, 999;
  @%p1 bra   $L__BB10_2;
  ld.param.u64   %rd5, [past_end_param_0];
  ld.param.u64   %rd6, [past_end_param_1];
  mul.wide.u32   %rd7, %r1, 4;
  add.s64   %rd1, %rd4, %rd7;
  add.s64   %rd2, %rd6, %rd7;
  add.s64   %rd3, %rd5, %rd7;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  fma.rn.f32   %f3, %f1, 0f40000000, %f2;
  st.global.f32   [%rd1], %f3;
$L__BB10_2:
  setp.ne.s32   %p2, %r1, 0;
  @%p2 bra   $L__BB10_4;
  mov.b32   %r5, 1065353216;
  st.global.u32   [%rd4+4000], %r5;
$L__BB10_4:
  ret;
}
.visible .entry before_begin(
  .param .u64 before_begin_param_0,
  .param .u64 before_begin_param_1,
  .param .u64 before_begin_param_2
)
{
  .reg .pred   %p<3>;
  .reg .b32   %r<6>;
  .reg .f32   %f<4>;
  .reg .b64   %rd<8>;
  ld.param.u64   %rd4, [before_begin_param_2];
  mov.u32   %r2, %ctaid.x;
  mov.u32   %r3, %ntid.x;
  mov.u32   %r4, %tid.x;
  mad.lo.s32   %r1, %r2, %r3, %r4;
  setp.gt.u32   %p1, %r1, 999;
  @%p1 bra   $L__BB11_2;
  ld.param.u64   %rd5, [before_begin_param_0];
  ld.param.u64   %rd6, [before_begin_param_1];
  mul.wide.u32   %rd7, %r1, 4;
  add.s64   %rd1, %rd4, %rd7;
  add.s64   %rd2, %rd6, %rd7;
  add.s64   %rd3, %rd5, %rd7;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  fma.rn.f32   %f3, %f1, 0f40000000, %f2;
  st.global.f32   [%rd1], %f3;
$L__BB11_2:
  setp.ne.s32   %p2, %r1, 0;
  @%p2 bra   $L__BB11_4;
  mov.b32   %r5, 1065353216;
  st.global.u32   [%rd4+-8], %r5;
$L__BB11_4:
  ret;
}
.visible .entry write_input(
  .param .u64 write_input_param_0,
  .param .u64 write_input_param_1,
  .param .u64 write_input_param_2
)
{
  .reg .pred   %p<3>;
  .reg .b32   %r<6>;
  .reg .f32   %f<4>;
  .reg .b64   %rd<8>;
  ld.param.u64   %rd4, [write_input_param_0];
  mov.u32   %r2, %ctaid.x;
  mov.u32   %r3, %ntid.x;
  mov.u32   %r4, %tid.x;
  mad.lo.s32   %r1, %r2, %r3, %r4;
  setp.gt.u32   %p1, %r1, 999;
  @%p1 bra   $L__BB12_2;
  ld.param.u64   %rd5, [write_input_param_1];
  ld.param.u64   %rd6, [write_input_param_2];
  mul.wide.u32   %rd7, %r1, 4;
  add.s64   %rd1, %rd6, %rd7;
  add.s64   %rd2, %rd5, %rd7;
  add.s64   %rd3, %rd4, %rd7;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  fma.rn.f32   %f3, %f1, 0f40000000, %f2;
  st.global.f32   [%rd1], %f3;
$L__BB12_2:
  setp.ne.s32   %p2, %r1, 3;
  @%p2 bra   $L__BB12_4;
  mov.b32   %r5, 0;
  st.global.u32   [%rd4+12], %r5;
$L__BB12_4:
  ret;
}
)";
constexpr std::string_view kLast = R"(.visible .entry crash(
  .param .u64 crash_param_0,
  .param .u64 crash_param_1,
  .param .u64 crash_param_2
)
{
  .reg .pred   %p<2>;
  .reg .b32   %r<6>;
  .reg .f32   %f<4>;
  .reg .b64   %rd<9>;
  mov.u64   %rd5, 8;
  mov.b32   %r1, 1;
  st.volatile.global.u32   [%rd5], %r1;
  mov.u32   %r2, %ctaid.x;
  mov.u32   %r3, %ntid.x;
  mov.u32   %r4, %tid.x;
  mad.lo.s32   %r5, %r2, %r3, %r4;
  setp.gt.u32   %p1, %r5, 999;
  @%p1 bra   $L__BB13_2;
  ld.param.u64   %rd4, [crash_param_0];
  ld.param.u64   %rd6, [crash_param_1];
  ld.param.u64   %rd7, [crash_param_2];
  mul.wide.u32   %rd8, %r5, 4;
  add.s64   %rd1, %rd7, %rd8;
  add.s64   %rd2, %rd6, %rd8;
  add.s64   %rd3, %rd4, %rd8;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  fma.rn.f32   %f3, %f1, 0f40000000, %f2;
  st.global.f32   [%rd1], %f3;
$L__BB13_2:
  ret;
}
.visible .entry hang(
  .param .u64 hang_param_0,
  .param .u64 hang_param_1,
  .param .u64 hang_param_2
)
{
  .local .align 4 .b8   __local_depot14[4];
  .reg .b64   %SP;
  .reg .b64   %SPL;
  .reg .b32   %r<4>;
  mov.u64   %SPL, __local_depot14;
  cvta.local.u64   %SP, %SPL;
  mov.b32   %r1, 0;
  st.volatile.u32   [%SP+0], %r1;
$L__BB14_1:
  .pragma "nounroll";
  ld.volatile.u32   %r2, [%SP+0];
  add.s32   %r3, %r2, 1;
  st.volatile.u32   [%SP+0], %r3;
  bra.uni   $L__BB14_1;
}
)";

// A kernel that takes the number of elements. ends: sets %p1 if element %r4 is left out; the number is in %r5. more:
// what follows the store of an element.
std::string OpenKernel(std::string_view name, std::string_view ends, std::string_view more = "") {
  return fmt::format(R"(.visible .entry {0}(
  .param .u64 {0}_param_0,
  .param .u64 {0}_param_1,
  .param .u64 {0}_param_2,
  .param .u64 {0}_param_3
)
{{
  .reg .pred   %p<4>;
  .reg .b32   %r<6>;
  .reg .f32   %f<4>;
  .reg .b64   %rd<10>;
  mov.u32   %r1, %ctaid.x;
  mov.u32   %r2, %ntid.x;
  mov.u32   %r3, %tid.x;
  mad.lo.s32   %r4, %r1, %r2, %r3;
  ld.param.u64   %rd8, [{0}_param_3];
  ld.global.u32   %r5, [%rd8];
  {1};
  @%p1 bra   $L__{0}_2;
  ld.param.u64   %rd4, [{0}_param_0];
  ld.param.u64   %rd5, [{0}_param_1];
  ld.param.u64   %rd6, [{0}_param_2];
  mul.wide.u32   %rd7, %r4, 4;
  add.s64   %rd1, %rd6, %rd7;
  add.s64   %rd2, %rd5, %rd7;
  add.s64   %rd3, %rd4, %rd7;
  ld.global.f32   %f1, [%rd3];
  ld.global.f32   %f2, [%rd2];
  fma.rn.f32   %f3, %f1, 0f40000000, %f2;
  st.global.f32   [%rd1], %f3;
{2}$L__{0}_2:
  ret;
}}
)",
                     name, ends, more);
}

}  // namespace

std::string CudaKernels() {
  return std::string(kFirst) + OpenKernel("open_size", "setp.ge.u32   %p1, %r4, %r5") +
         OpenKernel("open_past_length", "setp.gt.u32   %p1, %r4, 999") +
         OpenKernel("open_wrong_when_short", "setp.ge.u32   %p1, %r4, %r5", kWrongWhenShort) + std::string(kLast);
}

}  // namespace hone::agent
