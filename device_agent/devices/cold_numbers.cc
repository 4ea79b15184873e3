// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/cold_numbers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "base/status.h"

namespace hone::agent {
namespace {

constexpr int64_t kColdBytesMax = 64 << 20;  // beyond any cache that one model has for itself

bool IsFloat(const KernelBuffer& buffer) { return buffer.dtype[0] == 'f' || buffer.dtype == "bf16"; }

void FillCold(char* data, int64_t bytes) {
  Random random(1);
  for (int64_t at = 0; at + 8 <= bytes; at += 8) {
    // 0x3c in the upper byte of every half word: small positive numbers as f16, bf16, f32 and f64 alike.
    const uint64_t word = (random.Next() & 0x00ff'00ff'00ff'00ffULL) | 0x3c00'3c00'3c00'3c00ULL;
    std::memcpy(data + at, &word, sizeof word);
  }
}

}  // namespace

absl::Status ColdNumbers::EnsureAllocated(const VisitBatch& batch, int64_t memory_limit) {
  wanted_ = std::clamp<int64_t>(batch.policy.constant_bytes_between_runs, 0, kColdBytesMax);
  if (memory_limit > 0) wanted_ = std::min(wanted_, memory_limit / 16);
  if (wanted_ == 0 || (memory_.has_value() && memory_->bytes() >= wanted_)) return absl::OkStatus();
  memory_.reset();
  HONE_ASSIGN_OR_RETURN(GuardedBuffer memory, GuardedBuffer::Create(regions_, "cold constants", wanted_));
  FillCold(memory.data(), wanted_);
  HONE_RETURN_IF_ERROR(memory.Protect());
  memory_ = std::move(memory);
  ++generation_;
  return absl::OkStatus();
}

std::span<char> ColdNumbers::numbers(int64_t bytes) const {
  if (bytes == 0) return {};
  HONE_CHECK(memory_.has_value() && bytes <= memory_->bytes());
  return {memory_->data(), static_cast<size_t>(bytes)};
}

void ColdNumbers::RegisterIn(RegionTable& table) const {
  if (memory_.has_value()) table.Add(memory_->region());
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
