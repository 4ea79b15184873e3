// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/golden.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "base/code_kind.h"
#include "base/digest.h"
#include "base/kernel_interface.h"
#include "base/median.h"

// The shared object of golden_kernel.c, embedded. Its symbols are global and hidden, because linkers for arm64 give
// local symbols of one section one entry of the offset table: the end symbol would equal the begin symbol.
asm(".section .rodata\n"
    ".global hone_golden_begin, hone_golden_end\n"
    ".hidden hone_golden_begin, hone_golden_end\n"
    ".balign 16\n"
    "hone_golden_begin:\n"
    ".incbin \"" HONE_GOLDEN_KERNEL
    "\"\n"
    "hone_golden_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" __attribute__((visibility("hidden"))) const char hone_golden_begin[], hone_golden_end[];

namespace hone::agent {
namespace {

constexpr int64_t kRows = 64;  // as in golden_kernel.c
constexpr int64_t kElements = kRows * kRows;

// Each group computes a row of the product, each lane an element. The reference loops in the opposite direction.
constexpr std::string_view kOpenClSource = R"(
kernel void golden_reference(global const float* a, global const float* b, global float* c) {
  const int i = get_group_id(0), j = get_local_id(0);
  float sum = 0;
  for (int k = 63; k >= 0; --k) sum += a[i * 64 + k] * b[k * 64 + j];
  c[i * 64 + j] = sum;
}
kernel void golden(global const float* a, global const float* b, global float* c) {
  const int i = get_group_id(0), j = get_local_id(0);
  float sum = 0;
  for (int k = 0; k < 64; ++k) sum += a[i * 64 + k] * b[k * 64 + j];
  c[i * 64 + j] = sum;
}
)";

// The same kernel for CUDA, as clang compiles it.
constexpr std::string_view kPtx = R"(.version 4.2
.target sm_53
.address_size 64
.visible .entry golden_reference(
  .param .u64 golden_reference_param_0,
  .param .u64 golden_reference_param_1,
  .param .u64 golden_reference_param_2
)
{
  .reg .pred   %p<2>;
  .reg .b32   %r<9>;
  .reg .f32   %f<7>;
  .reg .b64   %rd<18>;
  ld.param.u64   %rd7, [golden_reference_param_2];
  ld.param.u64   %rd8, [golden_reference_param_0];
  ld.param.u64   %rd9, [golden_reference_param_1];
  mov.u32   %r6, %ctaid.x;
  mov.u32   %r1, %tid.x;
  shl.b32   %r2, %r6, 6;
  mul.wide.u32   %rd10, %r1, 4;
  add.s64   %rd11, %rd10, %rd9;
  add.s64   %rd17, %rd11, 16128;
  mul.wide.u32   %rd12, %r6, 256;
  add.s64   %rd13, %rd12, %rd8;
  add.s64   %rd16, %rd13, 252;
  mov.f32   %f6, 0f00000000;
  mov.b32   %r8, -64;
$L__BB0_1:
  .pragma "nounroll";
  ld.global.f32   %f4, [%rd16];
  ld.global.f32   %f5, [%rd17];
  fma.rn.f32   %f6, %f4, %f5, %f6;
  add.s32   %r8, %r8, 1;
  setp.eq.s32   %p1, %r8, 0;
  add.s64   %rd17, %rd17, -256;
  add.s64   %rd16, %rd16, -4;
  @%p1 bra   $L__BB0_2;
  bra.uni   $L__BB0_1;
$L__BB0_2:
  add.s32   %r7, %r2, %r1;
  mul.wide.u32   %rd14, %r7, 4;
  add.s64   %rd15, %rd7, %rd14;
  st.global.f32   [%rd15], %f6;
  ret;
}
.visible .entry golden(
  .param .u64 golden_param_0,
  .param .u64 golden_param_1,
  .param .u64 golden_param_2
)
{
  .reg .pred   %p<2>;
  .reg .b32   %r<6>;
  .reg .f32   %f<7>;
  .reg .b64   %rd<18>;
  ld.param.u64   %rd7, [golden_param_2];
  ld.param.u64   %rd9, [golden_param_0];
  ld.param.u64   %rd10, [golden_param_1];
  mov.u32   %r3, %ctaid.x;
  mov.u32   %r1, %tid.x;
  shl.b32   %r2, %r3, 6;
  mul.wide.u32   %rd11, %r1, 4;
  add.s64   %rd17, %rd10, %rd11;
  mul.wide.u32   %rd12, %r3, 256;
  add.s64   %rd2, %rd9, %rd12;
  mov.f32   %f6, 0f00000000;
  mov.u64   %rd16, 0;
$L__BB1_1:
  .pragma "nounroll";
  add.s64   %rd13, %rd2, %rd16;
  ld.global.f32   %f4, [%rd13];
  ld.global.f32   %f5, [%rd17];
  fma.rn.f32   %f6, %f4, %f5, %f6;
  add.s64   %rd17, %rd17, 256;
  add.s64   %rd16, %rd16, 4;
  cvt.u32.u64   %r4, %rd16;
  setp.eq.s32   %p1, %r4, 256;
  @%p1 bra   $L__BB1_2;
  bra.uni   $L__BB1_1;
$L__BB1_2:
  add.s32   %r5, %r2, %r1;
  mul.wide.u32   %rd14, %r5, 4;
  add.s64   %rd15, %rd7, %rd14;
  st.global.f32   [%rd15], %f6;
  ret;
}
)";

v1::Kernel KernelOf(const std::string& function, bool lanes) {
  KernelInterface interface;
  interface.name = function;
  interface.buffers = {{BufferRole::kInput, "f32", {kRows, kRows}},
                       {BufferRole::kInput, "f32", {kRows, kRows}},
                       {BufferRole::kOutput, "f32", {kRows, kRows}}};
  if (lanes) {
    interface.main = {{function, kRows, kRows, {0, 1, 2}}};
  } else {
    interface.main = {{function, 0, 0, {}}};
  }
  v1::Kernel kernel;
  kernel.set_interface(Print(interface));
  return kernel;
}

void AddBuffer(v1::Batch& batch, const std::string& name, v1::Buffer::Role role) {
  v1::Buffer* buffer = batch.add_buffers();
  buffer->set_name(name);
  buffer->set_dtype(v1::DTYPE_F32);
  buffer->set_elements(kElements);
  buffer->set_bytes(kElements * 4);
  buffer->set_role(role);
  buffer->set_low(-1);
  buffer->set_high(1);
}

}  // namespace

