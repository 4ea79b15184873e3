// SPDX-License-Identifier: Apache-2.0
// Limits of a run (hone/v1/run.proto). The tracker checks them when a job comes, the agent when it runs it.
#ifndef HONE_BASE_RUN_LIMITS_H_
#define HONE_BASE_RUN_LIMITS_H_

#include <cstddef>

namespace hone {

inline constexpr size_t kRunPackagesMax = 8;
inline constexpr double kPackageLoadSecondsMax = 300;  // to load a package
inline constexpr double kPackageRunSecondsMax = 120;   // one run of it

}  // namespace hone

#endif  // HONE_BASE_RUN_LIMITS_H_
