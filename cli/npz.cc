#include "cli/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace hone::cli {
namespace {

constexpr std::string_view kSuffix = ".npy";

absl::Status ArchiveError(std::string_view what, const std::string& path, zip_error_t* error) {
  const std::string text = fmt::format("cannot {} '{}': {}", what, path, zip_error_strerror(error));
  const int reason = zip_error_code_system(error);
  if (zip_error_code_zip(error) == ZIP_ER_NOENT || reason == ENOENT) return absl::NotFoundError(text);
  if (reason == EACCES || reason == EPERM) return absl::PermissionDeniedError(text);
  if (reason == ENOSPC || reason == EFBIG) return absl::ResourceExhaustedError(text);
  return absl::DataLossError(text);
}

// Closes a member that was opened for reading.
struct MemberCloser {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

// Gives up on what was not written: an archive that was closed is gone before that.
struct Discarder {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};

}  // namespace

void NpzReader::Closer::operator()(zip* archive) const { zip_discard(archive); }

absl::StatusOr<NpzReader> NpzReader::Open(const std::string& path) {
  NpzReader reader;
  reader.path_ = path;
  int code = 0;
  reader.archive_.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (reader.archive_ == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    absl::Status status = ArchiveError("open .npz file", path, &error);
    zip_error_fini(&error);
    return status;
  }
  const zip_int64_t count = zip_get_num_entries(reader.archive_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* member = zip_get_name(reader.archive_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_GUESS);
    const std::string_view name = member == nullptr ? "" : member;
    if (name.size() < kSuffix.size() || name.substr(name.size() - kSuffix.size()) != kSuffix) {
      return absl::DataLossError(fmt::format("'{}' holds '{}', which is no .npy array", path, name));
    }
    const std::string array(name.substr(0, name.size() - kSuffix.size()));
    if (!reader.members_.emplace(array, static_cast<uint64_t>(i)).second) {
      return absl::DataLossError(fmt::format("'{}' holds two arrays named '{}'", path, array));
    }
  }
  return reader;
}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, index] : members_) names.push_back(name);
  return names;
}

absl::StatusOr<Array> NpzReader::Read(const std::string& name, const HeaderCheck& check) const {
  const auto member = members_.find(name);
  HONE_CHECK(member != members_.end());
  const std::string where = fmt::format("array '{}' in '{}'", name, path_);
  absl::StatusOr<std::vector<uint8_t>> bytes = ReadMember(member->second, check);
  if (!bytes.ok()) return Annotate(bytes.status(), where);
  absl::StatusOr<Array> array = ParseNpy(*bytes);
  if (!array.ok()) return Annotate(array.status(), where);
  return array;
}

absl::StatusOr<std::vector<uint8_t>> NpzReader::ReadMember(uint64_t index, const HeaderCheck& check) const {
  const std::unique_ptr<zip_file_t, MemberCloser> member(zip_fopen_index(archive_.get(), index, 0));
  if (member == nullptr) {
    return absl::DataLossError(fmt::format("it cannot be unpacked: {}", zip_strerror(archive_.get())));
  }
  // Grows with what is really there: the sizes that the archive and the header claim may be damaged.
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<uint8_t> bytes;
  std::optional<NpyHeader> header;
  for (;;) {
    const size_t before = bytes.size();
    bytes.resize(before + kPiece);
    const zip_int64_t count = zip_fread(member.get(), bytes.data() + before, kPiece);
    if (count < 0) {
      return absl::DataLossError(
          fmt::format("it is damaged: {}", zip_error_strerror(zip_file_get_error(member.get()))));
    }
    bytes.resize(before + static_cast<size_t>(count));
    if (count == 0) return bytes;  // only here has the checksum been compared
    if (!header) {
      HONE_ASSIGN_OR_RETURN(header, ParseNpyHeader(bytes));
      if (header) HONE_RETURN_IF_ERROR(check(*header));
    }
    if (header && bytes.size() > header->data_offset + header->data_bytes) {
      return absl::DataLossError("it has more data than its shape needs");
    }
  }
}

absl::Status WriteNpz(const std::string& path, std::span<const ArrayView> arrays) {
  int code = 0;
  std::unique_ptr<zip_t, Discarder> archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    absl::Status status = ArchiveError("create .npz file", path, &error);
    zip_error_fini(&error);
    return status;
  }
  std::vector<std::vector<uint8_t>> members;  // the archive reads them when it is closed
  members.reserve(arrays.size());
  for (const ArrayView& array : arrays) {
    const std::string prefix = NpyPrefix(array.dtype, array.shape);
    std::vector<uint8_t>& bytes = members.emplace_back(prefix.begin(), prefix.end());
    bytes.insert(bytes.end(), array.data.begin(), array.data.end());
    zip_source_t* source = zip_source_buffer(archive.get(), bytes.data(), bytes.size(), 0);
    const std::string name = array.name + std::string(kSuffix);
    const zip_int64_t index =
        source == nullptr ? -1 : zip_file_add(archive.get(), name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      return Annotate(ArchiveError("write .npz file", path, zip_get_error(archive.get())), name);
    }
    constexpr std::time_t kFirstZipDay = 315532800;  // 1980-01-01: the same arrays give the same file
    const auto member = static_cast<zip_uint64_t>(index);
    if (zip_set_file_compression(archive.get(), member, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_mtime(archive.get(), member, kFirstZipDay, 0) != 0) {
      return ArchiveError("write .npz file", path, zip_get_error(archive.get()));
    }
  }
  if (zip_close(archive.get()) != 0) return ArchiveError("write .npz file", path, zip_get_error(archive.get()));
  static_cast<void>(archive.release());  // zip_close has freed it
  return absl::OkStatus();
}

}  // namespace hone::cli
