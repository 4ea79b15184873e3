// SPDX-License-Identifier: Apache-2.0
// Real processes of a farm for tests: start, signal, wait, read their logs. The destructor kills a process, so a
// failing test leaves none behind.
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
  // Starts the program arguments[0]; its standard output and error are appended to the file `log`.
  Process(const std::vector<std::string>& arguments, const std::string& log);
  ~Process();  // kills the process if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Signal(int signal) const;
  // Waits for the process to end. Returns its exit status, minus the number of the signal that killed it, or -1000
  // after kPatienceSeconds.
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

// Polls `condition` until it holds. Returns false if it does not hold within kPatienceSeconds.
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
