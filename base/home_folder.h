// SPDX-License-Identifier: Apache-2.0
// The home folder of the user this process runs as.
#ifndef HONE_BASE_HOME_FOLDER_H_
#define HONE_BASE_HOME_FOLDER_H_

#include <filesystem>

namespace hone {

// $HOME, else the account's; empty where the system knows none.
std::filesystem::path HomeFolder();

}  // namespace hone

#endif  // HONE_BASE_HOME_FOLDER_H_
