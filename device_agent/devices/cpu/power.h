// SPDX-License-Identifier: Apache-2.0
// The power of this machine, from the files of Linux: what a board draws, by its INA current sensors, and the energy
// that CPU packages have used, by RAPL. Most machines have neither, or let only root read it.
#ifndef HONE_DEVICE_AGENT_DEVICES_CPU_POWER_H_
#define HONE_DEVICE_AGENT_DEVICES_CPU_POWER_H_

#include <optional>
#include <string>

namespace hone::agent {

// root: the folder with sys, "/" on a machine. Both return nullopt without a sensor.
// The power in watts that the board draws now: of the channel of its supply ("VDD_IN" on a Jetson), or of a sensor that
// has one channel.
std::optional<double> ReadBoardWatts(const std::string& root);
// The joules that all CPU packages have used since any moment. The counter of a package starts again at 0 after some
// minutes of much use.
std::optional<double> ReadPackageJoules(const std::string& root);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CPU_POWER_H_
