// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/backend.h"

#include <optional>
#include <string>
#include <string_view>

#include "deploy/runtime/backends.h"

namespace hone::runtime {

std::string_view DeviceSelector(const BackendOptions& options, std::string_view named) {
  if (options.device.empty()) return named;
  const size_t colon = options.device.find(':');
  return colon == std::string::npos ? std::string_view() : std::string_view(options.device).substr(colon + 1);
}

Fault LoadBackend(const ProgramView& program, uint32_t home, std::span<const uint8_t> constants,
                  const BackendOptions& options, std::unique_ptr<Backend>* backend) {
  // All units of a home have code of kinds with the same loader.
  const CodeKind code = program.units[program.homes[home].units.front()].entry.code;
  const std::optional<CodeKindEntry> entry = FindCodeKind(code);
  const std::string_view device = std::string_view(options.device).substr(0, options.device.find(':'));
  if (!device.empty() && entry && entry->has_lanes && entry->architecture != device) {
    return Incompatible("the code is for " + std::string(entry->name) + ", and only the device '" + options.device +
                        "' may be used");
  }
  if (LoadFunction* const load = LoaderOf(code)) return load(program, home, constants, options, backend);
  if (!entry) return BadPackage("its code is of an unknown kind");
  return Incompatible("the code is for " + std::string(entry->name) +
                      ", and this runtime was built without the driver, whose headers were not installed");
}

}  // namespace hone::runtime
