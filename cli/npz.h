// SPDX-License-Identifier: Apache-2.0
// Reads and writes archives of named arrays (.npz), as numpy.savez and numpy.savez_compressed write them.
//
// Array names omit the suffix ".npy" of the archive's members. Every error names the file, and the array if it concerns
// one.
#ifndef HONE_CLI_NPZ_H_
#define HONE_CLI_NPZ_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/npy.h"

struct zip;

namespace hone::cli {

class NpzReader {
 public:
  // kNotFound, kPermissionDenied, or kDataLoss: not an archive, a member that is not an array, or two arrays of one
  // name.
  static absl::StatusOr<NpzReader> Open(const std::string& path);

  std::vector<std::string> names() const;  // sorted

  // Checks an array's header before its data is read. Its error stops the reading and is returned.
  using HeaderCheck = std::function<absl::Status(const NpyHeader&)>;
  // `name` must be one of names(). Errors as ParseNpy; checksums of the archive are verified.
  absl::StatusOr<Array> Read(const std::string& name, const HeaderCheck& check) const;

 private:
  struct Closer {
    void operator()(zip* archive) const;
  };

  absl::StatusOr<std::vector<uint8_t>> ReadMember(uint64_t index, const HeaderCheck& check) const;

  std::string path_;
  std::unique_ptr<zip, Closer> archive_;
  std::map<std::string, uint64_t> members_;  // by array name: the member's index in the archive
};

// An array to write. It refers to the caller's data, which must stay valid until WriteNpz returns.
struct ArrayView {
  std::string name;
  package::DType dtype;
  std::span<const int64_t> shape;
  std::span<const uint8_t> data;  // row-major
};

// Writes an uncompressed archive through AtomicFile (deploy/package), so the file appears whole or not at all. arrays:
// at least one. The same arrays always give the same bytes.
absl::Status WriteNpz(const std::string& path, std::span<const ArrayView> arrays);

}  // namespace hone::cli

#endif  // HONE_CLI_NPZ_H_
