#include "device_agent/cold_numbers.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"

namespace hone::agent {
namespace {

constexpr int64_t kMostColdBytes = 64 << 20;  // beyond any cache that one model has for itself

bool IsFloat(const KernelBuffer& buffer) { return buffer.dtype[0] == 'f' || buffer.dtype == "bf16"; }

}  // namespace

int64_t ColdBytes(const SessionOptions& options) {
  if (options.purpose != SessionPurpose::kTiming) return 0;
  int64_t bytes = std::min(options.batch->policy.constant_bytes_between_runs, kMostColdBytes);
  if (options.memory_limit > 0) bytes = std::min(bytes, options.memory_limit / 16);
  return std::max<int64_t>(bytes, 0);
}

void FillCold(char* data, int64_t bytes) {
  Random random(1);
  for (int64_t at = 0; at + 8 <= bytes; at += 8) {
    // 0x3c in the upper byte of every half word: small positive numbers as f16, bf16, f32 and f64 alike.
    const uint64_t word = (random.Next() & 0x00ff'00ff'00ff'00ffULL) | 0x3c00'3c00'3c00'3c00ULL;
    std::memcpy(data + at, &word, sizeof word);
  }
}

std::vector<std::pair<uint32_t, int64_t>> ColdBuffers(const KernelInterface& interface) {
  std::vector<std::pair<uint32_t, int64_t>> cold;
  bool only_floats = true;
  for (const uint32_t i : interface.Of(BufferRole::kConstant)) {
    if (IsFloat(interface.buffers[i])) cold.emplace_back(i, interface.buffers[i].bytes());
    only_floats &= IsFloat(interface.buffers[i]);
  }
  for (const uint32_t i : interface.Of(BufferRole::kPacked)) {
    if (only_floats) cold.emplace_back(i, interface.buffers[i].bytes());
  }
  return cold;
}

}  // namespace hone::agent
