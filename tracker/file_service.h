// SPDX-License-Identifier: Apache-2.0
// The gRPC service FileService: the store of the files of runs (files/file_store.h), with errors converted.
#ifndef HONE_TRACKER_FILE_SERVICE_H_
#define HONE_TRACKER_FILE_SERVICE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "files/file_store.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "tracker/callers.h"
#include "tracker/file_rights.h"

namespace hone::tracker {

// Opens the tracker's store. in_use: which files open jobs name; it is called without locks of the store, and may take
// a lock of the farm. Errors as FileStore::Open.
absl::StatusOr<std::unique_ptr<files::FileStore>> OpenFiles(const std::filesystem::path& folder, int64_t quota,
                                                            files::KeepRules::InUse in_use);

// The service is synchronous: its calls read and write a disk, on gRPC's threads for such calls, and take the lock of
// the farm only for `in_use` and for a question of rights. store, rights: must outlive the service.
std::unique_ptr<grpc::Service> MakeFileService(files::FileStore* store, const FileRights* rights, Callers callers);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_FILE_SERVICE_H_
