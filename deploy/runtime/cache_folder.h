// SPDX-License-Identifier: Apache-2.0
// Where what a device's driver compiled is kept between runs: the folder `hone` of the user's cache ($XDG_CACHE_HOME,
// else ~/.cache).
#ifndef HONE_DEPLOY_RUNTIME_CACHE_FOLDER_H_
#define HONE_DEPLOY_RUNTIME_CACHE_FOLDER_H_

#include <filesystem>

namespace hone::runtime {

// Makes the folder where it is absent. Empty (nothing is kept) where there is none that is the user's alone: whoever
// could write there could make this process run their code.
std::filesystem::path CacheFolder();

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_CACHE_FOLDER_H_
