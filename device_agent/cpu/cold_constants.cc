#include "device_agent/cpu/cold_constants.h"

#include "base/kernel_abi.h"
#include "base/status.h"
#include "device_agent/cold_numbers.h"

namespace hone::agent {

absl::StatusOr<ColdConstants> ColdConstants::Create(RegionTable& table, int64_t bytes) {
  HONE_ASSIGN_OR_RETURN(GuardedBuffer memory, GuardedBuffer::Create(table, "cold constants", bytes));
  FillCold(memory.data(), bytes);
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
