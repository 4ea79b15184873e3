// SPDX-License-Identifier: Apache-2.0
// A package's bytes, checked: the only way from a file to its programs (program_view.h).
//
// Checks the header, the place and checksum of every section, each program, and that all programs are of one model.
#ifndef HONE_DEPLOY_RUNTIME_PACKAGE_VIEW_H_
#define HONE_DEPLOY_RUNTIME_PACKAGE_VIEW_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "deploy/runtime/fault.h"
#include "deploy/runtime/program_view.h"

namespace hone::runtime {

// Points into the bytes it was made from.
struct PackageView {
  std::vector<ProgramView> programs;  // at least one; the same inputs and outputs in all
  std::span<const uint8_t> constants;
  std::string_view metadata;  // a zero byte follows
};

enum class ConstantsCheck { kFull, kTrust };  // kTrust leaves out the constants' checksum

// `file` starts on a page. BadPackage says what is wrong and where. *view is set only on success.
Fault ViewPackage(std::span<const uint8_t> file, ConstantsCheck check, PackageView* view);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_PACKAGE_VIEW_H_
