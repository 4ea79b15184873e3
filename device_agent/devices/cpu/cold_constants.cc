// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/cpu/cold_constants.h"

#include "base/kernel_abi.h"

namespace hone::agent {

void* ColdConstants::Next(int64_t bytes) {
  if (next_ + bytes > static_cast<int64_t>(numbers_.size())) next_ = 0;
  char* const stretch = numbers_.data() + next_;
  next_ += (bytes + HONE_BUFFER_ALIGNMENT - 1) / HONE_BUFFER_ALIGNMENT * HONE_BUFFER_ALIGNMENT;
  return stretch;
}

}  // namespace hone::agent
