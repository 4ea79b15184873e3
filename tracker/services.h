// SPDX-License-Identifier: Apache-2.0
// The tracker's gRPC services. Each RPC is one call of the shell or the record store, with errors converted.
//
// Held calls, and the frequent calls of agents and tuners, are asynchronous and hold no thread. Calls that read or
// write a disk are synchronous, on threads that may wait. The role of the caller was checked before (access.h); here a
// caller is held to its own name. Not here: any other decision.
#ifndef HONE_TRACKER_SERVICES_H_
#define HONE_TRACKER_SERVICES_H_

#include <memory>
#include <vector>

#include "files/file_store.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "tracker/file_rights.h"
#include "tracker/membership.h"
#include "tracker/shell.h"

namespace hone::tracker {

// Makes AgentService, TunerService, JobService, AdminService, RecordService and FileService; with `membership` also
// JoinService and IdentityService. membership: null on the private socket. All arguments must outlive the services.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(Shell* shell, records::Store* store, files::FileStore* files,
                                                         const FileRights* rights, const Membership* membership);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_SERVICES_H_
