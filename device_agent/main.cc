// hone-agent: the program on a device. Dials out to a tracker, takes leases, measures, reports.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>

#include "base/host_lock.h"
#include "base/identity.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "device_agent/device.h"
#include "device_agent/launcher.h"
#include "device_agent/sync_loop.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/agent.grpc.pb.h"
#include "proto/tls_options.h"
#include "proto/transport.h"

namespace hone::agent {
namespace {

struct Options {
  std::string tracker, name, target;
  std::vector<std::string> labels;
  int threads = 0;
  TlsFiles tls;
  bool die_with_parent = false;
  int launcher_channel = -1, launcher_cancel = -1;
};

// The call under way, so that another thread can cancel it.
class GrpcLink {
 public:
  explicit GrpcLink(const std::shared_ptr<grpc::Channel>& channel) : stub_(v1::AgentService::NewStub(channel)) {}

  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request) {
    grpc::ClientContext context;
    const int grace = request.leaving() ? 2 : 15;  // whoever leaves does not wait for a tracker that is gone
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(request.max_wait().seconds() + grace));
    SetContext(&context);
    v1::SynchronizeResponse response;
    const grpc::Status status = stub_->Synchronize(&context, request, &response);
    SetContext(nullptr);
    if (!status.ok()) return FromGrpc(status);
    return response;
  }
  void Cancel() {
    const std::lock_guard lock(mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }

 private:
  void SetContext(grpc::ClientContext* context) {
    const std::lock_guard lock(mutex_);
    context_ = context;
  }

  const std::unique_ptr<v1::AgentService::Stub> stub_;
  std::mutex mutex_;
  grpc::ClientContext* context_ = nullptr;
};

// The self-test measures too: nothing is compiled meanwhile.
v1::SelfTest CheckedAlone(int threads) {
  absl::StatusOr<HostLock> lock = HostLock::Open();
  if (!lock.ok()) {
    spdlog::warn("the self-test may overlap compiling: {}", std::string(lock.status().message()));
    return RunSelfTest(threads);
  }
  const ScopedHostLock alone(*lock, HostLock::Mode::kExclusive);
  return RunSelfTest(threads);
}

absl::StatusOr<AgentIdentity> Identify(const Options& options) {
  AgentIdentity identity;
  identity.agent_id = options.name.empty() ? HostName() : options.name;
  identity.boot_id = RandomId();
  identity.version = HONE_VERSION;
  v1::DeviceState& device = identity.device;
  device.set_device_id("cpu");
  device.set_target(options.target);
  *device.mutable_fingerprint() = DetectDevice();
  device.set_threads(options.threads > 0 ? options.threads : ThreadPool(0).threads());
  for (const std::string& label : options.labels) {
    const size_t equals = label.find('=');
    if (equals == std::string::npos)
      return absl::InvalidArgumentError(fmt::format("--label {}: write name=value", label));
    (*device.mutable_labels())[label.substr(0, equals)] = label.substr(equals + 1);
  }
  *device.mutable_self_test() = CheckedAlone(device.threads());
  return identity;
}

absl::Status Run(const Options& options, const sigset_t& signals) {
  HONE_ASSIGN_OR_RETURN(const auto channel, OpenChannel(options.tracker, options.tls));
  HONE_ASSIGN_OR_RETURN(const AgentIdentity identity, Identify(options));
  spdlog::info("agent {} on {}, {} threads, tracker {}", identity.agent_id, identity.device.fingerprint().text(),
               identity.device.threads(), options.tracker);
  Launcher launcher;
  GrpcLink link(channel);
  SyncLoop loop(
      identity,
      {[&](const v1::SynchronizeRequest& request) { return link.Synchronize(request); }, [&] { link.Cancel(); }},
      {[&](const v1::Batch& batch) { return launcher.Run(batch); }, [&] { launcher.Cancel(); }},
      {[&] { return CheckedAlone(identity.device.threads()); }});
  std::thread stopper([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    spdlog::info("stopping on signal {}", signal);
    loop.Stop();
  });
  absl::Status status = loop.Run();
  pthread_kill(stopper.native_handle(), SIGTERM);  // it waits for one still when the loop ended by itself
  stopper.join();
  return status;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures kernels on this device for a Hone tracker.", "hone-agent");
  app.add_option("--tracker", options.tracker, "HOST:PORT of the tracker");
  app.add_option("--name", options.name, "name of this agent, unique in the farm (default: the host's name)");
  app.add_option("--target", options.target, "target text that this device is registered under");
  app.add_option("--label", options.labels, "name=value that jobs may ask for; may be repeated");
  app.add_option("--threads", options.threads, "most threads a kernel may use (default: all CPUs)")
      ->check(CLI::NonNegativeNumber);
  AddTlsOptions(app, options.tls);
  app.add_flag("--die-with-parent", options.die_with_parent, "end when the process that started this one ends");
  app.add_option("--launcher-channel", options.launcher_channel)->group("");
  app.add_option("--launcher-cancel", options.launcher_cancel)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.launcher_channel >= 0) return LauncherMain(options.launcher_channel, options.launcher_cancel);
  if (options.tracker.empty()) {
    std::fprintf(stderr, "hone-agent: no tracker: give --tracker HOST:PORT\n");
    return 2;
  }
  if (options.die_with_parent) prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const absl::Status status = Run(options, signals);
  if (status.ok()) return 0;
  std::fprintf(stderr, "hone-agent: %s\n", std::string(status.message()).c_str());
  return status.code() == absl::StatusCode::kInvalidArgument ? 2 : 1;
}

}  // namespace
}  // namespace hone::agent

int main(int argc, char** argv) { return hone::agent::Main(argc, argv); }
