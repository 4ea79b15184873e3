// SPDX-License-Identifier: Apache-2.0
// The folder that keeps programs compiled by device drivers between runs (drivers/binary_cache.h): `hone` in the user's
// cache folder ($XDG_CACHE_HOME, else ~/.cache).
#ifndef HONE_DEPLOY_RUNTIME_CACHE_FOLDER_H_
#define HONE_DEPLOY_RUNTIME_CACHE_FOLDER_H_

#include <filesystem>

namespace hone::runtime {

// Creates the folder if it is missing. Returns an empty path, so that nothing is kept, unless the folder belongs to the
// user and no other user can write to it: its contents are loaded as code.
std::filesystem::path CacheFolder();

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_CACHE_FOLDER_H_
