// SPDX-License-Identifier: Apache-2.0
// Compiles the whole model of a job, untuned and tuned, for the run at the end of the job (confirm_model.h).
//
// A model can crash a compiler, so it is compiled in a child process of hone-tuner. A folder is all that both share:
// the parent writes `job` and the files of the model, and the child writes the packages, or why there are none.
// Start with CompileModelIn.
#ifndef HONE_TUNER_MODEL_COMPILER_H_
#define HONE_TUNER_MODEL_COMPILER_H_

#include <filesystem>

#include "absl/status/status.h"
#include "base/host_lock.h"

namespace hone::tuner {

// The names in the folder.
inline constexpr char kJobFile[] = "job";                  // v1::Job: target, model, and the workloads' best schedules
inline constexpr char kModelFolder[] = "model";            // the files of the model, by ModelFile.path
inline constexpr char kUntunedPackage[] = "untuned.hone";  // with default schedules
inline constexpr char kTunedPackage[] = "tuned.hone";      // with the schedules of the job
inline constexpr char kErrorFile[] = "error";              // the text of the error
inline constexpr char kCompilingFile[] = "compiling";      // is there while the child compiles, not while it waits

// Writes both packages into the folder. Errors: those of the import and of package::CompileModel; FailedPrecondition if
// the model has a kernel that is none of the job's workloads.
// host: its shared side is held while a package is compiled, and free between the two; null: there is no lock.
absl::Status CompilePackages(const std::filesystem::path& folder, HostLock* host);

// The exit code of a child that has used up its memory.
inline constexpr int kOutOfMemoryCode = 2;

// The whole of the child process: CompilePackages under the host lock. Returns the exit code of the process; if it is
// 1, kErrorFile says why. Ends the process with kOutOfMemoryCode as soon as memory is used up.
int CompileModelIn(const std::filesystem::path& folder);

}  // namespace hone::tuner

#endif  // HONE_TUNER_MODEL_COMPILER_H_
