// SPDX-License-Identifier: Apache-2.0
// Deletes the packages that tuners have made for the run of a whole model (JobSpec.model) once the run is over. Each is
// as large as the model, and no other job or client needs it.
//
// Not here: which packages these are (Farm::TakeUnneededPackages), and all other files, which the store keeps for a day
// (KeepRules). Start with PackageSweeper.
#ifndef HONE_TRACKER_PACKAGE_SWEEPER_H_
#define HONE_TRACKER_PACKAGE_SWEEPER_H_

#include <thread>

#include "files/file_store.h"
#include "tracker/shell.h"

namespace hone::tracker {

class PackageSweeper {
 public:
  // Starts a thread that looks once a second. Both must outlive this object.
  PackageSweeper(Shell* shell, files::FileStore* store);

 private:
  std::jthread thread_;
};

// What the thread does once.
void SweepPackages(Shell& shell, files::FileStore& store);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_PACKAGE_SWEEPER_H_
