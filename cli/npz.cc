// SPDX-License-Identifier: Apache-2.0
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
#include "deploy/package/atomic_file.h"

namespace hone::cli {
namespace {

constexpr std::string_view kSuffix = ".npy";

absl::Status OpenError(const std::string& path, zip_error_t* error) {
  const std::string text = fmt::format("cannot open .npz file '{}': {}", path, zip_error_strerror(error));
  const int reason = zip_error_code_system(error);
  if (zip_error_code_zip(error) == ZIP_ER_NOENT || reason == ENOENT) return absl::NotFoundError(text);
  if (reason == EACCES || reason == EPERM) return absl::PermissionDeniedError(text);
  return absl::DataLossError(text);
}

// Closes a member that was opened for reading.
struct MemberCloser {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

// Discards an archive that has not been closed. zip_close frees an archive itself.
struct Discarder {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};

struct SourceFreer {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};

absl::StatusOr<std::vector<uint8_t>> ContentOf(zip_source_t* source) {
  zip_stat_t facts;
  if (zip_source_stat(source, &facts) != 0 || zip_source_open(source) != 0) {
    return absl::DataLossError(zip_error_strerror(zip_source_error(source)));
  }
  std::vector<uint8_t> bytes(facts.size);
  const bool read = zip_source_read(source, bytes.data(), bytes.size()) == static_cast<zip_int64_t>(bytes.size());
  zip_source_close(source);
  if (!read) return absl::DataLossError(zip_error_strerror(zip_source_error(source)));
  return bytes;
}

// Makes the archive in memory, because libzip seeks while it writes and the output may be a pipe or device.
absl::StatusOr<std::vector<uint8_t>> ArchiveOf(std::span<const ArrayView> arrays) {
  zip_error_t error;
  zip_error_init(&error);
  const std::unique_ptr<zip_source_t, SourceFreer> whole(zip_source_buffer_create(nullptr, 0, 0, &error));
  std::unique_ptr<zip_t, Discarder> archive(
      whole == nullptr ? nullptr : zip_open_from_source(whole.get(), ZIP_CREATE | ZIP_TRUNCATE, &error));
  const absl::Status opened =
      archive == nullptr ? absl::ResourceExhaustedError(zip_error_strerror(&error)) : absl::OkStatus();
  zip_error_fini(&error);
  HONE_RETURN_IF_ERROR(opened);
  zip_source_keep(whole.get());               // a second reference, because the archive frees one
  std::vector<std::vector<uint8_t>> members;  // must stay valid until zip_close, which reads them
  members.reserve(arrays.size());
  const auto failed = [&] { return absl::ResourceExhaustedError(zip_strerror(archive.get())); };
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
      return Annotate(failed(), name);
    }
    constexpr std::time_t kFirstZipDay =
        315532800;  // 1980-01-01; a fixed time, so that the same arrays give the same file
    const auto member = static_cast<zip_uint64_t>(index);
    if (zip_set_file_compression(archive.get(), member, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_mtime(archive.get(), member, kFirstZipDay, 0) != 0) {
      return failed();
    }
  }
  if (zip_close(archive.get()) != 0) return failed();
  static_cast<void>(archive.release());  // zip_close has freed it
  return ContentOf(whole.get());
}

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
    absl::Status status = OpenError(path, &error);
    zip_error_fini(&error);
    return status;
  }
  const zip_int64_t count = zip_get_num_entries(reader.archive_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* member = zip_get_name(reader.archive_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_GUESS);
    const std::string_view name = member == nullptr ? "" : member;
    if (name.size() < kSuffix.size() || name.substr(name.size() - kSuffix.size()) != kSuffix) {
      return absl::DataLossError(fmt::format("'{}' contains '{}', which is not an .npy array", path, name));
    }
    const std::string array(name.substr(0, name.size() - kSuffix.size()));
    if (!reader.members_.emplace(array, static_cast<uint64_t>(i)).second) {
      return absl::DataLossError(fmt::format("'{}' contains two arrays named '{}'", path, array));
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
  // The buffer grows with the bytes that are read, because the sizes in the archive and in the header may be damaged.
  // It starts small, because archives may have many small arrays.
  constexpr size_t kPieceBytesMax = size_t{1} << 20;
  size_t piece = size_t{4} << 10;
  std::vector<uint8_t> bytes;
  std::optional<NpyHeader> header;
  for (;;) {
    const size_t before = bytes.size();
    bytes.resize(before + piece);
    const zip_int64_t count = zip_fread(member.get(), bytes.data() + before, piece);
    piece = std::min(2 * piece, kPieceBytesMax);
    if (count < 0) {
      return absl::DataLossError(
          fmt::format("it is damaged: {}", zip_error_strerror(zip_file_get_error(member.get()))));
    }
    bytes.resize(before + static_cast<size_t>(count));
    if (count == 0) return bytes;  // libzip verifies the checksum at the end of the member
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
  const absl::StatusOr<std::vector<uint8_t>> bytes = ArchiveOf(arrays);
  if (!bytes.ok()) return Annotate(bytes.status(), fmt::format("cannot make .npz file '{}'", path));
  HONE_ASSIGN_OR_RETURN(package::AtomicFile file, package::AtomicFile::Create(path));
  HONE_RETURN_IF_ERROR(file.Write(*bytes));
  return file.Commit();
}

}  // namespace hone::cli
