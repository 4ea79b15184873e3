// SPDX-License-Identifier: Apache-2.0
// A world for real programs in which one seed decides which thread runs, when it runs, and what time it is.
//
// While a world runs, the threads that the code under test starts are fibers of one thread. interposed.cc replaces the
// C library's mutexes, condition variables, clocks, sleep and random bytes by those of the world. Switches between
// fibers happen where a fiber waits, or before it takes a mutex while it holds none. Those are all places where another
// thread can make a difference. The next fiber is drawn at random. Time jumps to the next event when no fiber can run.
// Each fiber belongs to a process, which has clocks of its own. Disks, networks and programs are elsewhere. Start at
// Spawn and Run. Only one world may exist at a time, used by one thread.
#ifndef HONE_TESTS_SIMULATION_WORLD_H_
#define HONE_TESTS_SIMULATION_WORLD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/random.h"

namespace hone::simulation {

struct Fiber;

// A process on a machine of its own, with inaccurate clocks of its own.
struct Process {
  std::string name;
  double rate = 1;  // speed of its steady clock; `steady` is that clock's value when the world begins
  absl::Duration steady = absl::ZeroDuration();
  absl::Duration wall = absl::ZeroDuration();  // offset of its wall clock; may jump
  double late = 0;                             // chance, at a possible switch, that the fiber pauses for up to `latest`
  absl::Duration latest = absl::ZeroDuration();
  absl::Duration stopped_until = absl::ZeroDuration();  // until this time of the world all of its fibers are stopped
  bool fsync_fails = false;
  bool dead = false;  // its actions have no effect outside of it
};

class World {
 public:
  explicit World(uint64_t seed);
  ~World();
  World(const World&) = delete;
  static World* current();  // null: there is no world

  Random& random() { return random_; }
  bool Chance(double probability) { return random_.Uniform() < probability; }
  absl::Duration Between(double low_seconds, double high_seconds) {
    return absl::Seconds(low_seconds + (high_seconds - low_seconds) * random_.Uniform());
  }
  absl::Duration now() const { return now_; }  // time since the world began
  // The process of the calling fiber; null outside of fibers.
  const std::shared_ptr<Process>& process() const;
  absl::Duration SteadyNow() const;  // by the clocks of the calling fiber's process
  absl::Duration WallNow() const;
  absl::Duration FromSteady(absl::Duration steady) const;  // converts to the world's time
  absl::Duration FromWall(absl::Duration wall) const;

  // Starts a fiber that begins after `delay`.
  Fiber* Spawn(std::shared_ptr<Process> process, std::function<void()> body,
               absl::Duration delay = absl::ZeroDuration());
  void Join(Fiber* fiber);
  // Runs `body` on a fiber of that process and waits for it to end.
  void Do(std::shared_ptr<Process> process, std::function<void()> body);
  bool on_fiber() const { return running_ != nullptr; }
  Fiber* running() const { return running_; }
  void Sleep(absl::Duration duration);
  // The event that `key` stands for has happened: Signal wakes one waiting fiber, Broadcast all.
  void Signal(const void* key);
  void Broadcast(const void* key);
  // Waits for the event of `key`. Returns false if it did not happen before `until`.
  bool Wait(const void* key, std::optional<absl::Duration> until);
  // A point where the world may switch to another fiber.
  void MaybeSwitchFiber();
  // Returns the first mutex that `body` takes.
  const void* MutexTakenBy(const std::function<void()>& body);
  // Registers `look`, which is called on the fiber of that process that has just released `mutex` and holds no other.
  // The world does not switch fibers during the call.
  void OnMutexReleased(const void* mutex, std::function<void()> look);
  void ForgetMutex(const void* mutex) { looks_.erase(mutex); }

  // Runs until all fibers have ended or an invariant is violated. Remaining fibers are then abandoned as they are.
  void Run();
  // Called by interposed.cc.
  void MutexTaken(const void* mutex);
  void MutexReleased(const void* mutex);

  // Reports a violation; only the first one is kept.
  void Violate(const std::string& what);
  const std::string& violation() const { return violation_; }
  // Adds an event to the notes, which help to find the cause of a violation, and to the digest, by which two runs are
  // compared.
  void Note(std::string_view text);
  const std::deque<std::string>& notes() const { return notes_; }
  uint64_t digest() const { return digest_; }
  int64_t steps() const { return steps_; }
  bool verbose = false;  // print notes as they come
  std::string redacted;  // replaced in notes: a name that differs between runs

 private:
  friend struct Fiber;
  struct Timer {
    absl::Duration time;
    int64_t order;
    std::shared_ptr<Fiber> fiber;
    uint64_t turn;  // the fiber's turn when the timer was set; the timer is void if the fiber was woken since
    bool operator<(const Timer& other) const { return time != other.time ? time > other.time : order > other.order; }
  };
  static void Enter(unsigned high, unsigned low);
  void SwitchTo(Fiber* fiber);
  void Leave();
  void Wake(Fiber* fiber);
  void WakeAt(Fiber* fiber, absl::Duration time);
  void AdvanceTime();

  Random random_;
  absl::Duration now_ = absl::ZeroDuration();
  int64_t next_order_ = 0, steps_ = 0, steps_at_this_time_ = 0, born_ = 0;
  uint64_t digest_ = 0;
  std::map<Fiber*, std::shared_ptr<Fiber>> fibers_;  // fibers that have not ended, or will be joined
  std::vector<Fiber*> runnable_;
  std::priority_queue<Timer> timers_;
  std::map<const void*, std::deque<Fiber*>> waiting_;
  std::vector<char*> stacks_;  // free stacks, for reuse
  Fiber* running_ = nullptr;
  std::map<const void*, std::function<void()>> looks_;  // by mutex
  bool looking_ = false;
  const void* first_taken_ = nullptr;
  std::string violation_;
  std::deque<std::string> notes_;
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_WORLD_H_
