// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/child_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "device_agent/visit/child_channel.h"

namespace hone::agent {
namespace {

// Whatever a child does first, were it nothing: one that asks for its parent only then may be an orphan by that time.
TEST(ChildProcessTest, ChildEndsWithItsParent) {
  int living[2];  // open for writing in all of them; at its end when none is left
  HONE_CHECK(pipe(living) == 0);
  const pid_t starter = fork();
  HONE_CHECK(starter >= 0);
  if (starter == 0) {
    const auto child = ChildProcess::Start([](int) {
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

// As a driver's compiler may.
TEST(ChildProcessTest, ForksOfAChildEndWithIt) {
  int living[2];  // open for writing in all of them; at its end when none is left
  HONE_CHECK(pipe(living) == 0);
  auto child = ChildProcess::Start([](int channel) {
    setsid();
    if (fork() != 0) _exit(3);
    close(channel);
    alarm(60);  // should the test fail
    for (;;) pause();
  });
  ASSERT_TRUE(child.ok()) << child.status();
  close(living[1]);
  VisitMessage message;
  EXPECT_EQ(child->Next(message, 20, -1), ChildProcess::Event::kEnded);
  EXPECT_EQ(child->AwaitEnd(), "ended with status 3");
  EXPECT_FALSE(child->killed_by_system());
  pollfd end{living[0], POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 20'000), 1) << "what it forked lives on";
  close(living[0]);
}

// A call that stood there may be gone when it is asked for. In the listener's place is a file that always has something
// and never a call.
TEST(ChildProcessTest, ListenerSurvivesALostCall) {
  auto child = ChildProcess::Start([](int channel) {
    signal(SIGPIPE, SIG_IGN);
    const ChildChannel channel_to_launcher(channel);
    int listener[2];
    HONE_CHECK(pipe(listener) == 0 && write(listener[1], "x", 1) == 1);
    channel_to_launcher.SendConfined(listener[0]);
    (void)channel_to_launcher.ReceiveAnswer();
    _exit(write(listener[1], "x", 1) == 1 ? 0 : 1);  // fails if the pipe has no reader
  });
  ASSERT_TRUE(child.ok()) << child.status();
  VisitMessage message;
  ASSERT_EQ(child->Next(message, 20, -1), ChildProcess::Event::kMessage);
  EXPECT_EQ(child->Next(message, 0.01, -1), ChildProcess::Event::kSilent);
  child->Answer(VisitAnswer::kGood);
  EXPECT_EQ(child->Next(message, 20, -1), ChildProcess::Event::kEnded);
  EXPECT_EQ(child->AwaitEnd(), "ended with status 0");
}

}  // namespace
}  // namespace hone::agent
