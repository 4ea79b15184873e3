// SPDX-License-Identifier: Apache-2.0
// Runs of packages on the agent's side: fetches the files of a run into the agent's cache, has the launcher run the
// packages, and sends the outputs to the tracker.
//
// Not here: the run itself (launcher, child), and files on the wire (files/transfer.h). Start at RunPackages.
#ifndef HONE_DEVICE_AGENT_AGENT_PACKAGE_RUNS_H_
#define HONE_DEVICE_AGENT_AGENT_PACKAGE_RUNS_H_

#include <functional>
#include <stop_token>
#include <vector>

#include "device_agent/agent/launcher_process.h"
#include "files/file_store.h"
#include "files/transfer.h"
#include "hone/v1/measure.pb.h"

namespace hone::agent {

// Launcher::RunWithFiles of the device, or a fake in tests.
using RunWithFiles =
    std::function<Launcher::RunResult(const v1::Batch&, const std::vector<int>& files, const std::stop_token&)>;

// How files get here and to the tracker.
struct FileAccess {
  files::FileTransfer::Connect connect;
  files::FileStore* cache;  // of the agent; not owned
};

// Runs a batch with a run. Blocks, for the transfer of its files, too; returns soon once a stop is requested. A file
// that the tracker does not have any more is the failure of the run. A file that cannot be fetched or sent for another
// reason is the error of the batch, so that it is tried again or elsewhere.
v1::BatchResult RunPackages(const v1::Batch& batch, const FileAccess& access, const RunWithFiles& run,
                            const std::stop_token& stop);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_PACKAGE_RUNS_H_
