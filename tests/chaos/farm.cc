// SPDX-License-Identifier: Apache-2.0
#include "tests/chaos/farm.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "absl/time/clock.h"
#include "base/status.h"
#include "compiler/ir/workload.h"
#include "hone/v1/job.grpc.pb.h"
#include "pki/identity_folder.h"
#include "pki/tracker_folder.h"
#include "records/store.h"
#include "storage/open.h"
#include "tuner/search_parts.h"

namespace hone::chaos {
namespace {

constexpr char kAddress[] = "localhost:9190";

// Convolutions of different widths, which have more schedules than there are trials. Each job has only one, because the
// division of trials among several depends on the order of results.
ir::Workload WorkloadOf(int number) {
  const int channels = 64 + 16 * number;
  const auto convolution =
      ir::ParseWorkload(fmt::format("workload \"conv2d\"\n"
                                    "input x: f32[1,28,28,{0}] in [-1, 1]\n"
                                    "const w: f32[{0},{0},3,3] in [-1, 1]\n"
                                    "t: f32[1,26,26,{0}] over n:1, h:26, v:26, oc:{0} = sum ic:{0}, kh:3, kw:3 of "
                                    "x[n, h + kh, v + kw, ic] * w[oc, ic, kh, kw]\n"
                                    "output t\n",
                                    channels));
  HONE_CHECK(convolution.ok());
  return ir::Canonicalize(*convolution);
}

v1::JobSpec SpecOf(int job, int64_t trials) {
  v1::JobSpec spec;
  spec.set_request_id(fmt::format("job-{}", job));
  spec.set_name(fmt::format("job {}", job));
  spec.set_target("x86_64 -mcpu=znver4 -threads=1");
  spec.set_threads(1);
  spec.set_trials(trials);
  spec.set_seed(static_cast<uint64_t>(job + 1));
  // Descent ends a search when it finds nothing better, which happens later after a restart, so it is left out.
  (*spec.mutable_options())[std::string(tuner::kWithoutOption)] = "descent";
  const ir::Workload workload = WorkloadOf(job);
  v1::WorkloadSpec& entry = *spec.add_workloads();
  entry.set_digest(ir::WorkloadDigest(workload));
  entry.set_text(ir::Print(workload));
  entry.set_count(1);
  entry.set_op(workload.op);
  entry.set_flops(ir::CountFlops(workload));
  return spec;
}

}  // namespace

Farm::Farm(const std::filesystem::path& folder, const FarmSize& size)
    : folder_(folder), size_(size), address_(kAddress) {
  std::filesystem::create_directories(folder_ / "disk");
  MakeIdentities();
  const auto log = [&](const std::string& name) { return folder_ / (name + ".log"); };
  members_.emplace_back("tracker",
                        std::vector<std::string>{HONE_TRACKER_BINARY, "--listen", address_, "--records",
                                                 folder_ / "disk" / "records.db", "--pki", folder_ / "pki"},
                        log("tracker"));
  for (int i = 0; i < size_.tuners; ++i) {
    const std::string name = fmt::format("tuner{}", i);
    members_.emplace_back(name,
                          std::vector<std::string>{HONE_TUNER_BINARY, "--tracker", address_, "--identity",
                                                   folder_ / "tuner", "--name", name, "--build-workers", "1"},
                          log(name));
  }
  for (int i = 0; i < size_.boards; ++i) {
    const std::string name = fmt::format("board{}", i);
    members_.emplace_back(name,
                          std::vector<std::string>{HONE_FAKE_BOARD_BINARY, "--tracker", address_, "--identity",
                                                   folder_ / name, "--pace", fmt::format("{}", size_.pace)},
                          log(name));
  }
  for (Member& member : members_) member.Start();
  channel_ = OpenChannel(address_, pki::FilesIn(folder_ / "client")).value();
}

void Farm::MakeIdentities() {
  const absl::Time now = absl::Now();
  HONE_CHECK(pki::MakeTrackerFolder(folder_ / "pki", {"localhost"}, now).ok());
  const pki::Authority authority = pki::ReadAuthority(folder_ / "pki").value().value();
  const auto issue = [&](Role role, const std::string& name) {
    HONE_CHECK(pki::IssueIdentity(authority, folder_ / name, {role, name}, address_, now).ok());
  };
  issue(Role::kClient, "client");
  issue(Role::kTuner, "tuner");
  for (int i = 0; i < size_.boards; ++i) issue(Role::kAgent, fmt::format("board{}", i));
}

void Farm::SubmitJobs() {
  for (int job = 0; job < size_.jobs; ++job) {
    HONE_CHECK(farm::Eventually([&] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
      v1::SubmitJobRequest request;
      *request.mutable_spec() = SpecOf(job, size_.trials);
      v1::Job submitted;
      return v1::JobService::NewStub(channel_)->Submit(&context, request, &submitted).ok();
    }));
  }
}

std::vector<v1::Job> Farm::Jobs() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
  v1::ListJobsRequest request;
  request.set_limit(100);
  v1::ListJobsResponse response;
  v1::JobService::NewStub(channel_)->List(&context, request, &response);
  return {response.jobs().begin(), response.jobs().end()};
}

bool Farm::Stop() {
  bool clean = true;
  for (size_t i = members_.size(); i-- > 0;) members_[i].Signal(SIGTERM);
  for (size_t i = members_.size(); i-- > 0;) clean &= members_[i].Wait() == 0;
  return clean;
}

std::map<RecordKey, Recorded> Farm::Records() const {
  const auto store = storage::OpenRecords(folder_ / "disk" / "records.db", records::OpenMode::kReadOnly);
  HONE_CHECK(store.ok());
  HONE_CHECK((*store)->CheckIntegrity().ok());
  std::map<RecordKey, Recorded> found;
  records::Filter filter;
  for (bool more = true; more;) {
    const records::Page page = (*store)->Query(filter).value();
    for (const records::StoredRecord& stored : page.rows) {
      const records::Key& key = stored.record.key;
      Recorded& of_key = found[{key.workload_digest, key.target, key.device_fingerprint, key.compiler_version}];
      ++of_key.records;
      of_key.schedules.insert(stored.record.schedule);
      filter.after_row = stored.row;
    }
    more = page.more;
  }
  return found;
}

bool EnterOwnWorld() {
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return false;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  SetLoopback(true);
  return true;
}

void SetLoopback(bool up) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  HONE_CHECK(fd >= 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  HONE_CHECK(ioctl(fd, SIOCGIFFLAGS, &request) == 0);
  request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  HONE_CHECK(ioctl(fd, SIOCSIFFLAGS, &request) == 0);
  close(fd);
}

}  // namespace hone::chaos
