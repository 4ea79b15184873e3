// SPDX-License-Identifier: Apache-2.0
// A thread of a world. Of world.cc and interposed.cc alone.
#ifndef HONE_TESTS_SIMULATION_FIBER_H_
#define HONE_TESTS_SIMULATION_FIBER_H_

#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "tests/simulation/world.h"

namespace hone::simulation {

struct Fiber {
  int64_t number = 0;
  std::shared_ptr<Process> process;
  std::function<void()> body;
  ucontext_t context;
  char* stack = nullptr;  // null: it has not begun, or has ended
  int mutexes = 0;        // that it holds
  int initializing = 0;   // what is done once for all seeds, one within the other; it is not left then
  uint64_t turn = 0;      // how often it was woken
  const void* waits_for = nullptr;
  bool begun = false, ended = false;
  bool joinable = false;  // somebody will call Join
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_FIBER_H_
