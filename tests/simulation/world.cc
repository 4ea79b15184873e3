// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/world.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/status.h"
#include "tests/simulation/fiber.h"

namespace hone::simulation {
namespace {

constexpr size_t kStackBytes = 512 * 1024;
constexpr size_t kKeptNotes = 400;
constexpr int64_t kStepsAtOneTimeMax = 2'000'000;
constexpr absl::Duration kWorldTimeMax = absl::Hours(24);
constexpr double kSpurious = 0.0005;  // chance of a spurious wake-up, which condition variables permit

// The C library's functions take no world as an argument, so interposed.cc reads it here.
World* the_world = nullptr;
ucontext_t scheduler_context;

char* NewStack() {
  void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  HONE_CHECK(memory != MAP_FAILED);
  HONE_CHECK(mprotect(memory, 4096, PROT_NONE) == 0);  // a stack overflow must crash
  return static_cast<char*>(memory);
}

}  // namespace

World::World(uint64_t seed) : random_(seed) {
  HONE_CHECK(the_world == nullptr);
  the_world = this;
}

World::~World() {
  for (char* stack : stacks_) munmap(stack, kStackBytes);
  // Abandoned fibers stay as they are; freeing them would run destructors in the middle of their work.
  if (!fibers_.empty()) new std::map<Fiber*, std::shared_ptr<Fiber>>(std::move(fibers_));
  the_world = nullptr;
}

World* World::current() { return the_world; }

const std::shared_ptr<Process>& World::process() const {
  static const std::shared_ptr<Process> none;
  return running_ == nullptr ? none : running_->process;
}

absl::Duration World::SteadyNow() const {
  if (running_ == nullptr) return now_;
  return running_->process->steady + now_ * running_->process->rate;
}

absl::Duration World::FromSteady(absl::Duration steady) const {
  return (steady - running_->process->steady) / running_->process->rate;
}

absl::Duration World::WallNow() const {
  constexpr absl::Duration kBeginning = absl::Hours(24 * 365 * 55);  // a day in 2024
  return kBeginning + now_ + (running_ == nullptr ? absl::ZeroDuration() : running_->process->wall);
}

absl::Duration World::FromWall(absl::Duration wall) const { return now_ + (wall - WallNow()); }

Fiber* World::Spawn(std::shared_ptr<Process> process, std::function<void()> body, absl::Duration delay) {
  auto fiber = std::make_shared<Fiber>();
  fiber->number = ++born_;
  fiber->process = std::move(process);
  fiber->body = std::move(body);
  Fiber* const raw = fiber.get();
  fibers_[raw] = std::move(fiber);
  delay > absl::ZeroDuration() ? WakeAt(raw, now_ + delay) : Wake(raw);
  return raw;
}

void World::Enter(unsigned high, unsigned low) {
  auto* fiber = reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low);
  fiber->body();
  fiber->body = nullptr;
  fiber->ended = true;
  the_world->Broadcast(fiber);
  the_world->Leave();
}

void World::SwitchTo(Fiber* fiber) {
  if (!fiber->begun) {
    fiber->begun = true;
    if (stacks_.empty()) stacks_.push_back(NewStack());
    fiber->stack = stacks_.back();
    stacks_.pop_back();
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = kStackBytes;
    fiber->context.uc_link = nullptr;
    const auto address = reinterpret_cast<uintptr_t>(fiber);
    makecontext(&fiber->context, reinterpret_cast<void (*)()>(Enter), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
  }
  running_ = fiber;
  swapcontext(&scheduler_context, &fiber->context);
  running_ = nullptr;
}

// Switches to the scheduler. Returns when the fiber is woken.
void World::Leave() {
  Fiber* const self = running_;
  swapcontext(&self->context, &scheduler_context);
}

void World::Wake(Fiber* fiber) {
  ++fiber->turn;
  fiber->waits_for = nullptr;
  runnable_.push_back(fiber);
}

void World::WakeAt(Fiber* fiber, absl::Duration time) {
  timers_.push({time, ++next_order_, fibers_.at(fiber), fiber->turn});
}

void World::Sleep(absl::Duration duration) {
  WakeAt(running_, now_ + std::max(duration, absl::ZeroDuration()));
  Leave();
}

bool World::Wait(const void* key, std::optional<absl::Duration> until) {
  if (until.has_value() && *until <= now_) {
    Sleep(absl::Microseconds(1));  // lets others run, and advances clocks even if they are rounded
    return false;
  }
  Fiber* const self = running_;
  self->waits_for = key;
  waiting_[key].push_back(self);
  const bool spurious = Chance(kSpurious);
  if (spurious) {
    WakeAt(self, now_ + Between(0, 1));
  } else if (until.has_value()) {
    WakeAt(self, *until);
  }
  Leave();
  return spurious || !until.has_value() || now_ < *until;
}

void World::Signal(const void* key) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  auto& fibers = found->second;
  const auto chosen = fibers.begin() + random_.Below(static_cast<int64_t>(fibers.size()));
  Wake(*chosen);
  fibers.erase(chosen);
  if (fibers.empty()) waiting_.erase(found);
}

