// SPDX-License-Identifier: Apache-2.0
// One call of the tracker with an answer, as all commands make it. Streams are with their commands.
#ifndef HONE_CLI_CALL_TRACKER_H_
#define HONE_CLI_CALL_TRACKER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "transport/transport.h"

namespace hone::cli {

// Calls a method of a stub. tracker: its address, for errors. time_max: an answer that comes later is an error.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> CallTracker(Stub& stub,
                                     grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                     const Request& request, const std::string& tracker,
                                     absl::Duration time_max = absl::Seconds(15)) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(time_max));
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return Annotate(FromGrpc(status), "tracker " + tracker);
  return response;
}

}  // namespace hone::cli

#endif  // HONE_CLI_CALL_TRACKER_H_
