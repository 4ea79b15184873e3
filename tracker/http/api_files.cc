// SPDX-License-Identifier: Apache-2.0
// Handlers of files of runs: packages and inputs that callers bring, outputs that they fetch. They do what FileService
// does over gRPC (file_service.cc), with digests as text.
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include "base/digest.h"
#include "base/status.h"
#include "files/chunks.h"
#include "tracker/http/api.h"

namespace hone::tracker {
namespace {

using files::FileDescription;
using files::FileStore;

// Who brings a file, as Callers::IdentityIn.
std::string SenderOf(const ApiCall& call) {
  const std::optional<FarmIdentity> caller = call.visitor.caller();
  return caller.has_value() ? UriOf(*caller) : "";
}

absl::StatusOr<int64_t> IndexIn(const std::string& text) {
  int64_t index = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, index);
  if (error == std::errc() && stopped == end) return index;
  return absl::InvalidArgumentError(fmt::format("'{}' is not the number of a chunk; the first is 0", text));
}

absl::StatusOr<Sha256Digest> DigestIn(const std::string& text) {
  if (const std::optional<Sha256Digest> digest = ParseSha256Hex(text)) return *digest;
  return absl::InvalidArgumentError(
      fmt::format("'{}' is not the SHA-256 of a chunk in 64 hexadecimal digits of lower case", text));
}

absl::StatusOr<FileDescription> DescriptionIn(const ApiCall& call) {
  FileDescription file;
  HONE_ASSIGN_OR_RETURN(file.digest, call.Text("digest"));
  const auto chunks = call.body.find("chunks");
  if (chunks == call.body.end() || !chunks->is_array()) {
    return absl::InvalidArgumentError("the body must have 'chunks', a list of objects with 'digest' and 'bytes'");
  }
  for (const nlohmann::json& chunk : *chunks) {
    const bool good = chunk.is_object() && chunk.contains("digest") && chunk["digest"].is_string() &&
                      chunk.contains("bytes") && chunk["bytes"].is_number_integer();
    if (!good) return absl::InvalidArgumentError("every chunk must have 'digest', a string, and 'bytes', a number");
    HONE_ASSIGN_OR_RETURN(const Sha256Digest digest, DigestIn(chunk["digest"].get<std::string>()));
    file.chunks.push_back({digest, chunk["bytes"].get<int64_t>()});
  }
  return file;
}

FileDescription Cut(const std::string& digest, std::string_view contents) {
  FileDescription file{.digest = digest, .chunks = {}};
  while (!contents.empty()) {
    const size_t bytes = files::FirstChunkBytes(contents);
    file.chunks.push_back({Sha256Of(contents.substr(0, bytes)), static_cast<int64_t>(bytes)});
    contents.remove_prefix(bytes);
  }
  return file;
}

// owner, sender: as FileStore::Offer.
absl::Status PutWhole(FileStore& store, const std::string& digest, std::string_view contents, const std::string& owner,
                      const std::string& sender) {
  if (const std::string actual = Sha256Hex(contents); actual != digest) {
    return absl::InvalidArgumentError(
        fmt::format("the contents have the digest {}, not that of the address, {}", actual, digest));
  }
  const FileDescription file = Cut(digest, contents);
  HONE_ASSIGN_OR_RETURN(const FileStore::OfferResult offer, store.Offer(file, owner, sender));
  std::vector<size_t> begins = {0};
  for (const files::ChunkName& chunk : file.chunks) begins.push_back(begins.back() + static_cast<size_t>(chunk.bytes));
  for (const int32_t index : offer.missing) {
    const auto i = static_cast<size_t>(index);
    const std::string_view chunk = contents.substr(begins[i], begins[i + 1] - begins[i]);
    HONE_RETURN_IF_ERROR(store.Put(digest, index, chunk, sender).status());
  }
  return absl::OkStatus();
}

// The error of a caller who may not fetch the file is in the audit log.
absl::Status CheckFetch(const ApiContext& context, const ApiCall& call, std::string_view method) {
  const absl::Status allowed = context.file_rights->CheckFetch(call.visitor.caller(), call.names[0]);
  if (!allowed.ok()) NoteOf(context, call, method)(call.names[0], allowed);
  return allowed;
}

HttpResponse Bytes(std::string contents) {
  return {.type = "application/octet-stream", .body = std::move(contents), .headers = {}};
}

}  // namespace

