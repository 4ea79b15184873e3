// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/call_tracker.h"

#include <chrono>

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/agent.grpc.pb.h"
#include "transport/transport.h"

namespace hone::agent {

absl::StatusOr<v1::SynchronizeResponse> CallTracker(pki::FarmLink& link, const v1::SynchronizeRequest& request,
                                                    const std::stop_token& stop) {
  // An agent that leaves does not wait for a connection, because the tracker may be gone.
  const auto channel = request.leaving() ? link.channel() : link.AwaitConnectedChannel(absl::Seconds(10), stop);
  const int grace = request.leaving() ? 2 : 15;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(request.max_wait().seconds() + grace));
  const std::stop_callback cancel(stop, [&] { context.TryCancel(); });
  v1::SynchronizeResponse response;
  const grpc::Status status = v1::AgentService::NewStub(channel)->Synchronize(&context, request, &response);
  if (!status.ok()) return FromGrpc(status);
  return response;
}

}  // namespace hone::agent
