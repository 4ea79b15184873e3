// SPDX-License-Identifier: Apache-2.0
// The golden kernel: a known piece of work for each kind of device. It is measured like any batch, through the
// launcher, the sandbox and a child. If it fails, the device or its machine is broken; if it is slow, all measurements
// there are slow.
//
// This file makes its batch and reads its result. SyncLoop (sync_loop.h) decides when it is measured. The tracker
// decides what follows from the result (tracker/queue/health.h).
#ifndef HONE_DEVICE_AGENT_AGENT_GOLDEN_H_
#define HONE_DEVICE_AGENT_AGENT_GOLDEN_H_

#include <optional>
#include <string>

#include "hone/v1/agent.pb.h"
#include "hone/v1/measure.pb.h"

namespace hone::agent {

// The batch to measure on a device whose fingerprint names that architecture. nullopt: no golden kernel exists for it.
std::optional<v1::Batch> GoldenBatch(const std::string& architecture);

// Turns the result of a GoldenBatch into a check. `number` counts the checks of this process.
v1::GoldenCheck ToGoldenCheck(const v1::Batch& batch, const v1::BatchResult& result, uint64_t number);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_GOLDEN_H_
