// SPDX-License-Identifier: Apache-2.0
// A PackageView is a package's checked bytes: the only way from a file to its programs (program_view.h).
//
// ViewPackage checks the header, the place and checksum of every section, each program, and that all programs have the
// same inputs and outputs.
#ifndef HONE_DEPLOY_RUNTIME_PACKAGE_VIEW_H_
#define HONE_DEPLOY_RUNTIME_PACKAGE_VIEW_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "deploy/runtime/fault.h"
#include "deploy/runtime/program_view.h"

namespace hone::runtime {

// Refers to the bytes from which it was made; they must outlive it.
struct PackageView {
  std::vector<ProgramView> programs;   // at least one; all have the same inputs and outputs
  std::span<const uint8_t> constants;  // the constants section, on a page of the file
  std::string_view metadata;           // JSON; a zero byte follows
};

// kTrust skips the checksum of the constants section, which reads all of it.
enum class ConstantsCheck { kFull, kTrust };

// Checks `file`, which starts on a page. BadPackage says what is wrong and where. *view is set on success only.
Fault ViewPackage(std::span<const uint8_t> file, ConstantsCheck check, PackageView* view);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_PACKAGE_VIEW_H_
