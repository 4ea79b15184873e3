// SPDX-License-Identifier: Apache-2.0
#include "files/file_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/digest.h"
#include "base/status.h"
#include "files/disk.h"

namespace hone::files {
namespace {

constexpr int kOffersMax = 3;  // attempts, each after the partial file was deleted meanwhile

absl::Status NotStored(const std::string& digest, std::string_view why) {
  return absl::NotFoundError(fmt::format("file {} is not in the store: {}; send it again", digest, why));
}

// Forces an existing file's bytes to the disk.
absl::Status SyncFile(const std::filesystem::path& path) {
  HONE_ASSIGN_OR_RETURN(const OpenedFile file, OpenIfThere(path, O_RDONLY));
  return file.descriptor() >= 0 && fsync(file.descriptor()) == 0 ? absl::OkStatus() : DiskError("write", path);
}

}  // namespace

absl::StatusOr<FileStore::OfferResult> FileStore::Offer(const FileDescription& file, const std::string& owner,
                                                        const std::string& holder) {
  HONE_RETURN_IF_ERROR(CheckDescription(file));
  HONE_ASSIGN_OR_RETURN(std::optional<OfferResult> proof, AskForProof(file, holder));
  if (proof.has_value()) return *std::move(proof);
  for (int attempt = 0; attempt < kOffersMax; ++attempt) {
    HONE_ASSIGN_OR_RETURN(const std::shared_ptr<PartialFile> partial, Begin(file, owner, holder));
    if (partial == nullptr) return OfferResult();
    const std::lock_guard lock(partial->mutex);
    if (partial->state() == PartialFile::State::kComplete) return OfferResult();
    if (partial->state() == PartialFile::State::kGone) continue;
    HONE_RETURN_IF_ERROR(Prepare(*partial, holder));
    if (!partial->HasAll()) return OfferResult{partial->MissingIndices()};
    HONE_RETURN_IF_ERROR(Finish(*partial));
    return OfferResult{{}, true};
  }
  return absl::UnavailableError(
      fmt::format("file {} was offered by several callers, each with other chunks; offer it again", file.digest));
}

// A file of one chunk has the digest of that chunk, so its list of chunks is no secret. The digests of several chunks
// are: only a caller that has the file, or may describe it, knows them.
absl::StatusOr<std::optional<FileStore::OfferResult>> FileStore::AskForProof(const FileDescription& file,
                                                                             const std::string& holder) {
  bool is_cut_alike = false;
  {
    const std::lock_guard lock(mutex_);
    const auto complete = complete_.find(file.digest);
    if (complete == complete_.end() || holder.empty() || complete->second.of.holders.contains(holder)) {
      return std::optional<OfferResult>();
    }
    if (file.chunks.size() == 1) return std::optional(OfferResult{{0}});
    is_cut_alike = complete->second.file == file;
  }
  if (!is_cut_alike) HONE_RETURN_IF_ERROR(CheckCut(file));
  AddHolder(file.digest, holder);
  return std::optional<OfferResult>();
}

// Compares the chunks of a list that another program has cut with the complete file.
absl::Status FileStore::CheckCut(const FileDescription& file) {
  HONE_ASSIGN_OR_RETURN(const OpenedFile opened, OpenFile(file.digest));
  for (size_t i = 0; i < file.chunks.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const std::optional<std::string> contents,
                          ReadChunk(opened.descriptor(), PathOf(file.digest), file, i));
    if (contents.has_value()) continue;
    return absl::InvalidArgumentError(fmt::format("chunk {} is not one of file {}", i, file.digest));
  }
  return absl::OkStatus();
}

bool FileStore::Holds(const std::string& digest, const std::string& holder) const {
  const std::lock_guard lock(mutex_);
  const auto complete = complete_.find(digest);
  return complete != complete_.end() && complete->second.of.holders.contains(holder);
}

std::optional<int64_t> FileStore::BytesOf(const std::string& digest) const {
  const std::lock_guard lock(mutex_);
  const auto complete = complete_.find(digest);
  return complete == complete_.end() ? std::nullopt : std::optional(complete->second.file.bytes());
}

void FileStore::AddHolder(const std::string& digest, const std::string& holder) {
  const std::lock_guard lock(mutex_);
  if (const auto complete = complete_.find(digest); complete != complete_.end()) {
    AddHolderOf(complete->second, holder);
  }
}

FileStore::Hold::Hold(FileStore& store, std::vector<std::string> digests)
    : store_(store), digests_(std::move(digests)) {
  const std::lock_guard lock(store_.mutex_);
  store_.held_.insert(digests_.begin(), digests_.end());
}

FileStore::Hold::~Hold() {
  const std::lock_guard lock(store_.mutex_);
  for (const std::string& digest : digests_) store_.held_.erase(store_.held_.find(digest));
}

