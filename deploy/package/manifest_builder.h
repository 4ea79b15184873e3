// Lays out the manifest section: the tables of package_format.h from PackageContents, and where the constants go.
#ifndef HONE_DEPLOY_PACKAGE_MANIFEST_BUILDER_H_
#define HONE_DEPLOY_PACKAGE_MANIFEST_BUILDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/package/package_writer.h"

namespace hone::package {

struct Manifest {
  std::vector<uint8_t> section;
  std::vector<uint64_t> constant_offsets;  // per tensor; meaningful for constants only
  uint64_t constants_bytes = 0;            // of the whole constants section
};

// InvalidArgument names the tensor or call that does not fit the format. What the runtime checks when it loads
// (ids in range, kinds, offsets) is not checked here: WritePackage runs that check on the finished file.
absl::StatusOr<Manifest> BuildManifest(const PackageContents& contents);

// Rounds up to a multiple of a power of two.
constexpr uint64_t AlignUp(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) & ~(alignment - 1); }

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_MANIFEST_BUILDER_H_
