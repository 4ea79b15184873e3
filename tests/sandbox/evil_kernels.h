// SPDX-License-Identifier: Apache-2.0
// Kernels that do what a kernel must not, one deed each, and what must come of each.
//
// Each computes the right output if it survives its deed, so a time means that the sandbox did not stop it.
#ifndef HONE_TESTS_SANDBOX_EVIL_KERNELS_H_
#define HONE_TESTS_SANDBOX_EVIL_KERNELS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "hone/v1/types.pb.h"

namespace hone::agent {

struct Deed {
  std::string kernel;  // name of its function
  v1::FailureKind kind;
  std::string text;  // what the failure's text must contain
};

const std::vector<Deed>& Deeds();

// The shared object with all kernels. victim: a file that they try to harm. constructor: one line of C that runs while
// the artifact is loaded; may be empty.
std::string EvilArtifact(const std::filesystem::path& victim, const std::string& constructor = "");

}  // namespace hone::agent

#endif  // HONE_TESTS_SANDBOX_EVIL_KERNELS_H_
