// SPDX-License-Identifier: Apache-2.0
#include "cli/npz_file.h"

#include "base/status.h"
#include "deploy/package/atomic_file.h"

namespace hone::cli {

absl::Status WriteNpz(const std::string& path, std::span<const run::ArrayView> arrays) {
  const run::NpzWriter archive(arrays);
  HONE_ASSIGN_OR_RETURN(package::AtomicFile file, package::AtomicFile::Create(path));
  for (const std::span<const uint8_t> piece : archive.pieces()) HONE_RETURN_IF_ERROR(file.Write(piece));
  return file.Commit();
}

}  // namespace hone::cli
