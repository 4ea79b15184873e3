// SPDX-License-Identifier: Apache-2.0
// Limits of jobs, of runs of packages (hone/v1/run.proto) and of models (hone/v1/model.proto). The tracker checks them
// when a job comes, a command before it sends a model, and the agent when it runs packages.
#ifndef HONE_BASE_RUN_LIMITS_H_
#define HONE_BASE_RUN_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace hone {

inline constexpr size_t kRunPackagesMax = 8;
inline constexpr double kPackageLoadSecondsMax = 300;  // to load a package
inline constexpr double kPackageRunSecondsMax = 120;   // one run of it

inline constexpr int kModelFilesMax = 10000;                          // the ONNX file and its external data
inline constexpr int64_t kRunFileBytesMax = int64_t{64} << 30;        // of a package or a model's file
inline constexpr size_t kJobSpecificationBytesMax = size_t{8} << 20;  // a thousand workloads of some kilobytes

}  // namespace hone

#endif  // HONE_BASE_RUN_LIMITS_H_
