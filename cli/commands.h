// SPDX-License-Identifier: Apache-2.0
// The subcommands of `hone`, which follow the convention of cli/command.h: each is in a source file of its own and is
// added to `app` by one function. `app` and `result` outlive the parse.
#ifndef HONE_CLI_COMMANDS_H_
#define HONE_CLI_COMMANDS_H_

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace hone::cli {

// `hone tune`: searches for the fastest schedule of every kernel of a model, through a tracker, and records all
// measurements.
void AddTuneCommand(CLI::App& app, absl::Status* result);

// `hone compile`: compiles a model to a package with the best schedules of the records or of a lock file.
void AddCompileCommand(CLI::App& app, absl::Status* result);

// `hone check MODEL [--target T] [--json]`: lists all that keeps a model from being compiled. Fails if there is
// anything.
void AddCheckCommand(CLI::App& app, absl::Status* result);

// `hone quantize MODEL --calibrate DATA -o OUT.onnx`: writes a model that computes with 8 bits, with ranges measured on
// samples (deploy/quantize/quantize_model.h), and tells its accuracy.
void AddQuantizeCommand(CLI::App& app, absl::Status* result);

// `hone run PACKAGE --input IN.npz --output OUT.npz [--threads N]`: runs a package once on arrays from a file.
//
// The arrays have the names of the model's inputs and outputs. Their types and shapes must match the model's exactly.
// With --check MODEL.onnx it also compares the package with its model, as `hone diff` does.
void AddRunCommand(CLI::App& app, absl::Status* result);

// `hone diff MODEL.onnx PACKAGE [--input IN.npz | --shape NAME=SHAPE]`: compares a package with its unoptimized model,
// value by value, and names the kernels that are wrong (deploy/diff/diff_model.h).
void AddDiffCommand(CLI::App& app, absl::Status* result);

// `hone bench PACKAGE [--threads N] [--seconds S] [--json]`: measures the time of one run of a package on random
// inputs.
//
// The JSON document has the fields min_ms, median_ms, p90_ms, runs and threads.
void AddBenchCommand(CLI::App& app, absl::Status* result);

// `hone profile PACKAGE [--threads N] [--json]`: shows the time of each kernel in a run, and compares it with the
// roofline of this machine (base/roofline.h), which is measured at the start.
//
// The times of all calls of a kernel are added up.
void AddProfileCommand(CLI::App& app, absl::Status* result);

// `hone compare PACKAGE|MODEL --device D... [--package P]...`: runs the packages on all these devices at once and
// prints one table (cli/comparison.h). Fails if a device has not answered; the table then says why.
void AddCompareCommand(CLI::App& app, absl::Status* result);

// `hone gate PACKAGE --baseline PACKAGE [--device D] [--slower-than 3%] [--evidence FILE]`: runs both packages in turns
// and tells whether the first is slower (base/paired_ratio.h). The exit code is then kSlower (cli/command.h).
//
// With --check FILE it checks the evidence of an earlier gate (cli/gate_evidence.h).
void AddGateCommand(CLI::App& app, absl::Status* result);

// `hone records best|query|why|stats|export|import|verify|prune|lock`: shows and maintains tuning records.
//
// This room has only options and output; records/store.h and records/jsonl.h do the work. The records come from
// --records, from --tracker, or from the default file (records/default_path.h). All verbs except `import` and
// `prune --yes` only read, so they work on a file while a tracker writes it.
void AddRecordsCommand(CLI::App& app, absl::Status* result);

// The commands for the jobs and devices of a farm: `hone submit`, `jobs`, `watch`, `cancel`, `devices`, `drain`.
void AddFarmCommands(CLI::App& app, absl::Status* result);

// `hone watch-fleet [add|show|run|remove]`: packages that a tracker measures again every night on named devices, with
// the verdict of each night.
void AddWatchFleetCommand(CLI::App& app, absl::Status* result);

// The commands for the certificates and members of a farm: `hone pki`, `join`, `token`, `identity`, `audit`.
void AddIdentityCommands(CLI::App& app, absl::Status* result);

// `hone up`: runs a whole farm on this machine (tracker, tuner, agent and dashboard) until Ctrl-C. Its state is kept in
// a folder, and the next `hone up` resumes from it.
void AddUpCommand(CLI::App& app, absl::Status* result);

// `hone doctor`: reports what spoils timings or security on this machine, and how to fix it
// (device_agent/doctor/doctor.h).
void AddDoctorCommand(CLI::App& app, absl::Status* result);

}  // namespace hone::cli

#endif  // HONE_CLI_COMMANDS_H_