void World::Broadcast(const void* key) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  const std::deque<Fiber*> fibers = std::move(found->second);
  waiting_.erase(found);
  for (Fiber* fiber : fibers) Wake(fiber);
}

void World::Join(Fiber* fiber) {
  while (!fiber->ended) Wait(fiber, std::nullopt);
  fibers_.erase(fiber);
}

const void* World::MutexTakenBy(const std::function<void()>& body) {
  looking_ = true;
  first_taken_ = nullptr;
  body();
  looking_ = false;
  return first_taken_;
}

void World::OnMutexReleased(const void* mutex, std::function<void()> look) { looks_[mutex] = std::move(look); }

void World::MutexTaken(const void* mutex) {
  if (looking_ && first_taken_ == nullptr) first_taken_ = mutex;
}

void World::MutexReleased(const void* mutex) {
  if (looking_ || running_->mutexes > 0) return;
  const auto look = looks_.find(mutex);
  if (look == looks_.end()) return;
  looking_ = true;
  look->second();
  looking_ = false;
}

void World::Do(std::shared_ptr<Process> process, std::function<void()> body) {
  Fiber* const fiber = Spawn(std::move(process), std::move(body));
  fiber->joinable = true;
  Join(fiber);
}

void World::MaybeSwitchFiber() {
  if (looking_ || running_->initializing > 0) return;
  const Process& process = *running_->process;
  if (process.stopped_until > now_) return Sleep(process.stopped_until - now_);
  if (process.late > 0 && Chance(process.late)) return Sleep(process.latest * random_.Uniform());
  if (runnable_.empty() || random_.Below(4) != 0) return;
  Wake(running_);
  Leave();
}

void World::AdvanceTime() {
  while (runnable_.empty() && !timers_.empty()) {
    const Timer timer = timers_.top();
    timers_.pop();
    if (timer.turn != timer.fiber->turn || timer.fiber->ended) continue;
    if (timer.time > now_) steps_at_this_time_ = 0;
    now_ = std::max(now_, timer.time);
    if (timer.fiber->waits_for != nullptr) {
      auto& fibers = waiting_.at(timer.fiber->waits_for);
      std::erase(fibers, timer.fiber.get());
      if (fibers.empty()) waiting_.erase(timer.fiber->waits_for);
    }
    Wake(timer.fiber.get());
  }
}

void World::Run() {
  while (violation_.empty()) {
    AdvanceTime();
    if (runnable_.empty()) break;
    if (++steps_at_this_time_ > kStepsAtOneTimeMax) Violate("threads go round in a circle and no time passes");
    if (now_ > kWorldTimeMax) Violate("it does not come to an end");
    const auto chosen = static_cast<size_t>(random_.Below(static_cast<int64_t>(runnable_.size())));
    Fiber* const fiber = std::exchange(runnable_[chosen], runnable_.back());
    runnable_.pop_back();
    ++steps_;
    digest_ = (digest_ ^ static_cast<uint64_t>(fiber->number)) * 0x100000001b3ULL;
    digest_ = (digest_ ^ static_cast<uint64_t>(absl::ToInt64Nanoseconds(now_))) * 0x100000001b3ULL;
    SwitchTo(fiber);
    if (!fiber->ended) continue;
    if (fiber->stack != nullptr) stacks_.push_back(std::exchange(fiber->stack, nullptr));
    if (!fiber->joinable) fibers_.erase(fiber);
  }
  if (violation_.empty() &&
      std::any_of(fibers_.begin(), fibers_.end(), [](const auto& f) { return !f.second->ended; })) {
    Violate("threads wait for each other for ever");
  }
}

void World::Violate(const std::string& what) {
  if (!violation_.empty()) return;
  violation_ = what;
  Note("VIOLATED: " + what);
}

void World::Note(std::string_view said) {
  std::string text(said);
  for (size_t at = 0; !redacted.empty() && (at = text.find(redacted, at)) != std::string::npos;)
    text.erase(at, redacted.size());
  for (const char c : text) digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  std::string line = fmt::format("{:10.3f} {:<10} {}", absl::ToDoubleSeconds(now_),
                                 running_ == nullptr ? "" : running_->process->name, text);
  if (verbose) fmt::print("{}\n", line);
  notes_.push_back(std::move(line));
  if (notes_.size() > kKeptNotes) notes_.pop_front();
}

}  // namespace hone::simulation
