#include "device_agent/watched_child.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"

namespace hone::agent {
namespace {

// Whatever a child does first, were it nothing: one that asks for its parent only then may be an orphan by that time.
TEST(WatchedChildTest, EndsWithWhoStartedIt) {
  int living[2];  // open for writing in all of them; at its end when none is left
  HONE_CHECK(pipe(living) == 0);
  const pid_t starter = fork();
  HONE_CHECK(starter >= 0);
  if (starter == 0) {
    const auto child = WatchedChild::Start([](int) {
      alarm(60);  // should the test fail
      for (;;) pause();
    });
    HONE_CHECK(child.ok());
    kill(getpid(), SIGKILL);
  }
  close(living[1]);
  int status = 0;
  ASSERT_EQ(waitpid(starter, &status, 0), starter);
  EXPECT_TRUE(WIFSIGNALED(status));
  pollfd end{living[0], POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 20'000), 1) << "the child lives on";
  close(living[0]);
}

}  // namespace
}  // namespace hone::agent
