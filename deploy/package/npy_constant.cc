// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/npy_constant.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/read_file.h"
#include "base/status.h"
#include "deploy/run/npy.h"

namespace hone::package {

absl::StatusOr<graph::Constant> ReadNpyConstant(const std::string& path) {
  const absl::StatusOr<std::string> file = ReadWholeFile(path);
  if (!file.ok()) return Annotate(file.status(), "cannot read an array from " + path);
  const absl::StatusOr<run::Array> array =
      run::ParseNpy({reinterpret_cast<const uint8_t*>(file->data()), file->size()});
  if (!array.ok()) return Annotate(array.status(), path);
  const auto* bytes = reinterpret_cast<const std::byte*>(array->data.data());
  return graph::Constant{{array->dtype, array->shape},
                         std::make_shared<const std::vector<std::byte>>(bytes, bytes + array->data.size())};
}

}  // namespace hone::package
