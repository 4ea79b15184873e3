// SPDX-License-Identifier: Apache-2.0
// Builds the manifest section of a program: the tables of package_format.h from a PackageProgram.
#ifndef HONE_DEPLOY_PACKAGE_MANIFEST_BUILDER_H_
#define HONE_DEPLOY_PACKAGE_MANIFEST_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/package/constant_section.h"
#include "deploy/package/package_writer.h"

namespace hone::package {

// Returns the bytes of the section and adds the program's constants to `constants`. target: target text.
// version: of the format, kPlainFormatVersion or newer.
// InvalidArgument names a tensor that does not fit the format. Ids, kinds, sizes and offsets are not checked here:
// WritePackage runs the runtime's checks on the finished file.
absl::StatusOr<std::vector<uint8_t>> BuildManifest(const PackageProgram& program, const std::string& target,
                                                   uint32_t version, ConstantSection& constants);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_MANIFEST_BUILDER_H_
