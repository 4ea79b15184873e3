// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/backend.h"

#include <optional>
#include <string>

#include "deploy/runtime/backends.h"

namespace hone::runtime {

Fault LoadBackend(const ProgramView& program, std::span<const uint8_t> constants, int threads,
                  std::unique_ptr<Backend>* backend) {
  const CodeKind code = program.manifest->code;
  if (LoadFunction* const load = LoaderOf(code)) return load(program, constants, threads, backend);
  const std::optional<CodeKindEntry> entry = FindCodeKind(code);
  if (!entry) return BadPackage("its code is of an unknown kind");
  return Incompatible("the code is for " + std::string(entry->name) +
                      ", and this runtime was built without the driver, whose headers were not installed");
}

}  // namespace hone::runtime
