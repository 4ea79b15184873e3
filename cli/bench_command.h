// SPDX-License-Identifier: Apache-2.0
// `hone bench PACKAGE [--threads N] [--seconds S] [--json]`: measures the time of one run of a package on random
// inputs.
//
// The JSON document has the fields min_ms, median_ms, p90_ms, runs and threads.
#ifndef HONE_CLI_BENCH_COMMAND_H_
#define HONE_CLI_BENCH_COMMAND_H_

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace hone::cli {

// Follows cli/command.h. `app` and `result` outlive the parse.
void AddBenchCommand(CLI::App& app, absl::Status* result);

}  // namespace hone::cli

#endif  // HONE_CLI_BENCH_COMMAND_H_
