#include "device_agent/visit_batch.h"

#include "base/kernel_abi.h"

namespace hone::agent {

DataLayout LayOut(const VisitBatch& batch) {
  DataLayout layout;
  for (const VisitBuffer& buffer : batch.buffers) {
    int64_t& bytes = buffer.role == BufferRole::kOutput ? layout.output_bytes : layout.input_bytes;
    layout.offsets.push_back(bytes);
    bytes += (buffer.bytes + HONE_BUFFER_ALIGNMENT - 1) / HONE_BUFFER_ALIGNMENT * HONE_BUFFER_ALIGNMENT;
  }
  return layout;
}

}  // namespace hone::agent
