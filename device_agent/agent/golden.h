// SPDX-License-Identifier: Apache-2.0
// The golden kernel: a known piece of work for each kind of device, measured as every batch is, through the launcher,
// its sandbox and a child. Where it fails, the device or its machine is broken, whatever else was asked of it; where it
// became slow, so did everything.
//
// Here is what it is and how its result is read. When it is measured is the worker's affair (sync_loop.h), what follows
// from it the tracker's (tracker/queue/health.h).
#ifndef HONE_DEVICE_AGENT_AGENT_GOLDEN_H_
#define HONE_DEVICE_AGENT_AGENT_GOLDEN_H_

#include <optional>
#include <string>

#include "hone/v1/agent.pb.h"
#include "hone/v1/measure.pb.h"

namespace hone::agent {

// The batch to measure on a device whose fingerprint names that architecture; nullopt: there is none for such devices.
std::optional<v1::Batch> GoldenBatch(const std::string& architecture);

// What came of it. `number`: which check of this process it is.
v1::GoldenCheck ReadGolden(const v1::Batch& batch, const v1::BatchResult& result, uint64_t number);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_GOLDEN_H_
