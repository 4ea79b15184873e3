#include "device_agent/visit_batch.h"

#include "base/kernel_abi.h"

namespace hone::agent {

DataLayout LayOut(const VisitBatch& batch) {
  DataLayout layout;
  for (const VisitBuffer& buffer : batch.buffers) {
    layout.offsets.push_back(layout.bytes);
    layout.bytes += (buffer.bytes + HONE_BUFFER_ALIGNMENT - 1) / HONE_BUFFER_ALIGNMENT * HONE_BUFFER_ALIGNMENT;
  }
  return layout;
}

}  // namespace hone::agent
