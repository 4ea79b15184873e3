// SPDX-License-Identifier: Apache-2.0
#include "tests/models/npz_file.h"

#include <zip.h>

#include <cstring>
#include <memory>
#include <regex>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"

namespace hone::models {
namespace {

constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
constexpr size_t kHeaderStart = 10;  // magic, version, length of the header

struct ZipCloser {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, ZipCloser>;

absl::StatusOr<Archive> Open(const std::string& path, int flags) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), flags, &code);
  if (archive != nullptr) return Archive(archive);
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return absl::NotFoundError(fmt::format("cannot open {}: {}", path, text));
}

absl::StatusOr<NpyArray> ParseNpy(const std::string& text) {
  const absl::Status bad = absl::InvalidArgumentError("not a .npy array of format 1.0, row-major");
  if (text.size() < kHeaderStart || text.compare(0, kMagic.size(), kMagic) != 0) return bad;
  const size_t length = static_cast<unsigned char>(text[8]) + 256u * static_cast<unsigned char>(text[9]);
  if (text.size() < kHeaderStart + length) return bad;
  const std::string header = text.substr(kHeaderStart, length);
  static const std::regex kHeader(
      R"(\{'descr': '([<|][a-z][0-9])', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \}\s*)");
  std::smatch found;
  if (!std::regex_match(header, found, kHeader)) return bad;
  NpyArray array;
  array.descr = found[1];
  const std::string dims = found[2];
  static const std::regex kNumber("[0-9]+");
  for (std::sregex_iterator it(dims.begin(), dims.end(), kNumber), end; it != end; ++it) {
    array.shape.push_back(std::stoll(it->str()));
  }
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  array.bytes.assign(first + kHeaderStart + length, first + text.size());
  return array;
}

std::string NpyText(const NpyArray& array) {
  std::string dims;
  for (const int64_t extent : array.shape) dims += fmt::format("{}, ", extent);
  if (array.shape.size() > 1) dims.resize(dims.size() - 2);
  if (array.shape.size() == 1) dims.resize(dims.size() - 1);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", array.descr, dims);
  header.resize((kHeaderStart + header.size() + 64) / 64 * 64 - kHeaderStart - 1, ' ');
  header += '\n';
  std::string text(kMagic);
  text += static_cast<char>(header.size() % 256);
  text += static_cast<char>(header.size() / 256);
  text += header;
  text.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  return text;
}

}  // namespace

absl::StatusOr<NpzArrays> ReadNpz(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const Archive archive, Open(path, ZIP_RDONLY));
  NpzArrays arrays;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    zip_stat_t entry;
    if (zip_stat_index(archive.get(), i, 0, &entry) != 0) return absl::DataLossError(path + " is damaged");
    std::string text(entry.size, '\0');
    zip_file_t* file = zip_fopen_index(archive.get(), i, 0);
    const zip_int64_t read = file == nullptr ? -1 : zip_fread(file, text.data(), text.size());
    if (file != nullptr) zip_fclose(file);
    if (read != static_cast<zip_int64_t>(text.size())) return absl::DataLossError(path + " is damaged");
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    auto array = ParseNpy(text);
    if (!array.ok()) return Annotate(array.status(), fmt::format("{}: array '{}'", path, name));
    arrays[name] = *std::move(array);
  }
  return arrays;
}

absl::Status WriteNpz(const std::string& path, const NpzArrays& arrays) {
  HONE_ASSIGN_OR_RETURN(Archive archive, Open(path, ZIP_CREATE | ZIP_TRUNCATE));
  std::vector<std::string> texts;
  texts.reserve(arrays.size());  // libzip reads them when it closes the archive
  for (const auto& [name, array] : arrays) {
    texts.push_back(NpyText(array));
    zip_source_t* source = zip_source_buffer(archive.get(), texts.back().data(), texts.back().size(), 0);
    const zip_int64_t index = zip_file_add(archive.get(), (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      return absl::InternalError(fmt::format("cannot add '{}' to {}", name, path));
    }
    zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  }
  if (zip_close(archive.get()) != 0) {
    return absl::UnavailableError(fmt::format("cannot write {}: {}", path, zip_strerror(archive.get())));
  }
  archive.release();  // closing frees it
  return absl::OkStatus();
}

}  // namespace hone::models
