// SPDX-License-Identifier: Apache-2.0
// Reads and writes archives of named arrays (.npz), as numpy.savez and numpy.savez_compressed write them.
//
// Array names omit the suffix ".npy" of the archive's members. Every error names the file, and the array if it concerns
// one. Both sides work in memory (zip_archive.h), so that confined processes can use them.
#ifndef HONE_DEPLOY_RUN_NPZ_H_
#define HONE_DEPLOY_RUN_NPZ_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/memory_file.h"
#include "deploy/run/npy.h"
#include "deploy/run/zip_archive.h"

namespace hone::run {

class NpzReader {
 public:
  // kNotFound, kPermissionDenied, or kDataLoss: not an archive, a member that is not an array, or two arrays of one
  // name.
  static absl::StatusOr<NpzReader> Open(const std::string& path);
  // The same for an open file, which stays the caller's. name: the file in the texts of errors.
  static absl::StatusOr<NpzReader> OpenFile(int file, const std::string& name);

  const std::string& file_name() const { return file_name_; }
  std::vector<std::string> names() const;  // sorted

  // Checks an array's header before its data is read. Its error stops the reading and is returned.
  using HeaderCheck = std::function<absl::Status(const NpyHeader&)>;
  // `name` must be one of names(). Errors as ParseNpy; checksums of the archive are verified.
  absl::StatusOr<Array> Read(const std::string& name, const HeaderCheck& check) const;

 private:
  NpzReader(std::string file_name, Mapping file, ZipReader archive)
      : file_name_(std::move(file_name)), file_(std::move(file)), archive_(std::move(archive)) {}
  absl::StatusOr<std::vector<uint8_t>> ReadMember(size_t member, const HeaderCheck& check) const;

  std::string file_name_;
  Mapping file_;  // archive_ refers to it
  ZipReader archive_;
  std::map<std::string, size_t> members_;  // by array name: the member's index in the archive
};

// An array to write. It refers to the caller's data.
struct ArrayView {
  std::string name;
  package::DType dtype;
  std::span<const int64_t> shape;
  std::span<const uint8_t> data;  // row-major
};

// The bytes of an uncompressed archive of arrays, as pieces. The same arrays always give the same bytes. The data of
// the arrays must stay valid as long as the pieces are used.
class NpzWriter {
 public:
  explicit NpzWriter(std::span<const ArrayView> arrays);
  NpzWriter(const NpzWriter&) = delete;
  NpzWriter& operator=(const NpzWriter&) = delete;
  const std::vector<std::span<const uint8_t>>& pieces() const { return *pieces_; }
  uint64_t bytes() const { return archive_.bytes(); }

 private:
  std::list<std::string> prefixes_;  // pieces refer to them
  ZipWriter archive_;
  const std::vector<std::span<const uint8_t>>* pieces_;  // of archive_
};

}  // namespace hone::run

#endif  // HONE_DEPLOY_RUN_NPZ_H_
