// SPDX-License-Identifier: Apache-2.0
// A fiber: one thread of a World. Used by world.cc and interposed.cc only.
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
  char* stack = nullptr;  // null: the fiber has not begun, or has ended
  int mutexes = 0;        // number of mutexes that it holds
  int initializing = 0;   // nesting depth of one-time initialization; no switch happens while it is above 0
  uint64_t turn = 0;      // number of times it was woken
  const void* waits_for = nullptr;
  bool begun = false, ended = false;
  bool joinable = false;  // Join will be called for it
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_FIBER_H_
