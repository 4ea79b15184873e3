// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/backend.h"

#include <optional>
#include <string>

#include "deploy/runtime/backends.h"

namespace hone::runtime {

Fault LoadBackend(const ProgramView& program, uint32_t home, std::span<const uint8_t> constants,
                  const BackendOptions& options, std::unique_ptr<Backend>* backend) {
  // All units of a home have code of kinds with the same loader.
  const CodeKind code = program.units[program.homes[home].units.front()].entry.code;
  if (LoadFunction* const load = LoaderOf(code)) return load(program, home, constants, options, backend);
  const std::optional<CodeKindEntry> entry = FindCodeKind(code);
  if (!entry) return BadPackage("its code is of an unknown kind");
  return Incompatible("the code is for " + std::string(entry->name) +
                      ", and this runtime was built without the driver, whose headers were not installed");
}

}  // namespace hone::runtime
