// SPDX-License-Identifier: Apache-2.0
// The back end of OpenCL devices: LaneBackend with the OpenCL driver.
#include "deploy/runtime/lane_backend.h"
#include "drivers/lane_drivers.h"

namespace hone::runtime {
Fault LoadOpenClBackend(const ProgramView& program, uint32_t home, std::span<const uint8_t> constants,
                        const BackendOptions& options, std::unique_ptr<Backend>* backend) {
  auto result = std::make_unique<LaneBackend<drivers::OpenClDriver>>(program, home);
  HONE_RETURN_IF_FAULT(result->Load(constants, options));
  *backend = std::move(result);
  return {};
}

}  // namespace hone::runtime
