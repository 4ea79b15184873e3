// SPDX-License-Identifier: Apache-2.0
// hone-fake-launcher: the launcher of a device that keeps files in its folder, as devices with a driver do. Takes the
// arguments that the agent passes to a launcher (device_agent/agent/launcher_process.h).
#include <string>
#include <string_view>

#include "device_agent/launcher/launcher_main.h"
#include "tests/conformance/device/fake_device.h"

int main(int argc, char** argv) {
  const auto value = [&](std::string_view name) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view argument = argv[i];
      if (argument.starts_with(name)) return std::string(argument.substr(name.size()));
    }
    return std::string();
  };
  const hone::agent::FakeDevice device(0, value("--launcher-folder="));
  return hone::agent::LauncherMain(device, std::stoi(value("--launcher-channel=")),
                                   std::stoi(value("--launcher-cancel=")));
}
