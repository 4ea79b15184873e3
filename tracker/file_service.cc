// SPDX-License-Identifier: Apache-2.0
#include "tracker/file_service.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "base/status.h"
#include "files/transfer.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/file.grpc.pb.h"
#include "tracker/access.h"
#include "tracker/queue/quotas.h"
#include "transport/transport.h"

namespace hone::tracker {
namespace {

constexpr absl::Duration kKeepFiles = absl::Hours(24);

class FileServiceShell final : public v1::FileService::Service {
 public:
  FileServiceShell(files::FileStore* store, const FileRights* rights, Callers callers)
      : store_(store), rights_(rights), callers_(callers) {}

  grpc::Status Offer(grpc::ServerContext* context, const v1::OfferFileRequest* request,
                     v1::OfferFileResponse* response) override {
    const absl::StatusOr<files::FileDescription> file = files::FromProto(request->file());
    const std::string owner = rights_->OwnerOf(CallerOf(*context->auth_context()));
    const auto offer = file.ok() ? store_->Offer(*file, owner, Callers::IdentityIn(*context)) : file.status();
    if (!offer.ok() || offer->completed) Note(*context, "FileService/Offer", request->file().digest(), offer.status());
    if (!offer.ok()) return ToGrpc(offer.status());
    response->mutable_missing()->Add(offer->missing.begin(), offer->missing.end());
    return grpc::Status::OK;
  }

  grpc::Status Put(grpc::ServerContext* context, const v1::PutChunksRequest* request,
                   v1::PutChunksResponse* response) override {
    const auto put = PutAll(*request, Callers::IdentityIn(*context));
    // A file that is not there is offered again, which then fails or is noted.
    if ((!put.ok() && !absl::IsNotFound(put.status())) || (put.ok() && put->completed)) {
      Note(*context, "FileService/Put", request->digest(), put.status());
    }
    if (put.ok()) response->set_missing(put->missing);
    return ToGrpc(put.status());
  }

  grpc::Status Describe(grpc::ServerContext* context, const v1::DescribeFileRequest* request,
                        v1::FileDescription* response) override {
    const absl::Status allowed = CheckFetch(*context, "FileService/Describe", request->digest());
    if (!allowed.ok()) return ToGrpc(allowed);
    const auto file = store_->Describe(request->digest());
    if (file.ok()) *response = files::ToProto(*file);
    return ToGrpc(file.status());
  }

  grpc::Status Get(grpc::ServerContext* context, const v1::GetChunksRequest* request,
                   v1::GetChunksResponse* response) override {
    const absl::Status allowed = CheckFetch(*context, "FileService/Get", request->digest());
    if (!allowed.ok()) return ToGrpc(allowed);
    int64_t bytes = 0;
    for (const int32_t index : request->chunks()) {
      absl::StatusOr<std::string> contents = store_->Get(request->digest(), index);
      if (!contents.ok()) return ToGrpc(contents.status());
      bytes += static_cast<int64_t>(contents->size());
      if (response->chunks_size() > 0 && bytes > files::kGetBytesMax) break;
      v1::Chunk* chunk = response->add_chunks();
      chunk->set_index(index);
      chunk->set_contents(*std::move(contents));
    }
    return grpc::Status::OK;
  }

 private:
  absl::Status CheckFetch(const grpc::ServerContext& context, std::string_view method,
                          const std::string& digest) const {
    const absl::Status allowed = rights_->CheckFetch(CallerOf(*context.auth_context()), digest);
    if (!allowed.ok()) Note(context, method, digest, allowed);
    return allowed;
  }
  absl::StatusOr<files::FileStore::PutResult> PutAll(const v1::PutChunksRequest& request, const std::string& sender) {
    int64_t bytes = 0;
    for (const v1::Chunk& chunk : request.chunks()) bytes += static_cast<int64_t>(chunk.contents().size());
    if (bytes > files::kPutBytesMax || request.chunks().empty()) {
      return absl::InvalidArgumentError(
          fmt::format("a call has 1 byte to {} bytes of chunks; this one has {}", files::kPutBytesMax, bytes));
    }
    files::FileStore::PutResult all;
    for (const v1::Chunk& chunk : request.chunks()) {
      HONE_ASSIGN_OR_RETURN(const files::FileStore::PutResult put,
                            store_->Put(request.digest(), chunk.index(), chunk.contents(), sender));
      all.missing = put.missing;
      all.completed = all.completed || put.completed;
    }
    return all;
  }
  // The work of agents and tuners is not in the audit log: jobs show it.
  void Note(const grpc::ServerContext& context, std::string_view method, const std::string& digest,
            const absl::Status& result) const {
    const std::optional<FarmIdentity> caller = CallerOf(*context.auth_context());
    if (caller.has_value() && (caller->role == Role::kAgent || caller->role == Role::kTuner)) return;
    callers_.Note(context, method, digest, result);
  }

  files::FileStore* const store_;
  const FileRights* const rights_;
  const Callers callers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<files::FileStore>> OpenFiles(const std::filesystem::path& folder, int64_t quota,
                                                            files::KeepRules::InUse in_use) {
  files::KeepRules rules{.quota = quota, .keep = kKeepFiles, .in_use = std::move(in_use)};
  rules.quota_of_owner = static_cast<int64_t>(static_cast<double>(quota) * kQuotas.file_share);
  return files::FileStore::Open(folder, std::move(rules));
}

std::unique_ptr<grpc::Service> MakeFileService(files::FileStore* store, const FileRights* rights, Callers callers) {
  return std::make_unique<FileServiceShell>(store, rights, callers);
}

}  // namespace hone::tracker
