// SPDX-License-Identifier: Apache-2.0
#include "deploy/run/npz.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace hone::run {
namespace {

constexpr std::string_view kSuffix = ".npy";

std::string CannotOpen(const std::string& name, std::string_view why) {
  return fmt::format("cannot open .npz file '{}': {}", name, why);
}

}  // namespace

absl::StatusOr<NpzReader> NpzReader::Open(const std::string& path) {
  const MemoryFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.descriptor() >= 0) return OpenFile(file.descriptor(), path);
  const int reason = errno;
  const std::string text = CannotOpen(path, std::strerror(reason));
  if (reason == ENOENT) return absl::NotFoundError(text);
  return reason == EACCES || reason == EPERM ? absl::PermissionDeniedError(text) : absl::DataLossError(text);
}

absl::StatusOr<NpzReader> NpzReader::OpenFile(int file, const std::string& name) {
  absl::StatusOr<Mapping> mapped = MapFile(file);
  if (!mapped.ok()) return absl::DataLossError(CannotOpen(name, std::string(mapped.status().message())));
  const std::string_view bytes = mapped->view();
  absl::StatusOr<ZipReader> archive = ZipReader::Open({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (!archive.ok()) return absl::DataLossError(CannotOpen(name, std::string(archive.status().message())));
  NpzReader reader(name, *std::move(mapped), *std::move(archive));
  for (size_t i = 0; i < reader.archive_.size(); ++i) {
    const std::string& member = reader.archive_.name(i);
    if (!member.ends_with(kSuffix)) {
      return absl::DataLossError(fmt::format("'{}' contains '{}', which is not an .npy array", name, member));
    }
    const std::string array = member.substr(0, member.size() - kSuffix.size());
    if (!reader.members_.emplace(array, i).second) {
      return absl::DataLossError(fmt::format("'{}' contains two arrays named '{}'", name, array));
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
  const std::string where = fmt::format("array '{}' in '{}'", name, file_name_);
  absl::StatusOr<std::vector<uint8_t>> bytes = ReadMember(member->second, check);
  if (!bytes.ok()) return Annotate(bytes.status(), where);
  absl::StatusOr<Array> array = ParseNpy(*bytes);
  if (!array.ok()) return Annotate(array.status(), where);
  return array;
}

// The buffer grows with the bytes that are read, because the sizes in the archive and in the header may be damaged.
absl::StatusOr<std::vector<uint8_t>> NpzReader::ReadMember(size_t member, const HeaderCheck& check) const {
  std::vector<uint8_t> bytes;
  std::optional<NpyHeader> header;
  const auto take = [&](std::span<const uint8_t> piece) -> absl::Status {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    if (!header) {
      HONE_ASSIGN_OR_RETURN(header, ParseNpyHeader(bytes));
      if (header) HONE_RETURN_IF_ERROR(check(*header));
    }
    if (header && bytes.size() > header->data_offset + header->data_bytes) {
      return absl::DataLossError("it has more data than its shape needs");
    }
    return absl::OkStatus();
  };
  HONE_RETURN_IF_ERROR(archive_.Read(member, take));
  return bytes;
}

NpzWriter::NpzWriter(std::span<const ArrayView> arrays) {
  for (const ArrayView& array : arrays) {
    const std::string& prefix = prefixes_.emplace_back(NpyPrefix(array.dtype, array.shape));
    const std::array<std::span<const uint8_t>, 2> parts = {
        std::span(reinterpret_cast<const uint8_t*>(prefix.data()), prefix.size()), array.data};
    archive_.Add(array.name + std::string(kSuffix), parts);
  }
  pieces_ = &archive_.Finish();
}

}  // namespace hone::run
