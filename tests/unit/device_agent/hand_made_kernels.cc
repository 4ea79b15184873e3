// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/device_agent/hand_made_kernels.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/digest.h"
#include "base/kernel_interface.h"
#include "base/status.h"
#include "base/temporary_folder.h"

namespace hone::agent {
namespace {

constexpr char kPrelude[] = R"(
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/kernel_abi.h"
enum { N = 1000 };
static void compute(void* const* b, int count) {
  const float *x = b[0], *w = b[1];
  float* y = b[2];
  for (int i = 0; i < count; ++i) y[i] = 2.0f * x[i] + w[i];
}
#define KERNEL(name) void name(void* const* b, void* workspace, HoneParallel* p)
KERNEL(reference) { compute(b, N); }
KERNEL(good) { compute(b, N); }
)";

constexpr char kSource[] = R"(
KERNEL(slow) { for (volatile int i = 0; i < 200000; ++i) {} compute(b, N); }
static void spin(double ms) { struct timespec start, now; clock_gettime(CLOCK_MONOTONIC, &start);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - start.tv_sec) * 1e3 + (now.tv_nsec - start.tv_nsec) * 1e-6 < ms); }
KERNEL(very_slow) { spin(1000); compute(b, N); }
KERNEL(slow_in_its_second_call) { static int calls; if (++calls == 2) spin(300); compute(b, N); }
KERNEL(slow_after_a_stall) { static int calls; ++calls; compute(b, N);
  if (calls == 2) spin(300); else if (calls == 3) spin(0.01); else if (calls > 3 && calls <= 12) spin(0.002); }
KERNEL(slow_at_first) { static int calls; if (++calls == 1) very_slow(b, workspace, p); else compute(b, N); }
static void half(void* closure, int64_t i) {
  void* const* b = closure;
  const float *x = b[0], *w = b[1];
  float* y = b[2];
  for (int k = i * N / 2; k < (i + 1) * N / 2; ++k) y[k] = 2.0f * x[k] + w[k];
}
KERNEL(parallel) { p->parallel_for(p, half, (void*)b, 2); }
static void crash_half(void* closure, int64_t i) { if (i == 1) *(volatile int*)16 = 1; half(closure, i); }
KERNEL(crash_in_thread) { p->parallel_for(p, crash_half, (void*)b, 2); }
KERNEL(prepare) { static int runs; const float* w = b[1]; float* packed = b[2]; float* scratch = workspace;
  if (++runs > 1) *(volatile int*)8 = 1;
  for (int i = 0; i < N; ++i) scratch[i] = w[N - 1 - i];
  memcpy(packed, scratch, N * sizeof(float)); }
KERNEL(packed_double) { const float *x = b[0], *packed = b[2]; float *y = b[3], *scratch = workspace;
  for (int i = 0; i < N; ++i) scratch[i] = 2.0f * x[i];
  for (int i = 0; i < N; ++i) y[i] = scratch[i] + packed[N - 1 - i]; }
KERNEL(packed_too) { packed_double(b, workspace, p); }
KERNEL(prepare_trusting_zeros) { const float* w = b[1]; float *packed = b[2], *scratch = workspace;
  for (int i = 0; i < N; ++i) packed[i] = scratch[i] + w[N - 1 - i]; }
KERNEL(packed_trusting_zeros) { packed_double(b, workspace, p); }
KERNEL(trusts_zeros) { float *y = b[2], *scratch = workspace; compute(b, N);
  for (int i = 0; i < N; ++i) y[i] += scratch[i]; }
KERNEL(first_of_two) { const float* x = b[0]; float* scratch = workspace;
  for (int i = 0; i < N; ++i) scratch[i] = 2.0f * x[i]; }
KERNEL(second_of_two) { const float *w = b[1], *scratch = workspace; float* y = b[2];
  for (int i = 0; i < N; ++i) y[i] = scratch[i] + w[i]; }
