// SPDX-License-Identifier: Apache-2.0
// Archives of named arrays (.npz), as numpy.savez and numpy.savez_compressed write them.
//
// Names are without the ".npy" that the archive's members carry. Every error names the file, and the array where it is
// about one.
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
  // NotFound, PermissionDenied, or DataLoss (no archive; a member that is no array; two of one name).
  static absl::StatusOr<NpzReader> Open(const std::string& path);

  std::vector<std::string> names() const;  // sorted

  // Looks at an array's header before its data is read; an error ends the reading.
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
  std::map<std::string, uint64_t> members_;  // index in the archive, by name
};

// An array to be written. Not owned; lives until WriteNpz returns.
struct ArrayView {
  std::string name;
  package::DType dtype;
  std::span<const int64_t> shape;
  std::span<const uint8_t> data;  // row-major
};

// Uncompressed, as an AtomicFile of deploy/package. The same arrays (at least one) give the same bytes.
absl::Status WriteNpz(const std::string& path, std::span<const ArrayView> arrays);

}  // namespace hone::cli

#endif  // HONE_CLI_NPZ_H_
