// SPDX-License-Identifier: Apache-2.0
// main of the tuner's tests. The test program is also its own build worker, as hone-tuner is.
//
// In "real" mode a worker compiles. In "pretend" mode it follows the schedule's text: crash, hang, fail or succeed,
// with or without a program that it runs. HONE_FAKE_DRAWBACK is a drawback to report for successful candidates. With
// HONE_FAKE_UNTIL, no candidate is compiled before that file exists.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tuner/build_worker.h"

namespace {

using hone::FailureKind;
using hone::tuner::BuildReply;
using hone::tuner::BuildRequest;

BuildReply Pretend(const BuildRequest& request) {
  BuildReply reply;
  if (request.kind == BuildRequest::Kind::kLink) {
    if (request.target.find("no linker") != std::string::npos) reply.kind = BuildReply::Kind::kFailed;
    for (const std::string& object : request.objects) {
      reply.ranges.push_back({static_cast<int64_t>(reply.bytes.size()), static_cast<int64_t>(object.size())});
      reply.bytes += object + "\n";
    }
    return reply;
  }
  if (request.schedule.find("program") != std::string::npos && std::system("sleep 60 &") != 0) std::exit(4);
  if (request.schedule.find("crash") != std::string::npos) std::raise(SIGSEGV);
  if (request.schedule.find("leave") != std::string::npos) std::exit(3);
  if (request.schedule.find("hang") != std::string::npos) pause();
  const char* until = request.kind == BuildRequest::Kind::kCompile ? std::getenv("HONE_FAKE_UNTIL") : nullptr;
  while (until != nullptr && access(until, F_OK) != 0) usleep(1000);
  // "no reference until FILE": the reference compiles once the file exists.
  constexpr std::string_view kUntil = "no reference until ";
  const bool bad_reference =
      request.workload.starts_with(kUntil)
          ? request.schedule.empty() && access(request.workload.c_str() + kUntil.size(), F_OK) != 0
          : request.workload.find("no reference") != std::string::npos;
  if (request.schedule.find("illegal") != std::string::npos || bad_reference) {
    reply.kind = BuildReply::Kind::kFailed;
    reply.failure = FailureKind::kScheduleIllegal;
    reply.text = "no loop of that name";
    return reply;
  }
  if (const char* drawback = std::getenv("HONE_FAKE_DRAWBACK"); drawback != nullptr) reply.drawback = drawback;
  reply.bytes = request.name + "@" + std::to_string(getpid());
  reply.kernel.name = request.name;
  reply.kernel.workspace_bytes = static_cast<int64_t>(request.schedule.size());
  reply.kernel.main.push_back({request.name, 0, 0, {}});
  return reply;
}

}  // namespace

int main(int argc, char** argv) {
  bool pretend = false;
  for (int i = 1; i < argc; ++i) {
    constexpr std::string_view kWorker = "--build-worker=";
    const std::string_view argument = argv[i];
    pretend |= argument == "--pretend";
    if (argument.starts_with(kWorker)) {
      const int socket = std::atoi(argv[i] + kWorker.size());
      hone::tuner::Builder builder;
      return hone::tuner::ServeBuilds(socket, [&](const hone::tuner::BuildRequest& request) {
        return pretend ? Pretend(request) : builder.Build(request);
      });
    }
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