absl::StatusOr<std::shared_ptr<PartialFile>> FileStore::Begin(const FileDescription& file, const std::string& owner,
                                                              const std::string& holder) {
  const std::set<std::string> unneeded = Unneeded();
  const bool shows_by_list = !holder.empty() && file.chunks.size() != 1;
  const std::lock_guard lock(mutex_);
  if (const auto complete = complete_.find(file.digest); complete != complete_.end()) {
    Touch(file.digest, complete->second);
    MoveTo(owner, complete->second.file, unneeded, complete->second.of);
    return nullptr;
  }
  if (const auto partial = partial_.find(file.digest); partial != partial_.end()) {
    if (partial->second.contents->file() == file) {
      partial->second.used = rules_.now();
      MoveTo(owner, file, unneeded, partial->second.of);
      if (shows_by_list) partial->second.of.holders.insert(holder);
      return partial->second.contents;
    }
    DeletePartial(file.digest);
  }
  HONE_RETURN_IF_ERROR(MakeRoom(file, owner, unneeded));
  const Ownership of{owner, shows_by_list ? std::set<std::string>{holder} : std::set<std::string>()};
  HONE_RETURN_IF_ERROR(WriteList(file, of));
  absl::StatusOr<OpenedFile> opened = CreateFile(PartPathOf(file.digest));
  if (!opened.ok()) {
    unlink(ListPathOf(file.digest).c_str());
    return opened.status();
  }
  auto contents = std::make_shared<PartialFile>(file, PartPathOf(file.digest), *std::move(opened), false);
  partial_[file.digest] = {contents, of, rules_.now()};
  return contents;
}

absl::Status FileStore::Prepare(PartialFile& partial, const std::string& holder) {
  absl::Status prepared = partial.Prepare();
  if (prepared.ok()) prepared = CopyKnownChunks(partial, holder);
  return prepared.ok() ? prepared : Failed(partial, prepared);
}

// A chunk that is also a whole file is copied only for those who have that file: others may know its digest, and the
// file into which it is copied becomes theirs.
absl::Status FileStore::CopyKnownChunks(PartialFile& partial, const std::string& holder) {
  std::string opened_digest;  // of `source`
  OpenedFile source;
  for (const int32_t index : partial.MissingIndices()) {
    const ChunkName& chunk = partial.file().chunks[static_cast<size_t>(index)];
    int64_t offset = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto place = places_.find(chunk.digest);
      if (place == places_.end()) continue;
      const auto whole = complete_.find(Hex(chunk.digest));
      if (!holder.empty() && whole != complete_.end() && !whole->second.of.holders.contains(holder)) continue;
      offset = place->second.offset;
      if (opened_digest != place->second.digest) {
        opened_digest = place->second.digest;
        source = OpenIfThere(PathOf(opened_digest), O_RDONLY).value_or(OpenedFile());
      }
    }
    // A chunk that cannot be read, or has changed on the disk, is missing.
    const auto contents = ReadChunkAt(source.descriptor(), PathOf(opened_digest), chunk, offset);
    if (contents.ok() && contents->has_value()) HONE_RETURN_IF_ERROR(partial.Write(chunk.digest, **contents));
  }
  return absl::OkStatus();
}

absl::Status FileStore::Finish(PartialFile& partial) {
  const std::string& digest = partial.file().digest;
  absl::Status durable = partial.Finish();
  if (durable.ok()) durable = SyncFile(ListPathOf(digest));
  if (!durable.ok()) return Failed(partial, durable);
  {
    const std::lock_guard lock(mutex_);
    if (partial.state() == PartialFile::State::kGone) return NotStored(digest, "it was deleted before it was complete");
    if (rename(partial.path().c_str(), PathOf(digest).c_str()) != 0) {
      const absl::Status unnamed = DiskError("rename", partial.path());
      DeletePartial(digest);
      return unnamed;
    }
    Insert(partial.file(), partial_[digest].of, rules_.now(), true);
    partial_.erase(digest);
    (void)WriteList(partial.file(), complete_[digest].of);  // without it, holders who came later send it again
    partial.set_state(PartialFile::State::kComplete);
  }
  return SyncFolder(folder_);
}

absl::Status FileStore::Failed(PartialFile& partial, absl::Status why) {
  const std::lock_guard lock(mutex_);
  if (partial.state() == PartialFile::State::kOpen) DeletePartial(partial.file().digest);
  return why;
}

