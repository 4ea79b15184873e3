// SPDX-License-Identifier: Apache-2.0
// A world for real programs in which one seed decides everything: which thread runs, when, and what time it is.
//
// While a world runs, the threads that the code under test starts are fibers of one thread (interposed.cc stands
// between them and the C library): mutexes, condition variables, clocks, sleep and random bytes are the world's. A
// fiber is left only where it waits, or before it takes a mutex while it holds none, which is every place where another
// thread could make a difference; which one goes on is drawn. Time jumps to the next thing to happen when nobody can
// run. Each fiber belongs to a process, which has clocks of its own. Not here: disks, networks, programs. Start at
// Spawn and Run. One world at a time, used by one thread.
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

// A process on a machine of its own. Its clocks run wrong, each in its way.
struct Process {
  std::string name;
  double rate = 1;  // of its steady clock, and how far that has come at the world's beginning
  absl::Duration steady = absl::ZeroDuration();
  absl::Duration wall = absl::ZeroDuration();  // what its clock on the wall is off; may jump
  double late = 0;  // chance, where a fiber of it could be left, that it stands still for up to `latest`
  absl::Duration latest = absl::ZeroDuration();
  absl::Duration stopped_until = absl::ZeroDuration();  // all of its fibers stand still there, by the world's time
  bool fsync_fails = false;
  bool dead = false;  // nothing that it does reaches anybody any more
};

class World {
 public:
  explicit World(uint64_t seed);
  ~World();
  World(const World&) = delete;
  static World* current();  // null: there is none

  Random& random() { return random_; }
  bool Chance(double probability) { return random_.Uniform() < probability; }
  absl::Duration Between(double low_seconds, double high_seconds) {
    return absl::Seconds(low_seconds + (high_seconds - low_seconds) * random_.Uniform());
  }
  absl::Duration now() const { return now_; }  // since the world began
  // In what process the calling fiber is; null outside of fibers.
  const std::shared_ptr<Process>& process() const;
  absl::Duration SteadyNow() const;  // by the clocks of the calling fiber's process
  absl::Duration WallNow() const;
  absl::Duration FromSteady(absl::Duration steady) const;  // as the world counts
  absl::Duration FromWall(absl::Duration wall) const;

  // A thread that begins after `delay`.
  Fiber* Spawn(std::shared_ptr<Process> process, std::function<void()> body,
               absl::Duration delay = absl::ZeroDuration());
  void Join(Fiber* fiber);
  // Does it on a thread of that process, and waits for it.
  void Do(std::shared_ptr<Process> process, std::function<void()> body);
  bool on_fiber() const { return running_ != nullptr; }
  Fiber* running() const { return running_; }
  void Sleep(absl::Duration duration);
  // What `key` stands for has happened: one who waits for it, or all, go on.
  void Signal(const void* key);
  void Broadcast(const void* key);
  // Waits for that. False: it was not before `until`.
  bool Wait(const void* key, std::optional<absl::Duration> until);
  // A place where the calling fiber may be left.
  void MaybeLeave();
  // Which mutex `body` takes; it is the first one.
  const void* MutexTakenBy(const std::function<void()>& body);
  // Called, on its fiber, whenever a fiber of that process has given up that mutex and holds none; it is not left then.
  void WhenGivenUp(const void* mutex, std::function<void()> look);
  void ForgetMutex(const void* mutex) { looks_.erase(mutex); }

  // Runs until all fibers have ended, or something was violated; then they are abandoned as they are.
  void Run();
  // For interposed.cc.
  void Taken(const void* mutex);
  void GivenUp(const void* mutex);

  // The first one counts.
  void Violate(const std::string& what);
  const std::string& violation() const { return violation_; }
  // For people who look for the reason; and for the digest, by which two runs are compared.
  void Note(std::string_view text);
  const std::deque<std::string>& notes() const { return notes_; }
  uint64_t digest() const { return digest_; }
  int64_t steps() const { return steps_; }
  bool verbose = false;  // notes are printed as they come
  std::string unsaid;    // left out of notes: a name that is another in every run

 private:
  friend struct Fiber;
  struct Timer {
    absl::Duration time;
    int64_t order;
    std::shared_ptr<Fiber> fiber;
    uint64_t turn;  // of the fiber: when it was woken by something else, the timer is void
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
  std::map<Fiber*, std::shared_ptr<Fiber>> fibers_;  // that have not ended, or will be joined
  std::vector<Fiber*> runnable_;
  std::priority_queue<Timer> timers_;
  std::map<const void*, std::deque<Fiber*>> waiting_;
  std::vector<char*> stacks_;  // to be used again
  Fiber* running_ = nullptr;
  std::map<const void*, std::function<void()>> looks_;  // by mutex
  bool looking_ = false;
  const void* first_taken_ = nullptr;
  std::string violation_;
  std::deque<std::string> notes_;
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_WORLD_H_
