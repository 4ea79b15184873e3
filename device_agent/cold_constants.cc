#include "device_agent/cold_constants.h"

#include <cstring>

#include "base/kernel_abi.h"
#include "base/random.h"
#include "base/status.h"

namespace hone::agent {

absl::StatusOr<ColdConstants> ColdConstants::Create(RegionTable& table, int64_t bytes) {
  HONE_ASSIGN_OR_RETURN(GuardedBuffer memory, GuardedBuffer::Create(table, "cold constants", bytes));
  Random random(1);
  for (int64_t at = 0; at + 8 <= bytes; at += 8) {
    // 0x3c in the upper byte of every half word: small positive numbers as f16, bf16, f32 and f64 alike.
    const uint64_t word = (random.Next() & 0x00ff'00ff'00ff'00ffULL) | 0x3c00'3c00'3c00'3c00ULL;
    std::memcpy(memory.data() + at, &word, sizeof word);
  }
  HONE_RETURN_IF_ERROR(memory.Protect());
  return ColdConstants(std::move(memory));
}

void* ColdConstants::Next(int64_t bytes) {
  if (next_ + bytes > memory_.bytes()) next_ = 0;
  char* const stretch = memory_.data() + next_;
  next_ += (bytes + HONE_BUFFER_ALIGNMENT - 1) / HONE_BUFFER_ALIGNMENT * HONE_BUFFER_ALIGNMENT;
  return stretch;
}

}  // namespace hone::agent