absl::StatusOr<HttpResponse> OfferFile(const ApiContext& context, const ApiCall& call) {
  const absl::StatusOr<FileDescription> file = DescriptionIn(call);
  if (!file.ok()) return file.status();
  const absl::StatusOr<FileStore::OfferResult> offer =
      context.file_store->Offer(*file, context.file_rights->OwnerOf(call.visitor.caller()), SenderOf(call));
  if (!offer.ok() || offer->completed) NoteOf(context, call, "FileService/Offer")(file->digest, offer.status());
  if (!offer.ok()) return offer.status();
  return JsonResponse({{"digest", file->digest}, {"missing", offer->missing}});
}

absl::StatusOr<HttpResponse> PutChunk(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(const int64_t index, IndexIn(call.names[1]));
  const std::string& digest = call.names[0];
  const absl::StatusOr<FileStore::PutResult> put =
      context.file_store->Put(digest, index, call.request.body, SenderOf(call));
  if (put.ok() ? put->completed : !absl::IsNotFound(put.status())) {
    NoteOf(context, call, "FileService/Put")(digest, put.status());
  }
  if (!put.ok()) return put.status();
  return JsonResponse({{"digest", digest}, {"missing", put->missing}});
}

absl::StatusOr<HttpResponse> PutFile(const ApiContext& context, const ApiCall& call) {
  const std::string& digest = call.names[0];
  const absl::Status put = PutWhole(*context.file_store, digest, call.request.body,
                                    context.file_rights->OwnerOf(call.visitor.caller()), SenderOf(call));
  NoteOf(context, call, "FileService/Put")(digest, put);
  if (!put.ok()) return put;
  return JsonResponse({{"digest", digest}, {"bytes", call.request.body.size()}});
}

absl::StatusOr<HttpResponse> ShowFile(const ApiContext& context, const ApiCall& call) {
  HONE_RETURN_IF_ERROR(CheckFetch(context, call, "FileService/Describe"));
  HONE_ASSIGN_OR_RETURN(const FileDescription file, context.file_store->Describe(call.names[0]));
  Json chunks = Json::array();
  for (const files::ChunkName& chunk : file.chunks) {
    chunks.push_back({{"digest", Hex(chunk.digest)}, {"bytes", chunk.bytes}});
  }
  return JsonResponse({{"digest", file.digest}, {"bytes", file.bytes()}, {"chunks", std::move(chunks)}});
}

absl::StatusOr<HttpResponse> GetChunk(const ApiContext& context, const ApiCall& call) {
  HONE_RETURN_IF_ERROR(CheckFetch(context, call, "FileService/Get"));
  HONE_ASSIGN_OR_RETURN(const int64_t index, IndexIn(call.names[1]));
  HONE_ASSIGN_OR_RETURN(std::string contents, context.file_store->Get(call.names[0], index));
  return Bytes(std::move(contents));
}

absl::StatusOr<HttpResponse> GetFile(const ApiContext& context, const ApiCall& call) {
  HONE_RETURN_IF_ERROR(CheckFetch(context, call, "FileService/Get"));
  HONE_ASSIGN_OR_RETURN(const FileDescription file, context.file_store->Describe(call.names[0]));
  if (file.bytes() > static_cast<int64_t>(kWholeFileBytesMax)) {
    return absl::FailedPreconditionError(
        fmt::format("the file has {} bytes; above {} get its {} chunks one by one: /api/v1/files/{}/chunks/0 and so on",
                    file.bytes(), kWholeFileBytesMax, file.chunks.size(), file.digest));
  }
  std::string contents;
  contents.reserve(static_cast<size_t>(file.bytes()));
  for (size_t i = 0; i < file.chunks.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const std::string chunk, context.file_store->Get(file.digest, static_cast<int64_t>(i)));
    contents += chunk;
  }
  return Bytes(std::move(contents));
}

}  // namespace hone::tracker
