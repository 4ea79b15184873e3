// SPDX-License-Identifier: Apache-2.0
// Sends one Synchronize call from the agent to its tracker over gRPC. SyncLoop (sync_loop.h), which knows no gRPC, uses
// it.
#ifndef HONE_DEVICE_AGENT_AGENT_CALL_TRACKER_H_
#define HONE_DEVICE_AGENT_AGENT_CALL_TRACKER_H_

#include <stop_token>

#include "absl/status/statusor.h"
#include "hone/v1/agent.pb.h"
#include "pki/farm_link.h"

namespace hone::agent {

// Blocks until the tracker answers, a stop is requested, or the answer is well overdue. A request with `leaving` waits
// only briefly, because the tracker may be gone. The errors are those of agent.proto.
absl::StatusOr<v1::SynchronizeResponse> CallTracker(pki::FarmLink& link, const v1::SynchronizeRequest& request,
                                                    const std::stop_token& stop);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_CALL_TRACKER_H_
