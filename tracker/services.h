// SPDX-License-Identifier: Apache-2.0
// The tracker's gRPC services: each RPC is one call of the shell or the record store, with errors converted.
//
// Calls that wait for something to happen, and those that agents and tuners make all the time, are asynchronous and
// hold no thread. Those that read or write a disk by themselves are synchronous, on threads that may wait. Who may call
// what was decided before (access.h); here a caller is held to its name. Not here: any other decision.
#ifndef HONE_TRACKER_SERVICES_H_
#define HONE_TRACKER_SERVICES_H_

#include <memory>
#include <vector>

#include "grpcpp/impl/codegen/service_type.h"
#include "tracker/membership.h"
#include "tracker/shell.h"

namespace hone::tracker {

// AgentService, TunerService, JobService, AdminService, RecordService, and on HOST:PORT JoinService and
// IdentityService. `membership`: null on a socket. All must outlive them.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(Shell* shell, records::Store* store,
                                                         const Membership* membership);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_SERVICES_H_