KERNEL(aligned) { compute(b, ((size_t)b[0] | (size_t)b[1] | (size_t)b[2]) % HONE_BUFFER_ALIGNMENT == 0 ? N : 0); }
KERNEL(wrong) { compute(b, N); ((float*)b[2])[17] += 0.5f; }
KERNEL(incomplete) { compute(b, N - 1); }
KERNEL(crash) { *(volatile int*)8 = 1; }
KERNEL(abort_call) { abort(); }
KERNEL(exit_call) { _exit(3); }
KERNEL(hang) { for (volatile int i = 0;; ++i) {} }
KERNEL(past_end) { compute(b, N); ((float*)b[2])[N] = 1.0f; }
KERNEL(before_begin) { compute(b, N); ((char*)b[2])[-8] = 1; }
KERNEL(far_past_end) { compute(b, N); ((float*)b[2])[N + 5000] = 1.0f; }
KERNEL(read_far) { compute(b, N); ((float*)b[2])[0] += 0 * ((const volatile float*)b[0])[N + 5000]; }
KERNEL(write_input) { compute(b, N); ((float*)b[0])[3] = 0.0f; }
KERNEL(write_packed) { ((float*)b[2])[0] = 0.0f; }
KERNEL(crash_later) { static int calls; compute(b, N); if (++calls == 8) *(volatile int*)8 = 1; }
KERNEL(write_cold) { static const void* first; compute(b, N); if (!first) first = b[1];
  if (b[1] != first) ((float*)b[1])[0] = 1.0f; }
KERNEL(open_size) { compute(b, *(const int64_t*)b[3]); }
KERNEL(open_past_length) { compute(b, N); }
KERNEL(open_wrong_when_short) { const int n = *(const int64_t*)b[3]; compute(b, n);
  if (n < N) ((float*)b[2])[17] += 0.5f; }
KERNEL(open_crash) { *(volatile int*)8 = 1; }
KERNEL(open_slow) { const int n = *(const int64_t*)b[3]; spin(n / 100); compute(b, n); }
KERNEL(scribble) { memset((void*)b, 0xee, 24); memset((char*)&b, 0xee, 64); }
KERNEL(same_constants) { static const void* last; static int same; compute(b, N);
  same += b[1] == last; last = b[1]; if (same > 3) *(volatile int*)8 = 1; }
/* Succeeds only in what it must not be able to do: a right output means an open sandbox. */
KERNEL(use_network) { if (socket(AF_INET, SOCK_STREAM, 0) >= 0) compute(b, N); }
KERNEL(fork_process) { if (fork() >= 0) compute(b, N); }
KERNEL(kill_parent) { if (kill(getppid(), 0) == 0) compute(b, N); }
KERNEL(write_file) { if (open("/tmp/hone_escaped", O_CREAT | O_WRONLY, 0600) >= 0) compute(b, N); }
KERNEL(read_file) { if (open("/etc/passwd", O_RDONLY) >= 0) compute(b, N); }
KERNEL(ask_cpu) { unsigned cpu; syscall(SYS_getcpu, &cpu, 0, 0); compute(b, N); }
KERNEL(run_program) { execl("/bin/true", "true", (char*)0); compute(b, N); raise(SIGUSR1); }
KERNEL(eat_memory) { for (;;) { char* p = malloc(64 << 20); if (!p) break; memset(p, 1, 64 << 20); } }
)";

void AddBuffer(v1::Batch& batch, const std::string& name, v1::Buffer::Role role) {
  v1::Buffer* buffer = batch.add_buffers();
  buffer->set_name(name);
  buffer->set_dtype(v1::DTYPE_F32);
  buffer->set_elements(1000);
  buffer->set_bytes(4000);
  buffer->set_role(role);
  buffer->set_low(-1);
  buffer->set_high(1);
}

}  // namespace

