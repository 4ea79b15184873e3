// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/target/fake_machine.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace hone::tests {
namespace {

void Put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text << "\n";
}

std::string Neighbours(int cpu, int count) {
  const int first = cpu / count * count;
  return count == 1 ? std::to_string(cpu) : fmt::format("{}-{}", first, first + count - 1);
}

constexpr std::string_view kArmV82 =
    "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp";
constexpr std::string_view kAvx512 =
    "fpu sse sse2 ht pni pclmulqdq ssse3 fma cx16 sse4_1 sse4_2 x2apic movbe popcnt aes xsave avx f16c abm bmi1 avx2 "
    "bmi2 avx512f avx512dq adx avx512ifma avx512cd sha_ni avx512bw avx512vl avx512vbmi avx512_vbmi2 gfni vaes "
    "vpclmulqdq avx512_vnni avx512_bitalg avx512_vpopcntdq avx512_bf16";

std::string ArmCore(std::string_view part, std::string_view features = kArmV82) {
  return fmt::format(
      "BogoMIPS\t: 108.00\nFeatures\t: {}\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x4\n"
      "CPU part\t: {}\nCPU revision\t: 1\n",
      features, part);
}

std::string X86Core(std::string_view vendor, int family, int model, std::string_view flags) {
  return fmt::format("vendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: {}\nmodel name\t: A CPU\nflags\t\t: {}\n", vendor,
                     family, model, flags);
}

}  // namespace

TemporaryFolder FakeMachine::Write() const {
  TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string root = folder / "";
  std::string cpuinfo;
  for (int cpu = 0; cpu < static_cast<int>(cores.size()); ++cpu) {
    cpuinfo += fmt::format("processor\t: {}\n{}\n", cpu, cores[cpu]);
    const std::string system = fmt::format("{}sys/devices/system/cpu/cpu{}/", root, cpu);
    Put(system + "topology/thread_siblings_list", Neighbours(cpu, threads_per_core));
    if (!capacities.empty()) Put(system + "cpu_capacity", std::to_string(capacities[cpu]));
    for (size_t i = 0; i < caches.size(); ++i) {
      const std::string cache = fmt::format("{}cache/index{}/", system, i);
      Put(cache + "level", std::to_string(caches[i].level));
      Put(cache + "type", std::string(caches[i].type));
      Put(cache + "size", std::string(caches[i].size));
      Put(cache + "shared_cpu_list", Neighbours(cpu, caches[i].shared_by));
    }
  }
  Put(root + "proc/cpuinfo", cpuinfo);
  Put(root + "proc/thread-self/status", "Name:\thone\nCpus_allowed_list:\t" + allowed);
  if (!cpu_max.empty()) {
    Put(root + "proc/self/cgroup", "0::/");
    Put(root + "sys/fs/cgroup/cpu.max", cpu_max);
  }
  return folder;
}

FakeMachine RaspberryPi2() {
  return {.cores = std::vector<std::string>(
              4, ArmCore("0xc07", "half thumb fastmult vfp edsp neon vfpv3 tls vfpv4 idiva idivt vfpd32 lpae evtstrm")),
          .caches = {{1, "Data", "32K", 1}, {1, "Instruction", "32K", 1}, {2, "Unified", "512K", 4}}};
}

FakeMachine RaspberryPi4() {
  return {.cores = std::vector<std::string>(4, ArmCore("0xd08", "fp asimd evtstrm crc32 cpuid")),
          .caches = {{1, "Data", "32K", 1}, {1, "Instruction", "48K", 1}, {2, "Unified", "1024K", 4}}};
}

FakeMachine RaspberryPi5() {
  return {
      .cores = std::vector<std::string>(4, ArmCore("0xd0b")),
      .caches = {
          {1, "Data", "64K", 1}, {1, "Instruction", "64K", 1}, {2, "Unified", "512K", 1}, {3, "Unified", "2048K", 4}}};
}

FakeMachine JetsonOrin() {
  const std::string features = std::string(kArmV82) + " uscat ilrcpc flagm paca pacg";
  return {
      .cores = std::vector<std::string>(8, ArmCore("0xd42", features)),
      .caches = {
          {1, "Data", "64K", 1}, {1, "Instruction", "64K", 1}, {2, "Unified", "256K", 1}, {3, "Unified", "2048K", 4}}};
}

FakeMachine Zen4Server() {
  return {.cores = std::vector<std::string>(16, X86Core("AuthenticAMD", 25, 17, std::string(kAvx512) + " sse4a")),
          .caches = {{1, "Data", "32K", 2},
                     {1, "Instruction", "32K", 2},
                     {2, "Unified", "1024K", 2},
                     {3, "Unified", "32768K", 8}},
          .threads_per_core = 2};
}

FakeMachine SapphireRapidsVm() {
  const std::string flags = std::string(kAvx512) + " avx_vnni hypervisor";
  return {.cores = std::vector<std::string>(4, X86Core("GenuineIntel", 6, 143, flags)),
          .caches = {{1, "Data", "48K", 2},
                     {1, "Instruction", "32K", 2},
                     {2, "Unified", "2048K", 2},
                     {3, "Unified", "107520K", 4}},
          .threads_per_core = 2};
}

FakeMachine Rk3588() {
  FakeMachine machine;
  for (int i = 0; i < 8; ++i) machine.cores.push_back(ArmCore(i < 4 ? "0xd05" : "0xd0b"));
  machine.capacities = {414, 414, 414, 414, 1024, 1024, 1008, 1008};
  return machine;
}

}  // namespace hone::tests
