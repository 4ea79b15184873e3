// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/batch.h"

#include <algorithm>

#include "base/kernel_abi.h"

namespace hone::agent {

DataLayout ComputeDataLayout(const VisitBatch& batch) {
  DataLayout layout;
  for (const VisitBuffer& buffer : batch.buffers) {
    int64_t& bytes = buffer.role == BufferRole::kOutput ? layout.output_bytes : layout.input_bytes;
    layout.offsets.push_back(bytes);
    bytes += (buffer.bytes + HONE_BUFFER_ALIGNMENT - 1) / HONE_BUFFER_ALIGNMENT * HONE_BUFFER_ALIGNMENT;
  }
  return layout;
}

void AddReading(const Sensors& reading, Sensors& all) {
  all.temperature_c = std::max(all.temperature_c, reading.temperature_c);
  all.clock_mhz = std::max(all.clock_mhz, reading.clock_mhz);
  all.slowed_down |= reading.slowed_down || (all.seems_slowed_down && reading.seems_slowed_down);
  all.seems_slowed_down |= reading.seems_slowed_down;
}

}  // namespace hone::agent
