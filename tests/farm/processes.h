// SPDX-License-Identifier: Apache-2.0
// Real processes of a farm for tests: start, signal, wait, read what they logged. Everything is killed at the end, also
// when a test fails.
#ifndef HONE_TESTS_FARM_PROCESSES_H_
#define HONE_TESTS_FARM_PROCESSES_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace hone::farm {

class Process {
 public:
  // Starts `arguments` (the first is the program) with standard output and error going to `log`.
  Process(const std::vector<std::string>& arguments, const std::string& log);
  ~Process();  // kills it if it lives
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Signal(int signal) const;
  // Waits for its end: the exit status, minus the signal that killed it, or -1000 after kPatienceSeconds.
  int Wait();
  bool Running();
  pid_t pid() const { return pid_; }
  std::string Log() const;

 private:
  pid_t pid_;
  std::string log_;
};

// Programs under ThreadSanitizer need half a minute to start on two busy cores.
#ifdef __SANITIZE_THREAD__
inline constexpr int kPatienceSeconds = 120;
#else
inline constexpr int kPatienceSeconds = 60;
#endif

// Asks `condition` again and again until it holds; false when it did not for kPatienceSeconds.
template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < kPatienceSeconds * 100; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace hone::farm

#endif  // HONE_TESTS_FARM_PROCESSES_H_
