// SPDX-License-Identifier: Apache-2.0
#include "compiler/target/microarchitectures.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/split.h"
#include "base/status.h"

namespace hone::target {
namespace {

constexpr Arch kX86 = Arch::kX86_64, kArm64 = Arch::kAArch64, kArm32 = Arch::kArm;

constexpr Family kIntel = {kX86, "GenuineIntel", 6};
constexpr Family kZen12 = {kX86, "AuthenticAMD", 0x17}, kZen34 = {kX86, "AuthenticAMD", 0x19};
constexpr Family kZen5 = {kX86, "AuthenticAMD", 0x1a};
constexpr Family kArm = {kArm64, "0x41", 0}, kHiSilicon = {kArm64, "0x48", 0}, kNvidia = {kArm64, "0x4e", 0};
constexpr Family kQualcomm = {kArm64, "0x51", 0}, kApple = {kArm64, "0x61", 0}, kAmpere = {kArm64, "0xc0", 0};
constexpr Family kAnyX86 = {kX86, "", 0}, kAnyArm = {kArm64, "", 0};
constexpr Family kArmV7 = {kArm32, "0x41", 0}, kAnyArmV7 = {kArm32, "", 0};

// Features by the core that introduced them.
constexpr std::string_view kAvx2 = "avx avx2 bmi bmi2 f16c fma lzcnt movbe popcnt sse3 sse4.1 sse4.2 ssse3";
constexpr std::string_view kAvx512 = "avx512bw avx512cd avx512dq avx512f avx512vl";
constexpr std::string_view kCascadeLake = "avx512vnni", kCooperLake = "avx512bf16 avx512vnni";
constexpr std::string_view kCannonLake = "avx512ifma avx512vbmi";
constexpr std::string_view kIceLake = "avx512bitalg avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512vpopcntdq gfni";
constexpr std::string_view kSapphireRapids = "avx512bf16 avx512fp16 avxvnni";
constexpr std::string_view kAlderLake = "avxvnni gfni", kSierraForest = "avxifma avxneconvert avxvnniint8";
constexpr std::string_view kZenAdds = "sse4a", kZen4Adds = "avx512bf16 sse4a", kZen5Adds = "avx512bf16 avxvnni sse4a";
constexpr std::string_view kNeon32 = "d32 hwdiv-arm neon vfp3 vfp4", kCrc = "crc";
constexpr std::string_view kNeon = "fp-armv8 neon", kArmV82 = "fullfp16 lse rdm", kDot = "dotprod rcpc";
constexpr std::string_view kArmV9 = "bf16 complxnum fp16fml i8mm sve sve2";
constexpr std::string_view kNeoverseV1 = "bf16 complxnum fp16fml i8mm sha3 sve";
constexpr std::string_view kAppleM1 = "complxnum fp16fml sha3", kAppleM2 = "bf16 complxnum fp16fml i8mm sha3";
constexpr std::string_view kAmpere1 = "bf16 complxnum i8mm sha3", kTsv110 = "complxnum dotprod fp16fml";

// hertz; multiply-adds, loads; latency; bytes per cycle from L2, L3, memory; extra cycles per cache line.
constexpr Core kBigX86 = {3.5e9, 2, 2, 4, 32, 12, 5, 1.5};
constexpr Core kOld = {0.9e9, 1, 0.5, 8, 4, 3, 2, 1.5};
constexpr Core kLittle = {1.6e9, 1, 0.5, 4, 8, 4, 3, 1.5};
constexpr Core kMiddle = {1.8e9, 1, 1, 4, 16, 8, 4, 1.5};
constexpr Core kBig = {2.2e9, 2, 2, 4, 16, 8, 4, 1.5};
constexpr Core kWide = {3.0e9, 4, 3, 4, 32, 12, 6, 1.5};

// Rows that differ in features only are adjacent, the one with most features first. Generic rows come last, the one
// with fewest features first. The 32-bit Arm rows of cortex-a53 and cortex-a73 also stand for the Armv8.2 cores that
// can still run 32-bit programs, because old 32-bit kernels hide their newer features.
constexpr Microarchitecture kTable[] = {
    {kIntel, "haswell", {{{0x3c}, {0x3f}, {0x45}, {0x46}}}, {kAvx2}, 256, {32, 256, 8192}, kBigX86},
    {kIntel, "broadwell", {{{0x3d}, {0x47}, {0x4f}, {0x56}}}, {kAvx2}, 256, {32, 256, 8192}, kBigX86},
    {kIntel, "skylake", {{{0x4e}, {0x5e}, {0x8e}, {0x9e}, {0xa5}, {0xa6}}}, {kAvx2}, 256, {32, 256, 8192}, kBigX86},
    {kIntel, "cooperlake", {{{0x55}}}, {kAvx2, kAvx512, kCooperLake}, 512, {32, 1024, 11264}, kBigX86},
    {kIntel, "cascadelake", {{{0x55}}}, {kAvx2, kAvx512, kCascadeLake}, 512, {32, 1024, 11264}, kBigX86},
    {kIntel, "skylake-avx512", {{{0x55}}}, {kAvx2, kAvx512}, 512, {32, 1024, 11264}, kBigX86},
    {kIntel, "cannonlake", {{{0x66}}}, {kAvx2, kAvx512, kCannonLake}, 256, {32, 256, 8192}, kBigX86},
    {kIntel, "icelake-client", {{{0x7d}, {0x7e}}}, {kAvx2, kAvx512, kIceLake}, 256, {48, 512, 8192}, kBigX86},
    {kIntel, "icelake-server", {{{0x6a}, {0x6c}}}, {kAvx2, kAvx512, kIceLake}, 512, {48, 1280, 12288}, kBigX86},
    {kIntel, "tigerlake", {{{0x8c}, {0x8d}}}, {kAvx2, kAvx512, kIceLake}, 256, {48, 1280, 12288}, kBigX86},
    {kIntel, "rocketlake", {{{0xa7}}}, {kAvx2, kAvx512, kIceLake}, 256, {48, 512, 16384}, kBigX86},
    {kIntel, "alderlake", {{{0x97}, {0x9a}}}, {kAvx2, kAlderLake}, 256, {48, 1280, 20480}, kBigX86},
    {kIntel, "raptorlake", {{{0xb7}, {0xba}, {0xbf}}}, {kAvx2, kAlderLake}, 256, {48, 2048, 24576}, kBigX86},
    {kIntel, "meteorlake", {{{0xaa}, {0xac}}}, {kAvx2, kAlderLake}, 256, {48, 2048, 24576}, kBigX86},
    {kIntel, "arrowlake", {{{0xc5}}}, {kAvx2, kAlderLake, kSierraForest}, 256, {48, 3072, 24576}, kBigX86},
    {kIntel, "arrowlake-s", {{{0xc6}}}, {kAvx2, kAlderLake, kSierraForest}, 256, {48, 3072, 24576}, kBigX86},
    {kIntel, "lunarlake", {{{0xbd}}}, {kAvx2, kAlderLake, kSierraForest}, 256, {48, 2560, 12288}, kBigX86},
    {kIntel, "gracemont", {{{0xbe}}}, {kAvx2, kAlderLake}, 128, {32, 512, 6144}, kBigX86},
    {kIntel, "sierraforest", {{{0xaf}}}, {kAvx2, kAlderLake, kSierraForest}, 128, {32, 1024, 6144}, kBigX86},
    {kIntel,
     "sapphirerapids",
     {{{0x8f}}},
     {kAvx2, kAvx512, kIceLake, kSapphireRapids},
     512,
     {48, 2048, 15360},
     kBigX86},
    {kIntel, "emeraldrapids", {{{0xcf}}}, {kAvx2, kAvx512, kIceLake, kSapphireRapids}, 512, {48, 2048, 40960}, kBigX86},
    {kIntel, "graniterapids", {{{0xad}}}, {kAvx2, kAvx512, kIceLake, kSapphireRapids}, 512, {48, 2048, 32768}, kBigX86},
    {kIntel,
     "graniterapids-d",
     {{{0xae}}},
     {kAvx2, kAvx512, kIceLake, kSapphireRapids},
     512,
     {48, 2048, 32768},
     kBigX86},
    {kZen12, "znver1", {{{0x00, 0x2f}}}, {kAvx2, kZenAdds}, 128, {32, 512, 16384}, kBigX86},
    {kZen12, "znver2", {{{0x30, 0xaf}}}, {kAvx2, kZenAdds}, 256, {32, 512, 32768}, kBigX86},
    {kZen34, "znver3", {{{0x00, 0x0f}, {0x20, 0x5f}}}, {kAvx2, kZenAdds}, 256, {32, 512, 32768}, kBigX86},
    {kZen34,
     "znver4",
     {{{0x10, 0x1f}, {0x60, 0x7f}, {0xa0, 0xaf}}},
     {kAvx2, kAvx512, kIceLake, kZen4Adds},
     256,
     {32, 1024, 32768},
     kBigX86},
    {kZen5, "znver5", {{{0x00, 0x7f}}}, {kAvx2, kAvx512, kIceLake, kZen5Adds}, 512, {48, 1024, 32768}, kBigX86},
    {kAnyX86, "x86-64-v3", {}, {kAvx2}, 256, {32, 512, 8192}, kBigX86},
    {kAnyX86, "x86-64-v4", {}, {kAvx2, kAvx512}, 512, {32, 512, 8192}, kBigX86},
    {kArm, "cortex-a35", {{{0xd04}}}, {kNeon}, 128, {32, 128, 512}, kLittle},
    {kArm, "cortex-a53", {{{0xd03}}}, {kNeon}, 128, {32, 128, 512}, kLittle},
    {kArm, "cortex-a55", {{{0xd05}}}, {kNeon, kArmV82, kDot}, 128, {32, 128, 1024}, kLittle},
    {kArm, "cortex-a57", {{{0xd07}}}, {kNeon}, 128, {32, 512, 2048}, kMiddle},
    {kArm, "cortex-a72", {{{0xd08}}}, {kNeon}, 128, {32, 256, 1024}, kMiddle},
    {kArm, "cortex-a73", {{{0xd09}}}, {kNeon}, 128, {64, 512, 2048}, kMiddle},
    {kArm, "cortex-a75", {{{0xd0a}}}, {kNeon, kArmV82, kDot}, 128, {64, 256, 2048}, kMiddle},
    {kArm, "cortex-a76", {{{0xd0b}}}, {kNeon, kArmV82, kDot}, 128, {64, 512, 2048}, kBig},
    {kArm, "cortex-a76ae", {{{0xd0e}}}, {kNeon, kArmV82, kDot}, 128, {64, 512, 2048}, kBig},
    {kArm, "cortex-a77", {{{0xd0d}}}, {kNeon, kArmV82, kDot}, 128, {64, 512, 4096}, kBig},
    {kArm, "cortex-a78", {{{0xd41}}}, {kNeon, kArmV82, kDot}, 128, {64, 512, 4096}, kBig},
    {kArm, "cortex-a78ae", {{{0xd42}}}, {kNeon, kArmV82, kDot}, 128, {64, 256, 4096}, kBig},
    {kArm, "cortex-a78c", {{{0xd4b}}}, {kNeon, kArmV82, kDot}, 128, {64, 512, 8192}, kBig},
    {kArm, "cortex-x1", {{{0xd44}}}, {kNeon, kArmV82, kDot}, 128, {64, 1024, 8192}, kWide},
    {kArm, "cortex-x1c", {{{0xd4c}}}, {kNeon, kArmV82, kDot}, 128, {64, 1024, 8192}, kWide},
    {kArm, "cortex-a510", {{{0xd46}}}, {kNeon, kArmV82, kDot, kArmV9}, 128, {32, 256, 8192}, kLittle},
    {kArm, "cortex-a520", {{{0xd80}}}, {kNeon, kArmV82, kDot, kArmV9}, 128, {32, 256, 8192}, kLittle},
    {kArm, "cortex-a710", {{{0xd47}}}, {kNeon, kArmV82, kDot, kArmV9}, 128, {64, 512, 8192}, kBig},
    {kArm, "cortex-a715", {{{0xd4d}}}, {kNeon, kArmV82, kDot, kArmV9}, 128, {64, 512, 8192}, kBig},
    {kArm, "cortex-a720", {{{0xd81}}}, {kNeon, kArmV82, kDot, kArmV9}, 128, {64, 512, 8192}, kBig},
    {kArm, "cortex-x2", {{{0xd48}}}, {kNeon, kArmV82, kDot, kArmV9}, 128, {64, 1024, 8192}, kWide},
    {kArm, "cortex-x3", {{{0xd4e}}}, {kNeon, kArmV82, kDot, kArmV9}, 128, {64, 1024, 8192}, kWide},
    {kArm, "cortex-x4", {{{0xd82}}}, {kNeon, kArmV82, kDot, kArmV9}, 128, {64, 2048, 8192}, kWide},
    {kArm, "neoverse-n1", {{{0xd0c}}}, {kNeon, kArmV82, kDot}, 128, {64, 1024, 8192}, kBig},
    {kArm, "neoverse-n2", {{{0xd49}}}, {kNeon, kArmV82, kDot, kArmV9}, 128, {64, 1024, 8192}, kBig},
    {kArm, "neoverse-n3", {{{0xd8e}}}, {kNeon, kArmV82, kDot, kArmV9}, 128, {64, 2048, 8192}, kBig},
    {kArm, "neoverse-v1", {{{0xd40}}}, {kNeon, kArmV82, kDot, kNeoverseV1}, 128, {64, 1024, 8192}, kWide},
    {kArm, "neoverse-v2", {{{0xd4f}}}, {kNeon, kArmV82, kDot, kArmV9}, 128, {64, 2048, 8192}, kWide},
    {kArm, "neoverse-v3", {{{0xd84}}}, {kNeon, kArmV82, kDot, kArmV9}, 128, {64, 2048, 8192}, kWide},
    {kApple,
     "apple-m1",
     {{{0x22, 0x25}, {0x28, 0x29}}},
     {kNeon, kArmV82, kDot, kAppleM1},
     128,
     {128, 3072, 8192},
     kWide},
    {kApple,
     "apple-m2",
     {{{0x32, 0x35}, {0x38, 0x39}}},
     {kNeon, kArmV82, kDot, kAppleM2},
     128,
     {128, 4096, 8192},
     kWide},
    {kApple,
     "apple-m3",
     {{{0x42, 0x45}, {0x48, 0x49}}},
     {kNeon, kArmV82, kDot, kAppleM2},
     128,
     {128, 4096, 8192},
     kWide},
    {kNvidia, "carmel", {{{0x04}}}, {kNeon, kArmV82}, 128, {64, 1024, 4096}, kBig},
    {kAmpere, "ampere1", {{{0xac3}}}, {kNeon, kArmV82, kDot, kAmpere1}, 128, {64, 2048, 8192}, kBig},
    {kAmpere, "ampere1a", {{{0xac4}}}, {kNeon, kArmV82, kDot, kAmpere1}, 128, {64, 2048, 8192}, kBig},
    {kHiSilicon, "tsv110", {{{0xd01}}}, {kNeon, kArmV82, kTsv110}, 128, {64, 512, 8192}, kBig},
    {kQualcomm, "oryon-1", {{{0x01}}}, {kNeon, kArmV82, kDot, kAppleM2}, 128, {96, 3072, 6144}, kWide},
    {kAnyArm, "generic", {}, {kNeon}, 128, {32, 512, 8192}, kBig},
    {kArmV7, "cortex-a15", {{{0xc0f}}}, {kNeon32}, 128, {32, 1024, 2048}, kMiddle},
    {kArmV7, "cortex-a17", {{{0xc0d}, {0xc0e}}}, {kNeon32}, 128, {32, 512, 1024}, kMiddle},
    {kArmV7, "cortex-a32", {{{0xd01}}}, {kNeon32, kCrc}, 128, {32, 128, 512}, kLittle},
    {kArmV7, "cortex-a35", {{{0xd04}}}, {kNeon32, kCrc}, 128, {32, 128, 512}, kLittle},
    {kArmV7, "cortex-a53", {{{0xd03}, {0xd05}}}, {kNeon32, kCrc}, 128, {32, 128, 512}, kLittle},
    {kArmV7, "cortex-a57", {{{0xd07}}}, {kNeon32, kCrc}, 128, {32, 512, 2048}, kMiddle},
    {kArmV7, "cortex-a72", {{{0xd08}}}, {kNeon32, kCrc}, 128, {32, 256, 1024}, kMiddle},
    {kArmV7, "cortex-a73", {{{0xd09, 0xd0d}}}, {kNeon32, kCrc}, 128, {64, 512, 2048}, kMiddle},
    {kAnyArmV7, "cortex-a7", {}, {kNeon32}, 64, {32, 512, 512}, kOld},
};

bool Has(const Microarchitecture& row, const CoreId& id) {
  return row.family.vendor == id.vendor && row.family.family == id.family &&
         std::any_of(row.models.begin(), row.models.end(), [&](const ModelRange& range) {
           return id.model >= range.first && id.model <= std::max(range.first, range.last);
         });
}

}  // namespace

std::span<const Microarchitecture> Microarchitectures() { return kTable; }

const Microarchitecture* FindMicroarchitecture(Arch arch, std::string_view name) {
  const auto* const row = std::find_if(std::begin(kTable), std::end(kTable), [&](const Microarchitecture& candidate) {
    return candidate.family.arch == arch && candidate.name == name;
  });
  return row == std::end(kTable) ? nullptr : row;
}

const Microarchitecture* Identify(Arch arch, const CoreId& id, const FeatureSet& present) {
  const Microarchitecture *found = nullptr, *general = nullptr, *richest = nullptr;
  std::pair<size_t, int> most = {0, 0};
  bool found_complete = false;
  bool believed = arch != kX86;  // hypervisors may give x86-64 machines model numbers of older ones
  for (const Microarchitecture& row : kTable) {
    if (row.family.arch != arch) continue;
    const FeatureSet wanted = FeaturesOf(row);
    const bool complete = std::includes(present.begin(), present.end(), wanted.begin(), wanted.end());
    if (row.family.vendor.empty() && (general == nullptr || complete)) general = &row;
    if (row.family.vendor == id.vendor && complete && std::pair(wanted.size(), row.unit_bits) > most) {
      richest = &row;
      most = {wanted.size(), row.unit_bits};
    }
    if (!Has(row, id)) continue;
    believed = believed || std::includes(wanted.begin(), wanted.end(), present.begin(), present.end());
    if (!found_complete) found = &row;
    found_complete = found_complete || complete;
  }
  HONE_CHECK(general != nullptr);
  if (found == nullptr) return general;
  return believed || richest == nullptr ? found : richest;
}

FeatureSet FeaturesOf(const Microarchitecture& row) {
  FeatureSet features;
  for (const std::string_view group : row.features) {
    for (const std::string_view word : SplitNonEmpty(group, ' ')) features.insert(word);
  }
  return features;
}

}  // namespace hone::target
