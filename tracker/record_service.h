// SPDX-License-Identifier: Apache-2.0
// The gRPC service RecordService. Each RPC is one call of the record store, with errors converted.
#ifndef HONE_TRACKER_RECORD_SERVICE_H_
#define HONE_TRACKER_RECORD_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "records/store.h"
#include "tracker/callers.h"

namespace hone::tracker {

// The service is synchronous: its calls read a disk, on gRPC's threads for such calls. The store reads over connections
// of its own, so reading delays neither the farm nor its writes.
std::unique_ptr<grpc::Service> MakeRecordService(records::Store* store, Callers callers);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_RECORD_SERVICE_H_
