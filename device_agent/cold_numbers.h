// What repeats on cold constants have in common on all devices: how many bytes come round, what they hold, and which
// buffers of a kernel are replaced by them. What cold constants are: device_agent/cpu/cold_constants.h.
#ifndef HONE_DEVICE_AGENT_COLD_NUMBERS_H_
#define HONE_DEVICE_AGENT_COLD_NUMBERS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "base/kernel_interface.h"
#include "device_agent/device.h"

namespace hone::agent {

// Bytes to come round; 0 for constants that stay the same. No more than would leave a small board without memory for
// the kernels themselves.
int64_t ColdBytes(const SessionOptions& options);

// Numbers that are normal and finite in every float type.
void FillCold(char* data, int64_t bytes);

// Indices and sizes of the float constants, packed ones too. Integers stay what they are: they may be indices.
std::vector<std::pair<uint32_t, int64_t>> ColdBuffers(const KernelInterface& interface);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_COLD_NUMBERS_H_