std::string CompileKernels(const std::string& source) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string file = folder / "kernels.c", object = folder / "kernels.so";
  std::ofstream(file) << kPrelude << source;
  const std::string command =
      fmt::format("{} -O1 -w -shared -fPIC -I{} -o {} {}", HONE_TEST_CC, HONE_SOURCE_DIR, object, file);
  HONE_CHECK(std::system(command.c_str()) == 0);
  std::stringstream bytes;
  bytes << std::ifstream(object, std::ios::binary).rdbuf();
  return bytes.str();
}

const std::string& HandMadeArtifact() {
  static const std::string& artifact = *new std::string(CompileKernels(kSource));
  return artifact;
}

KernelInterface HandMadeInterface(const std::string& name, int64_t groups, int64_t lanes) {
  const bool packs = name.starts_with("packed_") || name == "write_packed", two = name == "two_launches",
             open = name.starts_with("open_");
  const std::string prepare = name == "packed_trusting_zeros" ? "prepare_trusting_zeros" : "prepare";
  KernelInterface interface;
  interface.name = name;
  interface.buffers = {{BufferRole::kInput, "f32", {1000}}, {BufferRole::kConstant, "f32", {1000}}};
  if (packs) interface.buffers.push_back({BufferRole::kPacked, "f32", {1000}});
  interface.buffers.push_back({BufferRole::kOutput, "f32", {1000}});
  if (open) interface.buffers.push_back({BufferRole::kSizes, "i64", {1}});
  if (packs || two || name == "trusts_zeros") interface.workspace_bytes = 4000;
  if (packs) interface.prepare_workspace_bytes = 4000;
  if (two) interface.buffers.push_back({BufferRole::kWorkspace, "f32", {1000}, true, 0});
  const auto launch = [&](const std::string& function, std::vector<uint32_t> arguments) {
    if (groups == 0) arguments.clear();
    return KernelLaunch{function, groups, lanes, std::move(arguments)};
  };
  if (packs) interface.prepare.push_back(launch(prepare, {1, 2}));
  if (two) {
    interface.main = {launch("first_of_two", {0, 3}), launch("second_of_two", {3, 1, 2})};
  } else if (packs) {
    interface.main.push_back(launch(name, {0, 2, 3}));
  } else if (open) {
    interface.main.push_back(launch(name, {0, 1, 2, 3}));
  } else {
    interface.main.push_back(launch(name, {0, 1, 2}));
  }
  return interface;
}

v1::Kernel HandMadeKernel(const std::string& name) {
  v1::Kernel kernel;
  kernel.set_interface(Print(HandMadeInterface(name)));
  return kernel;
}

v1::Batch HandMadeBatch(const std::vector<std::string>& symbols) {
  v1::Batch batch;
  batch.set_workload("y = 2 * x + w");
  batch.set_workload_digest(Sha256Hex(batch.workload()));
  batch.set_target("cpu");
  batch.set_compiler_version("1");
  batch.set_artifact(HandMadeArtifact());
  AddBuffer(batch, "x", v1::Buffer::ROLE_INPUT);
  AddBuffer(batch, "w", v1::Buffer::ROLE_CONSTANT);
  AddBuffer(batch, "y", v1::Buffer::ROLE_OUTPUT);
  *batch.mutable_reference() = HandMadeKernel("reference");
  batch.mutable_tolerance()->set_rtol(1e-5);
  batch.mutable_tolerance()->set_atol(1e-6);
  batch.set_fill_seed(7);
  batch.set_threads(1);
  batch.mutable_policy()->set_min_seconds_first(0.0005);
  batch.mutable_policy()->set_final_seconds(0.001);
  batch.mutable_policy()->set_timeout_seconds(1);
  for (const std::string& symbol : symbols) {
    v1::Candidate* candidate = batch.add_candidates();
    candidate->set_id(symbol);
    *candidate->mutable_kernel() = HandMadeKernel(symbol);
  }
  return batch;
}

}  // namespace hone::agent
