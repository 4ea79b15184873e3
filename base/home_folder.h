// SPDX-License-Identifier: Apache-2.0
// The home folder of the user this process runs as.
#ifndef HONE_BASE_HOME_FOLDER_H_
#define HONE_BASE_HOME_FOLDER_H_

#include <filesystem>

namespace hone {

// $HOME, else the home folder of the user's account; empty if the system knows no account.
std::filesystem::path HomeFolder();

}  // namespace hone

#endif  // HONE_BASE_HOME_FOLDER_H_
