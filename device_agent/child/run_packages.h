// SPDX-License-Identifier: Apache-2.0
// The work of a child that runs packages (visit/package_task.h): loads them from open files, sets their inputs, ends
// the phase of setup, and then runs and times them. It opens no file itself. All that a package can do wrong, it does
// here.
#ifndef HONE_DEVICE_AGENT_CHILD_RUN_PACKAGES_H_
#define HONE_DEVICE_AGENT_CHILD_RUN_PACKAGES_H_

#include "device_agent/child/child.h"

namespace hone::agent {

// `child` must be confined and have no task yet. Reports everything to the launcher.
void RunPackages(Child& child);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CHILD_RUN_PACKAGES_H_
