// SPDX-License-Identifier: Apache-2.0
// The command line of the fuzzers. Each kind of machine has its own program.
#ifndef HONE_TESTS_FUZZ_FUZZ_H_
#define HONE_TESTS_FUZZ_FUZZ_H_

#include <functional>

#include "tests/fuzz/check_graph.h"

namespace hone::fuzz {

// --graphs N --seed S checks the N graphs of the seeds from S on; --only-seed checks one graph; --open-sizes checks
// graphs with open sizes. Reports failures and
// writes each failure's text for hone-opt into a folder. A child process opens the machine and checks the graphs. A
// crash of the child is a failure, and a new child continues. Returns the exit code: 1 if anything failed.
int Fuzz(int argc, char** argv, const std::function<Machine()>& open);

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_FUZZ_H_