absl::StatusOr<FileStore::PutResult> FileStore::Put(const std::string& digest, int64_t index, std::string_view contents,
                                                    const std::string& holder) {
  // A file of one chunk has the digest of that chunk.
  const bool shows_by_chunk = !holder.empty() && Hex(Sha256Of(contents)) == digest;
  std::shared_ptr<PartialFile> partial;
  {
    const std::lock_guard lock(mutex_);
    if (const auto complete = complete_.find(digest); complete != complete_.end()) {
      if (shows_by_chunk) {
        AddHolderOf(complete->second, holder);
        Touch(digest, complete->second);
      }
      return PutResult();
    }
    const auto found = partial_.find(digest);
    if (found == partial_.end()) return NotStored(digest, "it was not offered, or was deleted since");
    found->second.used = rules_.now();
    if (shows_by_chunk) found->second.of.holders.insert(holder);
    partial = found->second.contents;
  }
  HONE_RETURN_IF_ERROR(CheckIndex(partial->file(), index));
  const ChunkName& chunk = partial->file().chunks[static_cast<size_t>(index)];
  if (static_cast<int64_t>(contents.size()) != chunk.bytes || Sha256Of(contents) != chunk.digest) {
    return absl::InvalidArgumentError(
        fmt::format("the contents of chunk {} of file {} differ from its digest; send it again", index, digest));
  }
  const std::lock_guard lock(partial->mutex);
  if (partial->state() == PartialFile::State::kComplete) return PutResult();
  if (partial->state() == PartialFile::State::kGone) return NotStored(digest, "it was deleted before it was complete");
  absl::Status written = partial->Prepare();
  if (written.ok()) written = partial->Write(chunk.digest, contents);
  if (!written.ok()) return Failed(*partial, written);
  if (!partial->HasAll()) return PutResult{partial->missing(), false};
  HONE_RETURN_IF_ERROR(Finish(*partial));
  return PutResult{0, true};
}

absl::StatusOr<FileDescription> FileStore::Describe(const std::string& digest) {
  const std::lock_guard lock(mutex_);
  const auto found = complete_.find(digest);
  if (found == complete_.end()) return NotStored(digest, "it was never stored, or was deleted");
  Touch(digest, found->second);
  return found->second.file;
}

absl::StatusOr<OpenedFile> FileStore::OpenStored(const std::string& digest, FileDescription* file, bool* verified) {
  const std::lock_guard lock(mutex_);
  const auto found = complete_.find(digest);
  if (found == complete_.end()) return NotStored(digest, "it was never stored, or was deleted");
  HONE_ASSIGN_OR_RETURN(OpenedFile opened, OpenIfThere(PathOf(digest), O_RDONLY));
  if (opened.descriptor() < 0) {
    DeleteComplete(digest);
    return NotStored(digest, "another program has deleted it from " + folder_.string());
  }
  Touch(digest, found->second);
  *file = found->second.file;
  *verified = found->second.verified;
  return opened;
}

absl::Status FileStore::DeleteDamaged(const std::string& digest) {
  const std::lock_guard lock(mutex_);
  if (complete_.contains(digest)) DeleteComplete(digest);
  return NotStored(digest, "its bytes have changed on the disk of " + folder_.string() + ", so it was deleted");
}

absl::StatusOr<std::string> FileStore::Get(const std::string& digest, int64_t index) {
  FileDescription file;
  bool verified = false;
  HONE_ASSIGN_OR_RETURN(const OpenedFile opened, OpenStored(digest, &file, &verified));
  HONE_RETURN_IF_ERROR(CheckIndex(file, index));
  HONE_ASSIGN_OR_RETURN(std::optional<std::string> contents,
                        ReadChunk(opened.descriptor(), PathOf(digest), file, static_cast<size_t>(index)));
  if (!contents.has_value()) return DeleteDamaged(digest);
  return *std::move(contents);
}

absl::StatusOr<OpenedFile> FileStore::OpenFile(const std::string& digest) {
  FileDescription file;
  bool verified = false;
  HONE_ASSIGN_OR_RETURN(OpenedFile opened, OpenStored(digest, &file, &verified));
  if (verified) return opened;
  HONE_ASSIGN_OR_RETURN(const std::string found, DigestOf(opened.descriptor(), PathOf(digest)));
  if (found != digest) return DeleteDamaged(digest);
  const std::lock_guard lock(mutex_);
  if (const auto complete = complete_.find(digest); complete != complete_.end()) complete->second.verified = true;
  return opened;
}

absl::StatusOr<FileDescription> FileStore::AddLocal(const std::string& path, const std::string& owner,
                                                    const std::stop_token& stop) {
  const OpenedFile source(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (source.descriptor() < 0) {
    return absl::NotFoundError(fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  }
  HONE_ASSIGN_OR_RETURN(FileDescription file, DescribeFile(source.descriptor(), path, stop));
  HONE_ASSIGN_OR_RETURN(const OfferResult offer, Offer(file, owner));
  for (const int32_t index : offer.missing) {
    if (stop.stop_requested()) return absl::CancelledError(fmt::format("stopped while '{}' was copied", path));
    HONE_ASSIGN_OR_RETURN(const std::optional<std::string> contents,
                          ReadChunk(source.descriptor(), path, file, static_cast<size_t>(index)));
    if (!contents.has_value()) {
      return absl::AbortedError(fmt::format("'{}' changed while it was copied; try again", path));
    }
    HONE_RETURN_IF_ERROR(Put(file.digest, index, *contents).status());
  }
  return file;
}

}  // namespace hone::files
