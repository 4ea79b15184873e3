// SPDX-License-Identifier: Apache-2.0
// A fake ptxas for tests: a script that is first on PATH as long as the object lives.
#ifndef HONE_TESTS_UNIT_CODEGEN_FAKE_PTXAS_H_
#define HONE_TESTS_UNIT_CODEGEN_FAKE_PTXAS_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_folder.h"

namespace hone::codegen {

class FakePtxas {
 public:
  // The script prints `text`, writes `machine_code` to its output file and exits with `status`. It exits with 9 if its
  // arguments are not those of ptxas, or the source is empty. PATH changes for the whole process.
  FakePtxas(const std::string& text, const std::string& machine_code, int status = 0) : path_(std::getenv("PATH")) {
    const std::filesystem::path file = folder_ / "ptxas";
    std::ofstream(folder_ / "machine_code") << machine_code;
    std::ofstream(file) << "#!/bin/sh\n[ $# = 6 ] && [ -s \"$4\" ] || exit 9\ncat <<'END'\n"
                        << text << "END\n[ " << status << " = 0 ] && cp '" << (folder_ / "machine_code").string()
                        << "' \"$6\"\nexit " << status << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  ~FakePtxas() { setenv("PATH", path_.c_str(), 1); }
  FakePtxas(const FakePtxas&) = delete;
  FakePtxas& operator=(const FakePtxas&) = delete;

 private:
  const std::string path_;
  const TemporaryFolder folder_ = *TemporaryFolder::Create();
};

}  // namespace hone::codegen

#endif  // HONE_TESTS_UNIT_CODEGEN_FAKE_PTXAS_H_