std::optional<v1::Batch> GoldenBatch(const std::string& architecture) {
  const bool cuda = architecture == FindCodeKind(CodeKind::kPtx)->architecture;
  const bool lanes = cuda || architecture == FindCodeKind(CodeKind::kOpenCl)->architecture;
  utsname host{};
  uname(&host);
  if (!lanes && architecture != host.machine) return std::nullopt;
  v1::Batch batch;
  batch.set_workload_digest("golden");
  batch.set_workload("c = a * b, 64 by 64");
  batch.set_target(architecture);
  batch.set_compiler_version("golden");
  batch.set_artifact(lanes ? std::string(cuda ? kPtx : kOpenClSource)
                           : std::string(hone_golden_begin, hone_golden_end));
  AddBuffer(batch, "a", v1::Buffer::ROLE_INPUT);
  AddBuffer(batch, "b", v1::Buffer::ROLE_INPUT);
  AddBuffer(batch, "c", v1::Buffer::ROLE_OUTPUT);
  *batch.mutable_reference() = KernelOf("golden_reference", lanes);
  v1::Candidate* candidate = batch.add_candidates();
  candidate->set_id("golden");
  *candidate->mutable_kernel() = KernelOf("golden", lanes);
  batch.mutable_tolerance()->set_rtol(1e-4);
  batch.mutable_tolerance()->set_atol(1e-5);
  batch.set_fill_seed(1);
  batch.set_threads(1);
  batch.mutable_policy()->set_final_seconds(0.05);
  batch.mutable_policy()->set_timeout_seconds(lanes ? 10 : 1);  // drivers compile at the first call
  batch.set_final(true);
  return batch;
}

v1::GoldenCheck ToGoldenCheck(const v1::Batch& batch, const v1::BatchResult& result, uint64_t number) {
  v1::GoldenCheck check;
  check.set_number(number);
  check.set_kernel(Sha256Hex(batch.artifact()));
  if (!result.error().empty() || result.outcomes().empty()) {
    check.set_reason(result.error().empty() ? "the golden kernel has no outcome" : result.error());
    return check;
  }
  const v1::Outcome& outcome = result.outcomes(0).outcome();
  if (!outcome.has_timing() || outcome.timing().seconds().empty()) {
    check.set_reason(outcome.failure().text());
    return check;
  }
  std::vector<double> seconds(outcome.timing().seconds().begin(), outcome.timing().seconds().end());
  const double median = Median(seconds);
  for (double& value : seconds) value = std::abs(value - median);
  check.set_passed(true);
  check.set_median_seconds(median);
  check.set_mad_seconds(Median(seconds));
  if (outcome.timing().has_temperature_c()) check.set_temperature_c(outcome.timing().temperature_c());
  return check;
}

}  // namespace hone::agent
