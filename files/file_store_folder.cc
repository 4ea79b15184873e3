// SPDX-License-Identifier: Apache-2.0
// What is in the folder of a FileStore, and which files stay in it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/identity.h"
#include "base/read_file.h"
#include "base/status.h"
#include "files/chunk_list.h"
#include "files/disk.h"
#include "files/file_store.h"

namespace hone::files {
namespace {

constexpr char kPart[] = ".part", kList[] = ".chunks", kNew[] = ".new";
constexpr absl::Duration kKeepPartial = absl::Hours(1);     // since the last chunk came
constexpr absl::Duration kTimeWritten = absl::Minutes(10);  // how old the time of use on the disk may be

// A file counts as at least this, so that the quota also bounds the number of files.
int64_t ChargeOf(const FileDescription& file) { return std::max(file.bytes(), kChunkBytesMin); }

std::string InGiB(int64_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (int64_t{1} << 30)); }

absl::Time ModifiedAt(const struct stat& there) { return absl::TimeFromTimespec(there.st_mtim); }

}  // namespace

FileStore::FileStore(std::filesystem::path folder, KeepRules rules, OpenedFile lock)
    : folder_(std::move(folder)), rules_(std::move(rules)), lock_(std::move(lock)) {}

std::filesystem::path FileStore::PathOf(const std::string& digest) const { return folder_ / digest; }
std::filesystem::path FileStore::PartPathOf(const std::string& digest) const { return folder_ / (digest + kPart); }
std::filesystem::path FileStore::ListPathOf(const std::string& digest) const { return folder_ / (digest + kList); }

absl::StatusOr<std::unique_ptr<FileStore>> FileStore::Open(std::filesystem::path folder, KeepRules rules) {
  std::error_code error;
  std::filesystem::create_directories(folder.parent_path(), error);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return DiskError("create the folder", folder);
  const std::filesystem::path path = folder / "lock";
  OpenedFile lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.descriptor() < 0) return DiskError("create", path);
  if (flock(lock.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        fmt::format("another program uses the folder {}; end it, or give another folder", folder.string()));
  }
  auto store = std::unique_ptr<FileStore>(new FileStore(std::move(folder), std::move(rules), std::move(lock)));
  HONE_RETURN_IF_ERROR(store->ReadFolder());
  return store;
}

absl::Status FileStore::ReadFolder() {
  std::error_code error;
  std::set<std::string> complete, partial, lists;
  for (std::filesystem::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    const std::filesystem::path name = entry->path().filename();
    const std::string digest = name.stem().string(), ending = name.extension().string();
    if (ending == kNew) unlink(entry->path().c_str());
    if (!IsSha256Hex(digest)) continue;
    if (ending.empty()) complete.insert(digest);
    if (ending == kPart) partial.insert(digest);
    if (ending == kList) lists.insert(digest);
  }
  if (error) {
    return absl::UnavailableError(fmt::format("cannot read the folder {}: {}", folder_.string(), error.message()));
  }
  const std::lock_guard lock(mutex_);
  for (const std::string& digest : complete) HONE_RETURN_IF_ERROR(ReadComplete(digest));
  for (const std::string& digest : partial) HONE_RETURN_IF_ERROR(ReadPartial(digest));
  for (const std::string& digest : lists) {
    if (!complete_.contains(digest) && !partial_.contains(digest)) unlink(ListPathOf(digest).c_str());
  }
  return absl::OkStatus();
}

absl::Status FileStore::ReadComplete(const std::string& digest) {
  HONE_ASSIGN_OR_RETURN(const OpenedFile opened, OpenIfThere(PathOf(digest), O_RDONLY));
  struct stat there{};
  if (opened.descriptor() < 0 || fstat(opened.descriptor(), &there) != 0) return DiskError("read", PathOf(digest));
  const absl::Time used = std::min(ModifiedAt(there), rules_.now());
  std::optional<ChunkList> list = ParseChunkList(ReadWholeFile(ListPathOf(digest).string()).value_or(""));
  if (list.has_value()) {
    FileDescription file{digest, std::move(list->chunks)};
    if (CheckDescription(file).ok() && file.bytes() == there.st_size) {
      Insert(std::move(file), std::move(list->of), used, false);
      return absl::OkStatus();
    }
  }
  // The list or the file is damaged.
  HONE_ASSIGN_OR_RETURN(FileDescription file, DescribeFile(opened.descriptor(), PathOf(digest).string()));
  if (file.digest != digest) {
    unlink(PathOf(digest).c_str());
    return absl::OkStatus();
  }
  HONE_RETURN_IF_ERROR(WriteList(file, {}));
  Insert(std::move(file), {}, used, true);
  return absl::OkStatus();
}

