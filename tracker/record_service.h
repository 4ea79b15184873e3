// SPDX-License-Identifier: Apache-2.0
// RecordService: each call is one of the record store, with errors converted.
#ifndef HONE_TRACKER_RECORD_SERVICE_H_
#define HONE_TRACKER_RECORD_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "records/store.h"
#include "tracker/callers.h"

namespace hone::tracker {

// Synchronous: its calls read a disk, on gRPC's threads for such calls. The store has connections of its own for
// questions, so that they hold up neither the farm nor what it stores.
std::unique_ptr<grpc::Service> MakeRecordService(records::Store* store, Callers callers);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_RECORD_SERVICE_H_
