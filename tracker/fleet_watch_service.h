// SPDX-License-Identifier: Apache-2.0
// The gRPC service FleetWatchService. Each RPC is one call of the shell; the checks of changes are in watch_requests.h.
#ifndef HONE_TRACKER_FLEET_WATCH_SERVICE_H_
#define HONE_TRACKER_FLEET_WATCH_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "tracker/callers.h"
#include "tracker/file_rights.h"
#include "tracker/shell.h"

namespace hone::tracker {

// The service is synchronous, because its calls may wait for the disk. shell and rights must outlive it.
std::unique_ptr<grpc::Service> MakeFleetWatchService(Shell* shell, const FileRights* rights, Callers callers);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_FLEET_WATCH_SERVICE_H_
