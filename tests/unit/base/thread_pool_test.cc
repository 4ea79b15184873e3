// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/control_groups.h"
#include "base/cpu_cores.h"

namespace {

constexpr int kUnlimited = -1;
thread_local int allocations_left = kUnlimited;  // allocations of this thread until memory runs out

void* Allocate(std::size_t bytes) {
  if (allocations_left == 0) return nullptr;
  if (allocations_left > 0) --allocations_left;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace

// All operators are replaced, so that sanitizers see matching allocations and frees. They are not inlined, because the
// compiler would warn about memory of `new` that is passed to `free`.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (void* memory = Allocate(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace hone {
namespace {

void Each(HoneParallel* parallel, int64_t count, std::function<void(int64_t)> body) {
  parallel->parallel_for(
      parallel, [](void* closure, int64_t i) { (*static_cast<std::function<void(int64_t)>*>(closure))(i); }, &body,
      count);
}

// The sets of CPUs that the workers may run on.
std::set<std::vector<int>> CpusOfWorkers(ThreadPool& pool) {
  const auto caller = std::this_thread::get_id();
  const int threads = pool.threads();
  std::mutex mutex;
  std::set<std::vector<int>> cpus;
  std::atomic<int> arrived{0};
  Each(pool.parallel(), threads, [&](int64_t) {
    ++arrived;
    while (arrived.load() < threads) std::this_thread::yield();  // so that each thread runs one iteration
    if (std::this_thread::get_id() == caller) return;
    const std::lock_guard lock(mutex);
    cpus.insert(UsableCpus());
  });
  return cpus;
}

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, EveryIndexExactlyOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (int64_t count : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<int> hits(count, 0);  // not atomic: indices do not overlap, and the loop's end orders the writes
    Each(pool.parallel(), count, [&](int64_t i) { ++hits[i]; });
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(hits[i], 1) << "index " << i << " of " << count;
  }
}

TEST_P(ThreadPoolTest, ManyShortLoopsSeeEachOthersWrites) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> values(16, 0);
  for (int round = 0; round < 3000; ++round) {
    Each(pool.parallel(), 16, [&](int64_t i) { values[i] = round; });
    if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // lets the workers fall asleep
    for (int64_t value : values) ASSERT_EQ(value, round);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 4, 9));

TEST(ThreadPool, TakesTheFastestCoresFirst) {
  const std::vector<int> usable = UsableCpus();
  if (usable.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const int slow = usable[0], fast = usable[1];
  const std::vector<CoreGroup> groups = {{.cores = {fast}, .siblings = {}}, {.cores = {slow}, .siblings = {}}};
  ThreadPool chosen(0, groups);
  EXPECT_EQ(chosen.threads(), 1) << "a slow core would hold up the fast one";
  EXPECT_EQ(chosen.caller_cpus(), std::vector<int>{fast});
  ThreadPool both(2, groups);
  EXPECT_TRUE(both.caller_cpus().empty()) << "of which it has only one CPU for the caller";
  EXPECT_EQ(CpusOfWorkers(both), std::set<std::vector<int>>{{slow}}) << "the caller has the first, the fastest";
  EXPECT_EQ(ThreadPool(0, {{.cores = {slow}, .siblings = {fast}}}).threads(), 1)
      << "two threads of a core are one core";
  const std::vector<CoreGroup> alike = {{.cores = {slow, fast}, .siblings = {}}};
  EXPECT_EQ(ThreadPool(0, alike).threads(), 2);
  EXPECT_EQ(ThreadPool(0, alike, 1.5).threads(), 2);
  EXPECT_EQ(ThreadPool(0, alike, 0.5).threads(), 1) << "a second one would use up the time of the first";
  EXPECT_EQ(ThreadPool(2, alike, 0.5).threads(), 2) << "as asked";
}

TEST(ThreadPool, WorkersOfASmallPoolAreNotPinned) {
  const std::vector<int> usable = UsableCpus();
  if (usable.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const int a = usable[0], b = usable[1];
  constexpr int kOfCaller =
      CPU_SETSIZE - 1;  // very unlikely to be a CPU of this machine, so two CPUs are enough for the workers
  const std::vector<CoreGroup> cores = {{.cores = {kOfCaller, a, b}, .siblings = {}}};
  const std::set<std::vector<int>> any = {{a, b}}, own = {{a}, {b}};
  ThreadPool one(2, cores), another(2, cores), all(3, cores);
  EXPECT_EQ(CpusOfWorkers(one), any);
  EXPECT_EQ(CpusOfWorkers(another), any) << "its worker need not wait for that of the first pool";
  EXPECT_EQ(CpusOfWorkers(all), own);
  const std::vector<CoreGroup> siblings = {{.cores = {kOfCaller}, .siblings = {a, b}}};
  ThreadPool some_siblings(2, siblings), all_siblings(3, siblings);
  EXPECT_EQ(CpusOfWorkers(some_siblings), any);
  EXPECT_EQ(CpusOfWorkers(all_siblings), own);
}

TEST(ThreadPool, ACallerLeavesTheCpuOfAWorker) {
  const std::vector<int> usable = UsableCpus();
  if (usable.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const int own = usable[0], of_worker = usable[1];
  ThreadPool pool(2, {{.cores = {own, of_worker}, .siblings = {}}});
  constexpr int kRounds = 20;
  int left = 0;  // rounds in which the caller has left; not always all, because the system may move the thread back
  for (int round = 0; round < kRounds; ++round) {
    {
      const ScopedCpuAffinity put_there({of_worker});
    }
    allocations_left = 1;
    Each(pool.parallel(), 2, [](int64_t) {});
    ASSERT_EQ(std::exchange(allocations_left, kUnlimited), 1) << "a run of a model allocates nothing";
    if (sched_getcpu() != of_worker) ++left;
    ASSERT_EQ(UsableCpus(), usable) << "it may run where it could before";
  }
  EXPECT_GE(left, kRounds / 2);
}

TEST(ThreadPool, ConcurrentCallersRunOneAfterAnother) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) Each(pool.parallel(), 20, [&](int64_t i) { sum += i; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 4 * 200 * 190);
}

TEST(ThreadPool, WorkersTakePart) {
  ThreadPool pool(2);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  std::atomic<int> arrived{0};
  // Each of the two tasks waits for the other: one thread alone could not finish.
  Each(pool.parallel(), 2, [&](int64_t) {
    ++arrived;
    while (arrived.load() < 2) std::this_thread::yield();
    std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen.size(), 2u);
}

bool Blocks(const sigset_t& mask, int signal) { return sigismember(&mask, signal) == 1; }

TEST(ThreadPool, WorkersBlockSignalsOfTheProcess) {
  sigset_t before, after, of_worker;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  ThreadPool pool(2);
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> arrived{0};
  Each(pool.parallel(), 2, [&](int64_t) {
    ++arrived;
    while (arrived.load() < 2) std::this_thread::yield();
    if (std::this_thread::get_id() != caller) pthread_sigmask(SIG_BLOCK, nullptr, &of_worker);
  });
  for (const int sent : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD}) {
    EXPECT_TRUE(Blocks(of_worker, sent)) << sent;
    EXPECT_EQ(Blocks(after, sent), Blocks(before, sent)) << sent << " in the caller";
  }
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF}) EXPECT_FALSE(Blocks(of_worker, own)) << own;
}

TEST(ThreadPool, ThreadsStartWithTheirOwnPortion) {
  ThreadPool pool(2);
  const auto caller = std::this_thread::get_id();
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> done{0};
    std::vector<std::thread::id> by(10);
    std::vector<int64_t> order;  // the indices in the order in which the worker takes them
    Each(pool.parallel(), 10, [&](int64_t i) {
      by[i] = std::this_thread::get_id();
      if (i != 0) order.push_back(i);
      ++done;
      // The caller stays in its first iteration until the worker has done all others. The worker stays in its first
      // until the caller has started.
      while (i == 0 && done.load() < 10) std::this_thread::yield();
      while (i == 5 && done.load() < 2) std::this_thread::yield();
    });
    ASSERT_EQ(by[0], caller);
    for (int i = 1; i < 10; ++i) ASSERT_NE(by[i], caller) << "round " << round << ", iteration " << i;
    EXPECT_EQ(order, (std::vector<int64_t>{5, 6, 7, 8, 9, 1, 2, 3, 4})) << "its own portion, then the caller's";
  }
}

TEST(ThreadPool, ZeroThreadsMeansOneForEachUsableFastCore) {
  EXPECT_EQ(ThreadPool(0).threads(), LoopThreads(FindCoreGroups(UsableCpus()).at(0), ProcessCpuQuota()));
}

// At whichever allocation memory runs out, the constructor throws and no worker stays behind.
TEST(ThreadPool, ThrowsIfMemoryForWorkersRunsOut) {
  const std::vector<CoreGroup> cores = {{.cores = {0, 1, 2, 3, 4, 5, 6, 7}, .siblings = {}}};
  int allowed = 0;
  for (bool made = false; !made; ++allowed) {
    allocations_left = allowed;
    try {
      const ThreadPool pool(8, cores);
      made = true;
    } catch (const std::bad_alloc&) {
    }
    allocations_left = kUnlimited;
  }
  EXPECT_GT(allowed, 8) << "each worker needs some";
}

TEST(ThreadPool, UnusedPoolStops) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

}  // namespace
}  // namespace hone
