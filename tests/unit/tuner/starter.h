// SPDX-License-Identifier: Apache-2.0
// Starts this program as a fake build worker (worker_main.cc), or fails to start it, as the test demands.
#ifndef HONE_TESTS_UNIT_TUNER_STARTER_H_
#define HONE_TESTS_UNIT_TUNER_STARTER_H_

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/temporary_folder.h"

namespace hone::tuner {

class Starter {
 public:
  Starter() {
    std::ofstream(script_) << "#!/bin/sh\ncd " << folder_.path().string() << R"(
rm once 2>/dev/null && exit 1
test -e always && exit 1
test -e next && mv next always
exec "$@"
)";
    std::filesystem::permissions(script_, std::filesystem::perms::owner_all);
  }

  std::vector<std::string> command() const {
    return {script_.string(), std::filesystem::read_symlink("/proc/self/exe").string(), "--pretend"};
  }
  void FailOnce() const { std::ofstream(folder_ / "once") << "yes"; }
  void FailFromNowOn() const { std::ofstream(folder_ / "always") << "yes"; }
  void FailAfterTheNext() const { std::ofstream(folder_ / "next") << "yes"; }

 private:
  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::filesystem::path script_ = folder_ / "start";
};

}  // namespace hone::tuner

#endif  // HONE_TESTS_UNIT_TUNER_STARTER_H_
