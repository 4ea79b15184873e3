// SPDX-License-Identifier: Apache-2.0
// Functions of the C library that the code under test calls. On a fiber of a world they act in that world; otherwise
// they call the library's own. Symbols of the program come before those of shared libraries, so calls from within those
// libraries get here as well.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/simulation/fiber.h"
#include "tests/simulation/world.h"

namespace {

using hone::simulation::Fiber;
using hone::simulation::World;

World* OnFiber() {
  World* const world = World::current();
  return world != nullptr && world->on_fiber() ? world : nullptr;
}

template <typename Function>
Function* Real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
// Declares `real`, the function that would have been called without this file.
#define HONE_REAL(name) static auto* const real = Real(&(name), #name)

absl::Duration FromTimespec(const timespec& time) {
  return absl::Seconds(time.tv_sec) + absl::Nanoseconds(time.tv_nsec);
}

// A fiber that holds a mutex is left only when it waits for a condition, so the loop hardly ever takes a second round.
void Lock(World* world, pthread_mutex_t* mutex) {
  while (pthread_mutex_trylock(mutex) == EBUSY) world->Sleep(absl::Milliseconds(1));
}

int WaitFor(World* world, pthread_cond_t* condition, pthread_mutex_t* mutex, std::optional<absl::Duration> until) {
  pthread_mutex_unlock(mutex);
  const bool signalled = world->Wait(condition, until);
  Lock(world, mutex);
  return signalled ? 0 : ETIMEDOUT;
}

}  // namespace

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  HONE_REAL(pthread_create);
  World* const world = OnFiber();
  if (world == nullptr) return real(thread, attributes, start, argument);
  Fiber* const fiber = world->Spawn(world->process(), [start, argument] { start(argument); });
  fiber->joinable = true;
  *thread = reinterpret_cast<pthread_t>(fiber);
  return 0;
}

int pthread_join(pthread_t thread, void** result) {
  HONE_REAL(pthread_join);
  World* const world = OnFiber();
  if (world == nullptr) return real(thread, result);
  world->Join(reinterpret_cast<Fiber*>(thread));
  return 0;
}

// Whether an initialization has already run depends on the seeds before this one, so it must not influence the world.
int pthread_once(pthread_once_t* once, void (*initialize)()) {
  HONE_REAL(pthread_once);
  World* const world = OnFiber();
  if (world == nullptr) return real(once, initialize);
  Fiber* const fiber = world->running();
  ++fiber->initializing;
  const int result = real(once, initialize);
  --fiber->initializing;
  return result;
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  HONE_REAL(pthread_mutex_trylock);
  const int result = real(mutex);
  if (World* const world = OnFiber(); world != nullptr && result == 0) ++world->running()->mutexes;
  return result;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  HONE_REAL(pthread_mutex_lock);
  World* const world = OnFiber();
  if (world == nullptr) return real(mutex);
  if (world->running()->mutexes == 0) world->MaybeSwitchFiber();
  Lock(world, mutex);
  world->MutexTaken(mutex);
  return 0;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  HONE_REAL(pthread_mutex_unlock);
  const int result = real(mutex);
  if (World* const world = OnFiber()) {
    --world->running()->mutexes;
    world->MutexReleased(mutex);
  }
  return result;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  HONE_REAL(pthread_cond_wait);
  World* const world = OnFiber();
  return world == nullptr ? real(condition, mutex) : WaitFor(world, condition, mutex, std::nullopt);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  HONE_REAL(pthread_cond_timedwait);
  World* const world = OnFiber();
  if (world == nullptr) return real(condition, mutex, until);
  return WaitFor(world, condition, mutex, world->FromWall(FromTimespec(*until)));
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  HONE_REAL(pthread_cond_clockwait);
  World* const world = OnFiber();
  if (world == nullptr) return real(condition, mutex, clock, until);
  const absl::Duration time = FromTimespec(*until);
  return WaitFor(world, condition, mutex, clock == CLOCK_MONOTONIC ? world->FromSteady(time) : world->FromWall(time));
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  HONE_REAL(pthread_cond_signal);
  if (World* const world = World::current()) world->Signal(condition);
  return real(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  HONE_REAL(pthread_cond_broadcast);
  if (World* const world = World::current()) world->Broadcast(condition);
  return real(condition);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  HONE_REAL(clock_gettime);
  World* const world = World::current();
  if (world == nullptr || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME)) return real(clock, time);
  *time = absl::ToTimespec(clock == CLOCK_MONOTONIC ? world->SteadyNow() : world->WallNow());
  return 0;
}

int nanosleep(const timespec* time, timespec* left) {
  HONE_REAL(nanosleep);
  World* const world = OnFiber();
  if (world == nullptr) return real(time, left);
  world->Sleep(FromTimespec(*time));
  return 0;
}

ssize_t getrandom(void* bytes, size_t size, unsigned flags) {
  HONE_REAL(getrandom);
  World* const world = OnFiber();
  if (world == nullptr) return real(bytes, size, flags);
  for (size_t i = 0; i < size; i += 8) {
    const uint64_t bits = world->random().Next();
    std::memcpy(static_cast<char*>(bytes) + i, &bits, std::min<size_t>(8, size - i));
  }
  return static_cast<ssize_t>(size);
}

// Outboxes are real files of this machine. Their power cuts are not simulated; a kill leaves everything that was
// written.
int fsync(int file) {
  HONE_REAL(fsync);
  World* const world = OnFiber();
  if (world == nullptr) return real(file);
  if (!world->process()->fsync_fails) return 0;
  errno = ENOSPC;
  return -1;
}

}  // extern "C"
