// SPDX-License-Identifier: Apache-2.0
// Writes archives of named arrays (.npz) to files. deploy/run/npz.h makes their bytes.
#ifndef HONE_CLI_NPZ_FILE_H_
#define HONE_CLI_NPZ_FILE_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "deploy/run/npz.h"

namespace hone::cli {

// Writes through AtomicFile (deploy/package), so the file appears whole or not at all. arrays: at least one.
absl::Status WriteNpz(const std::string& path, std::span<const run::ArrayView> arrays);

}  // namespace hone::cli

#endif  // HONE_CLI_NPZ_FILE_H_