absl::Status FileStore::ReadPartial(const std::string& digest) {
  const std::filesystem::path path = PartPathOf(digest);
  std::optional<ChunkList> list = ParseChunkList(ReadWholeFile(ListPathOf(digest).string()).value_or(""));
  FileDescription file{digest, list.has_value() ? std::move(list->chunks) : std::vector<ChunkName>()};
  if (!list.has_value() || complete_.contains(digest) || !CheckDescription(file).ok()) {
    unlink(path.c_str());
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(OpenedFile opened, OpenIfThere(path, O_RDWR));
  struct stat there{};
  if (opened.descriptor() < 0 || fstat(opened.descriptor(), &there) != 0) return DiskError("read", path);
  auto contents = std::make_shared<PartialFile>(std::move(file), path, std::move(opened), true);
  partial_[digest] = {std::move(contents), std::move(list->of), std::min(ModifiedAt(there), rules_.now())};
  return absl::OkStatus();
}

// The list appears whole. It need not be on the disk: one that a power failure damages is found out, and made again.
absl::Status FileStore::WriteList(const FileDescription& file, const Ownership& of) {
  const std::filesystem::path path = ListPathOf(file.digest), fresh = path.string() + kNew;
  HONE_ASSIGN_OR_RETURN(const OpenedFile opened, CreateFile(fresh));
  if (WriteAt(opened.descriptor(), ToText({file.chunks, of}), 0) && rename(fresh.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  const absl::Status failed = DiskError("write", path);
  unlink(fresh.c_str());
  return failed;
}

std::set<std::string> FileStore::Unneeded() const {
  std::vector<std::string> unused;
  {
    const std::lock_guard lock(mutex_);
    const absl::Time now = rules_.now();
    for (const auto& [digest, file] : complete_) {
      if (now - file.used >= rules_.keep) unused.push_back(digest);
    }
    for (const auto& [digest, file] : partial_) {
      if (now - file.used >= KeepOfPartial()) unused.push_back(digest);
    }
  }
  std::set<std::string> unneeded(unused.begin(), unused.end());
  if (unused.empty() || !rules_.in_use) return unneeded;
  for (const std::string& digest : rules_.in_use(unused)) unneeded.erase(digest);
  return unneeded;
}

absl::Duration FileStore::KeepOfPartial() const { return std::min(rules_.keep, kKeepPartial); }

std::vector<FileStore::Kept> FileStore::ListKept(const std::set<std::string>& unneeded) const {
  const absl::Time now = rules_.now();
  // It may have been used, or held, since the set was made.
  const auto deletable = [&](const std::string& digest, absl::Time used, absl::Duration keep) {
    return now - used >= keep && unneeded.contains(digest) && !held_.contains(digest);
  };
  std::vector<Kept> kept;
  for (const auto& [digest, file] : complete_) {
    kept.push_back(
        {file.used, ChargeOf(file.file), digest, file.of.owner, false, deletable(digest, file.used, rules_.keep)});
  }
  for (const auto& [digest, file] : partial_) {
    kept.push_back({file.used, ChargeOf(file.contents->file()), digest, file.of.owner, true,
                    deletable(digest, file.used, KeepOfPartial())});
  }
  std::ranges::sort(kept, {}, &Kept::used);
  return kept;
}

int64_t FileStore::BytesHeldBy(const std::string& owner, const std::vector<Kept>& kept) {
  int64_t sum = 0;
  for (const Kept& file : kept) sum += !file.deletable && file.owner == owner ? file.charge : 0;
  return sum;
}

absl::Status FileStore::MakeRoom(const FileDescription& file, const std::string& owner,
                                 const std::set<std::string>& unneeded) {
  const int64_t charge = ChargeOf(file);
  const std::vector<Kept> kept = ListKept(unneeded);
  int64_t held = 0;
  for (const Kept& other : kept) held += other.deletable ? 0 : other.charge;
  if (rules_.refuse_beyond_quota && held + charge > rules_.quota) {
    return absl::ResourceExhaustedError(
        fmt::format("the store of files in {} has no room for {}: its quota is {}, and {} are files that open jobs "
                    "need or that were "
                    "used lately; try again later, or give the store a larger quota",
                    folder_.string(), InGiB(file.bytes()), InGiB(rules_.quota), InGiB(held)));
  }
  const int64_t owned = owner.empty() ? 0 : BytesHeldBy(owner, kept);
  if (!owner.empty() && owned + charge > rules_.quota_of_owner) {
    return absl::ResourceExhaustedError(fmt::format(
        "'{}' has {} in the store that open jobs need or that were used lately, and {} more would exceed the {} of one "
        "identity; try again later, or give the store a larger quota",
        owner, InGiB(owned), InGiB(file.bytes()), InGiB(rules_.quota_of_owner)));
  }
  DeleteDownTo(rules_.quota - charge, kept);
  return absl::OkStatus();
}

void FileStore::DeleteDownTo(int64_t bytes, const std::vector<Kept>& kept) {
  int64_t sum = 0;
  for (const Kept& file : kept) sum += file.charge;
  for (const Kept& file : kept) {
    if (sum <= bytes) return;
    if (!file.deletable) continue;
    file.partial ? DeletePartial(file.digest) : DeleteComplete(file.digest);
    sum -= file.charge;
  }
}

void FileStore::MoveTo(const std::string& owner, const FileDescription& file, const std::set<std::string>& unneeded,
                       Ownership& of) {
  if (owner == of.owner) return;
  if (!owner.empty() && BytesHeldBy(owner, ListKept(unneeded)) + ChargeOf(file) > rules_.quota_of_owner) return;
  of.owner = owner;
  (void)WriteList(file, of);  // the old one stays if the disk is full, and then counts after the next start
}

void FileStore::AddHolderOf(Complete& complete, const std::string& holder) {
  if (!complete.of.holders.insert(holder).second) return;
  (void)WriteList(complete.file, complete.of);  // without it, the holder sends a chunk again after the next start
}

void FileStore::DeleteBeyondQuota() {
  const std::set<std::string> unneeded = Unneeded();
  const std::lock_guard lock(mutex_);
  DeleteDownTo(rules_.quota, ListKept(unneeded));
}

void FileStore::DeleteUnlessHeld(const std::vector<std::string>& digests,
                                 const std::function<bool(const std::string& holder)>& ignored) {
  const std::set<std::string> in_use = rules_.in_use ? rules_.in_use(digests) : std::set<std::string>();
  const std::lock_guard lock(mutex_);
  for (const std::string& digest : digests) {
    const auto found = complete_.find(digest);
    if (found == complete_.end() || in_use.contains(digest) || held_.contains(digest)) continue;
    if (std::ranges::all_of(found->second.of.holders, ignored)) DeleteComplete(digest);
  }
}

void FileStore::Touch(const std::string& digest, Complete& complete) {
  complete.used = std::max(complete.used, rules_.now());
  if (complete.used - complete.written < kTimeWritten) return;
  complete.written = complete.used;
  const timespec times[2] = {{0, UTIME_OMIT}, absl::ToTimespec(complete.used)};
  utimensat(AT_FDCWD, PathOf(digest).c_str(), times, AT_SYMLINK_NOFOLLOW);
}

void FileStore::Insert(FileDescription file, Ownership of, absl::Time used, bool verified) {
  int64_t offset = 0;
  for (const ChunkName& chunk : file.chunks) {
    places_.emplace(chunk.digest, Place{file.digest, offset});
    offset += chunk.bytes;
  }
  const std::string digest = file.digest;
  complete_[digest] = {std::move(file), std::move(of), used, used, verified};
}

void FileStore::DeleteComplete(const std::string& digest) {
  const auto found = complete_.find(digest);
  unlink(PathOf(digest).c_str());
  unlink(ListPathOf(digest).c_str());
  for (const ChunkName& chunk : found->second.file.chunks) {
    const auto [begin, end] = places_.equal_range(chunk.digest);
    for (auto place = begin; place != end;) {
      place = place->second.digest == digest ? places_.erase(place) : std::next(place);
    }
  }
  complete_.erase(found);
}

void FileStore::DeletePartial(const std::string& digest) {
  const auto found = partial_.find(digest);
  found->second.contents->set_state(PartialFile::State::kGone);
  unlink(PartPathOf(digest).c_str());
  unlink(ListPathOf(digest).c_str());
  partial_.erase(found);
}

FileStore::Usage FileStore::usage() const {
  const std::lock_guard lock(mutex_);
  Usage usage{0, static_cast<int64_t>(complete_.size()), static_cast<int64_t>(partial_.size())};
  for (const auto& [digest, file] : complete_) usage.bytes += file.file.bytes();
  for (const auto& [digest, file] : partial_) usage.bytes += file.contents->file().bytes();
  return usage;
}

}  // namespace hone::files
