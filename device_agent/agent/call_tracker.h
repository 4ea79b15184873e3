// SPDX-License-Identifier: Apache-2.0
// One call of an agent to its tracker: the transport under SyncLoop (sync_loop.h), which knows no gRPC.
#ifndef HONE_DEVICE_AGENT_AGENT_CALL_TRACKER_H_
#define HONE_DEVICE_AGENT_AGENT_CALL_TRACKER_H_

#include <stop_token>

#include "absl/status/statusor.h"
#include "hone/v1/agent.pb.h"
#include "pki/farm_link.h"

namespace hone::agent {

// Blocks until the tracker answers, `stop` is asked for, or the answer is well overdue. An agent that leaves waits
// hardly at all: the tracker may be gone. Errors as in agent.proto.
absl::StatusOr<v1::SynchronizeResponse> CallTracker(pki::FarmLink& link, const v1::SynchronizeRequest& request,
                                                    const std::stop_token& stop);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_CALL_TRACKER_H_
