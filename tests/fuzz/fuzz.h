// SPDX-License-Identifier: Apache-2.0
// The command line of the fuzzers: one program for each kind of machine.
#ifndef HONE_TESTS_FUZZ_FUZZ_H_
#define HONE_TESTS_FUZZ_FUZZ_H_

#include <functional>

#include "tests/fuzz/check_graph.h"

namespace hone::fuzz {

// --graphs N --seed S checks the graphs of the seeds from S on; --only-seed one of them. Says what failed, and writes
// each failure's text for hone-opt into a folder. The graphs are checked in a child process, which opens the machine:
// where it crashes, that is a failure, and another child goes on. Returns the exit code: 1 if anything failed.
int Fuzz(int argc, char** argv, const std::function<Machine()>& open);

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_FUZZ_H_
