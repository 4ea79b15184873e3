// SPDX-License-Identifier: Apache-2.0
// hone-agent, the program beside devices. By its arguments it is the agent, a launcher, or a command such as `doctor`.
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_option.h"
#include "base/cpu_cores.h"
#include "base/host_lock.h"
#include "base/identity.h"
#include "base/one_line.h"
#include "base/resource_limit.h"
#include "base/standard_streams.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "base/thread_pool.h"
#include "compiler/target/target.h"
#include "device_agent/agent/call_tracker.h"
#include "device_agent/agent/golden.h"
#include "device_agent/agent/label.h"
#include "device_agent/agent/launcher_process.h"
#include "device_agent/agent/outbox.h"
#include "device_agent/agent/package_runs.h"
#include "device_agent/agent/service.h"
#include "device_agent/agent/sync_loop.h"
#include "device_agent/devices/cpu/host.h"
#include "device_agent/devices/cpu/throttling.h"
#include "device_agent/devices/device.h"
#include "device_agent/devices/device_convert.h"
#include "device_agent/devices/make_device.h"
#include "device_agent/doctor/doctor.h"
#include "device_agent/launcher/launcher_main.h"
#include "device_agent/launcher/plausible.h"
#include "device_agent/sandbox/control_group.h"
#include "files/file_store.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/agent.pb.h"
#include "pki/farm_link.h"
#include "pki/identity_folder.h"
#include "pki/join.h"
#include "pki/token.h"
#include "transport/farm_identity.h"
#include "transport/transport.h"

namespace hone::agent {
namespace {

struct Options {
  std::string tracker, name, target;
  std::vector<std::string> devices = {"cpu"}, labels;
  int threads = 0;
  std::string identity;                    // a folder (pki/identity_folder.h)
  std::string token, token_file;           // to join with: one of them
  std::string user;                        // of the service
  std::string outbox;                      // a folder (outbox.h)
  std::string files;                       // a folder of packages (files/file_store.h)
  int64_t files_quota = int64_t{4} << 30;  // bytes
  SandboxLevel required = SandboxLevel::kNone;
  bool die_with_parent = false, json = false;
  std::string launcher_folder;
  int launcher_channel = -1, launcher_cancel = -1;
};

// How long a first self-test waits for the host lock at a time. Meanwhile the agent makes no call and heeds no signal.
constexpr std::chrono::seconds kFirstTestWaitMax(2);

// The test that waits until the host lock is free.
v1::SelfTest PendingTest() {
  v1::SelfTest test;
  test.set_pending(true);
  test.set_reason(
      fmt::format("another program measures or compiles on the machine of the agent; it holds the host lock {}",
                  HostLock::DefaultPath()));
  return test;
}

// Runs the self-test under the host lock, so that nothing is timed or compiled on this host meanwhile. Returns `last`
// if another program holds the lock, because waiting would keep the agent silent and deaf to signals. Also returns
// `last` if another process uses the device exclusively, which may be a child that waits for a visit; if there was no
// test before, that use is reported. *roofline is replaced if one was measured.
v1::SelfTest CheckedAlone(Device& device, int threads, const v1::SelfTest& last, Roofline* roofline) {
  const auto test = [&] {
    SelfTestResult result = device.SelfTest(threads);
    if (!result.roofline.levels.empty()) *roofline = std::move(result.roofline);
    return result.busy && !last.pending() ? last : ToProto(result);
  };
  absl::StatusOr<HostLock> lock = HostLock::Open();
  if (!lock.ok()) {
    spdlog::warn("other programs may disturb the self-test of {}, because the host lock is missing: {}", device.id(),
                 std::string(lock.status().message()));
    return test();
  }
  // Without a test the device gets no work, so this waits a moment where a later test does not.
  const absl::StatusOr<bool> locked = last.pending() ? lock->TryLockFor(HostLock::Mode::kExclusive, kFirstTestWaitMax)
                                                     : lock->TryLock(HostLock::Mode::kExclusive);
  if (!locked.ok()) {
    spdlog::warn("other programs may disturb the self-test of {}: {}", device.id(),
                 std::string(locked.status().message()));
    return test();
  }
  return *locked ? test() : last;
}

// The target for clients that ask for this device; "" if Hone generates no code for it.
std::string TargetText(const std::string& device, int threads, const Options& options) {
  if (!options.target.empty()) return options.target;
  const absl::StatusOr<target::Target> target = target::TargetOfDevice(device, threads);
  if (target.ok()) return target::Print(*target);
  spdlog::warn("jobs cannot tune for {}, because its target is not known; give --target: {}", device,
               std::string(target.status().message()));
  return "";
}

absl::StatusOr<ControlGroups> TakeOverGroups() {
  HONE_ASSIGN_OR_RETURN(const std::filesystem::path folder, ControlGroups::OwnFolder());
  return ControlGroups::TakeOver(folder);
}

// A device with its launcher. It must outlive the SyncLoop that uses it.
class DeviceWithLauncher {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceWithLauncher>> Create(const std::string& text, const Options& options,
                                                                    const absl::StatusOr<ControlGroups>& groups) {
    HONE_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create());
    HONE_ASSIGN_OR_RETURN(TemporaryFolder visits_folder, TemporaryFolder::Create());
    HONE_ASSIGN_OR_RETURN(const std::string launcher_folder, MakeLauncherFolder(visits_folder));
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, MakeDevice(text, folder.path()));
    v1::DeviceState state;
    state.set_device_id(device->id());
    HONE_ASSIGN_OR_RETURN(const DeviceFingerprint fingerprint, device->Fingerprint());
    *state.mutable_fingerprint() = ToProto(fingerprint);
    {
      const ScopedCpuAffinity own(device->cpus());  // of which threads and target are
      state.set_threads(options.threads > 0 ? options.threads : ThreadPool(0).threads());
      state.set_target(TargetText(text, state.threads(), options));
    }
    for (const std::string& text : options.labels) {
      HONE_ASSIGN_OR_RETURN(const Label label, ParseLabel(text));
      (*state.mutable_labels())[label.name] = label.value;
    }
    Roofline roofline;
    *state.mutable_self_test() = CheckedAlone(*device, state.threads(), PendingTest(), &roofline);
    if (state.self_test().pending()) {
      spdlog::warn("the self-test of {} waits: {}", device->id(), state.self_test().reason());
    }
    std::unique_ptr<DeviceWithLauncher> own(new DeviceWithLauncher(text, std::move(folder), std::move(visits_folder),
                                                                   launcher_folder, std::move(device), std::move(state),
                                                                   groups));
    HONE_RETURN_IF_ERROR(own->CheckSandbox(options.required));
    own->golden_ = GoldenBatch(fingerprint.architecture);
    own->fingerprint_ = fingerprint;
    own->roofline_ = std::move(roofline);
    return own;
  }

  // access: to the files of runs. Its cache must live as long as what is returned.
  ServedDevice Served(const FileAccess& access) {
    ServedDevice served;
    served.state = state_;
    served.measure = [this, access](const v1::Batch& batch, const std::stop_token& stop) {
      if (!batch.has_run()) return launcher_.Run(batch, stop);
      const RunWithFiles run = [this](const v1::Batch& run, const std::vector<int>& files,
                                      const std::stop_token& stop) {
        Throttling throttling;  // its own, because counters are read from its beginning
        Launcher::RunResult ran = launcher_.RunWithFiles(run, files, stop);
        if (ran.result.has_run() && throttling.IsThrottling()) ran.result.mutable_run()->set_throttled(true);
        return ran;
      };
      v1::Batch own = batch;  // without a number of threads it gets all of the device's
      if (own.run().threads() == 0) own.set_threads(state_.threads());
      return RunPackages(own, access, run, stop);
    };
    served.check.run = [this] { return CheckAgain(); };
    if (golden_.has_value()) {
      served.golden.run = [this](uint64_t number, const std::stop_token& stop) {
        v1::GoldenCheck check = ToGoldenCheck(*golden_, launcher_.Run(*golden_, stop), number);
        check.set_throttled(throttling_.IsThrottling() || launcher_.sensors().slowed_down);
        return check;
      };
    }
    return served;
  }
  const v1::DeviceState& state() const { return state_; }
  const std::string& place() const { return fingerprint_.place; }

 private:
  DeviceWithLauncher(const std::string& text, TemporaryFolder folder, TemporaryFolder visits_folder,
                     const std::string& launcher_folder, std::unique_ptr<Device> device, v1::DeviceState state,
                     const absl::StatusOr<ControlGroups>& groups)
      : folder_(std::move(folder)),
        visits_folder_(std::move(visits_folder)),
        device_(std::move(device)),
        state_(std::move(state)),
        peak_(state_.self_test().peak_gflops()),
        launcher_({.device = text,
                   .folder = launcher_folder,
                   .sensors = [this] { return device_->ReadSensors(); },
                   .reads_sensors_in_visits = device_->ReadsSensorsInVisits(),
                   .peak_gflops = [this] { return peak_.gflops(); },
                   .roofline = [this] { return roofline_; },
                   .environment = [this] { return EnvironmentNow(); },
                   .groups = &groups}) {}
  // Starts the launcher and checks that its sandbox reaches the required level.
  absl::Status CheckSandbox(SandboxLevel required) {
    HONE_ASSIGN_OR_RETURN(*state_.mutable_sandbox(), launcher_.Open());
    const std::string missing = MissingLayers(FromProto(state_.sandbox()), required);
    if (missing.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(fmt::format(
        "--require-sandbox {}: {} lacks {}; docs/SANDBOX.md says what to do", Name(required), device_->id(), missing));
  }
  // Governors and other settings change while the agent runs.
  v1::RunEnvironment EnvironmentNow() const {
    DeviceFingerprint now = fingerprint_;
    ReadEnvironment(device_->cpus(), now);
    return ToRunEnvironment(now);
  }
  v1::SelfTest CheckAgain() {
    *state_.mutable_self_test() = CheckedAlone(*device_, state_.threads(), state_.self_test(), &roofline_);
    peak_.Add(state_.self_test().peak_gflops());
    return state_.self_test();
  }

  // Two folders, because visits may run as another user, who must not change files of the agent.
  const TemporaryFolder folder_, visits_folder_;
  const std::unique_ptr<Device> device_;
  v1::DeviceState state_;
  DeviceFingerprint fingerprint_;  // as it was at the start
  MeasuredPeak peak_;
  Roofline roofline_;  // of the last self-test that measured one
  std::optional<v1::Batch> golden_;
  Throttling throttling_;
  Launcher launcher_;  // ends before its folder goes
};

absl::StatusOr<std::vector<std::unique_ptr<DeviceWithLauncher>>> FindDevices(
    const Options& options, const absl::StatusOr<ControlGroups>& groups) {
  std::vector<std::unique_ptr<DeviceWithLauncher>> devices;
  std::set<std::string> ids, places;  // "cuda" and "cuda:0" may be one
  for (const std::string& text : options.devices) {
    HONE_ASSIGN_OR_RETURN(devices.emplace_back(), DeviceWithLauncher::Create(text, options, groups));
    const std::string& place = devices.back()->place();
    if (!ids.insert(devices.back()->state().device_id()).second || (!place.empty() && !places.insert(place).second)) {
      return absl::InvalidArgumentError(fmt::format("--device {}: given twice", text));
    }
  }
  if (devices.size() > 1 && !options.target.empty()) {
    return absl::InvalidArgumentError(
        "--target can be given only for a single device; start one agent for each device");
  }
  return devices;
}

// Completes the options from the folder of the identity: the certificate's name, if there is one. Over a local socket
// no identity is used.
absl::Status TakeIdentity(Options& options) {
  if (SocketPath(options.tracker)) {
    if (!options.identity.empty())
      return absl::InvalidArgumentError("--identity: a unix socket uses no certificates; omit it");
    if (options.name.empty()) options.name = HostName();
    return absl::OkStatus();
  }
  if (options.identity.empty()) {
    HONE_ASSIGN_OR_RETURN(options.identity, pki::DefaultFolder(Role::kAgent));
  }
  HONE_ASSIGN_OR_RETURN(const std::string name, pki::ReadName(options.identity, Role::kAgent));
  if (!options.name.empty() && options.name != name) {
    return absl::InvalidArgumentError(
        fmt::format("--name {}: the certificate is for '{}'; omit --name", options.name, name));
  }
  options.name = name;
  HONE_ASSIGN_OR_RETURN(const pki::Settings settings, pki::ReadSettings(options.identity));
  if (options.outbox.empty()) options.outbox = (std::filesystem::path(options.identity) / "outbox").string();
  if (options.files.empty()) options.files = (std::filesystem::path(options.identity) / "files").string();
  if (options.tracker.empty()) options.tracker = settings.tracker;
  if (options.labels.empty()) options.labels = settings.labels;
  if (!options.tracker.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("no tracker is given; give --tracker HOST:PORT, or join a farm (hone-agent join)");
}

// Joins. If the service joins, files are created as the user of the service.
absl::StatusOr<std::string> JoinAs(pki::Token token, const Options& options) {
  const pki::JoinOptions join{std::move(token), options.name, HostName(), {options.tracker, options.labels}};
  if (options.user.empty() || geteuid() != 0) return pki::Join(options.identity, join);
  HONE_ASSIGN_OR_RETURN(const ScopedUser user, ScopedUser::Begin(options.user));
  return pki::Join(options.identity, join);
}

// The options of the service, from its configuration; defaults if there is none.
Options ReadServiceSettings();

// Tells the user how to start the agent that has joined. Restarts the service if the service has joined.
void PrintHowToStart(const Options& options) {
  const Options service = ReadServiceSettings();
  if (options.user.empty() || options.user != service.user ||
      std::filesystem::weakly_canonical(options.identity) != std::filesystem::weakly_canonical(service.identity)) {
    const bool usual = options.identity == pki::DefaultFolder(Role::kAgent).value_or("");
    WriteStdout(fmt::format("start the agent with: hone-agent{}{}\n", usual ? "" : " --identity " + options.identity,
                            options.user.empty() ? "" : "    # as user " + options.user));
    return;
  }
  const absl::Status runs = RestartService();
  WriteStdout(runs.ok() ? "the service hone-agent is running, and starts with this machine\n"
                        : fmt::format("the service hone-agent does not run ({}); start it with: systemctl restart "
                                      "hone-agent\n",
                                      OneLine(std::string(runs.message()))));
}

// Also checks the labels, so that a bad one is reported before the first start.
absl::Status Join(Options options) {
  HONE_ASSIGN_OR_RETURN(pki::Token token, pki::ReadToken(options.token, options.token_file));
  for (const std::string& label : options.labels) HONE_RETURN_IF_ERROR(ParseLabel(label).status());
  if (token.role != Role::kAgent) {
    return absl::InvalidArgumentError(fmt::format("the token is for role {}; use hone join with it", Name(token.role)));
  }
  if (options.identity.empty()) {
    HONE_ASSIGN_OR_RETURN(options.identity, pki::DefaultFolder(Role::kAgent));
  }
  HONE_ASSIGN_OR_RETURN(const std::string name, JoinAs(std::move(token), options));
  // Shown to the user, because jobs ask for the device by this name.
  const bool other = options.name.empty() && name != HostName();
  WriteStdout(fmt::format(
      "joined as '{}'{}\n", name,
      other ? fmt::format(" (not as '{}', the name of this host: that name is taken, or the token sets another)",
                          HostName())
            : ""));
  PrintHowToStart(options);
  return absl::OkStatus();
}

// Opens the cache of packages. A package that a run needs always comes in; the quota says what stays afterwards.
absl::StatusOr<std::unique_ptr<files::FileStore>> OpenPackages(const std::filesystem::path& folder, int64_t quota) {
  HONE_ASSIGN_OR_RETURN(
      auto packages,
      files::FileStore::Open(folder, {.quota = quota, .refuse_beyond_quota = false, .keep = absl::ZeroDuration()}));
  packages->DeleteBeyondQuota();
  return packages;
}

absl::Status Run(Options options, const sigset_t& signals) {
  const ServiceWatchdog supervisor;
  HONE_RETURN_IF_ERROR(TakeIdentity(options));
  HONE_ASSIGN_OR_RETURN(const auto link, pki::FarmLink::Open(options.tracker, options.identity));
  TemporaryFolder::RemoveAbandoned();  // of agents that were killed
  const absl::StatusOr<ControlGroups> groups = TakeOverGroups();
  HONE_ASSIGN_OR_RETURN(const std::vector<std::unique_ptr<DeviceWithLauncher>> devices, FindDevices(options, groups));
  std::optional<TemporaryFolder> temporary;
  if (options.files.empty()) {
    HONE_ASSIGN_OR_RETURN(temporary, TemporaryFolder::Create());
    options.files = *temporary / "files";
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<files::FileStore> packages,
                        OpenPackages(options.files, options.files_quota));
  const FileAccess access{[&] { return link->channel(); }, packages.get()};
  const AgentIdentity identity{options.name, RandomId(), HONE_VERSION};
  std::vector<ServedDevice> served;
  for (const auto& device : devices) {
    spdlog::info("agent {} with {}, {} threads, tracker {}", identity.agent_id, device->state().fingerprint().text(),
                 device->state().threads(), options.tracker);
    served.push_back(device->Served(access));
  }
  const auto synchronize = [&](const v1::SynchronizeRequest& request,
                               const std::stop_token& stop) -> absl::StatusOr<v1::SynchronizeResponse> {
    supervisor.ReportAlive();  // once in each iteration of the loop
    absl::StatusOr<v1::SynchronizeResponse> response = CallTracker(*link, request, stop);
    if (!response.ok()) return Annotate(response.status(), "tracker " + options.tracker);
    return response;
  };
  std::optional<Outbox> outbox;
  if (!options.outbox.empty()) {
    HONE_ASSIGN_OR_RETURN(outbox, Outbox::Open(options.outbox));
  }
  SyncLoop loop(identity, synchronize, std::move(served), std::move(outbox));
  std::atomic<bool> ended = false;  // by itself, for the reason that it returns
  std::thread stopper([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    if (ended) return;
    spdlog::info("stopping on signal {}", signal);
    loop.Stop();
  });
  absl::Status status = loop.Run();
  ended = true;
  if (!status.ok()) spdlog::info("stopping: {}", OneLine(std::string(status.message())));
  pthread_kill(stopper.native_handle(), SIGTERM);  // it waits for one still when the loop ended by itself
  stopper.join();
  return status;
}

int RunLauncher(const Options& options) {
  const absl::StatusOr<std::unique_ptr<Device>> device = MakeDevice(options.devices.front(), options.launcher_folder);
  HONE_CHECK(device.ok());  // the agent has made it before
  return LauncherMain(**device, options.launcher_channel, options.launcher_cancel);
}

// The exit status: 1 if a finding is bad.
absl::StatusOr<int> Doctor(Options options) {
  if (options.identity.empty()) {
    HONE_ASSIGN_OR_RETURN(options.identity, pki::DefaultFolder(Role::kAgent));
  }
  std::optional<ScopedUser> user;  // whose the files are
  if (!options.user.empty() && geteuid() == 0) {
    HONE_ASSIGN_OR_RETURN(ScopedUser acting, ScopedUser::Begin(options.user));
    user.emplace(std::move(acting));
  }
  const std::vector<Finding> findings = Examine({options.identity, options.tracker, true});
  const bool printed = WriteStdout(options.json ? FindingsAsJson(findings) : FindingsAsText(findings));
  return IsAllFine(findings) && printed ? 0 : 1;
}

struct Commands {
  const CLI::App* join;
  const CLI::App* doctor;
};

// config: the configuration file that is read without --config; "": none.
Commands AddOptions(CLI::App& app, Options& options, const std::string& config) {
  app.set_version_flag("--version", HONE_VERSION);
  AddConfigOption(
      app, config,
      "file with lines OPTION = VALUE for these options (for join as root: " + std::string(kServiceConfig) + ")");
  app.add_option("--tracker", options.tracker,
                 "HOST:PORT or unix:/PATH of the tracker (default: the tracker that was joined)");
  app.add_option("--name", options.name,
                 "name of this agent, unique in the farm (default: the name in its certificate, else of the host)");
  app.add_option("--device", options.devices,
                 "device to measure on (default: cpu), one of " + DeviceKinds() + "; may be repeated");
  app.add_option("--target", options.target,
                 "target of jobs that ask for this device (default: the target that the machine reports)");
  app.add_option("--label", options.labels, "NAME or NAME=VALUE that jobs can ask for, such as rpi4; may be repeated");
  app.add_option("--threads", options.threads,
                 "largest number of threads for a kernel (default: one for each core of the device)")
      ->check(CLI::Range(0, kThreadsMax));
  app.add_option("--identity", options.identity, "folder with the agent's certificate (default: ~/.config/hone/agent)");
  app.add_option("--outbox", options.outbox,
                 "folder for results that the tracker has not acknowledged (default: outbox in the folder of the "
                 "certificate; none on a unix socket)");
  app.add_option("--files", options.files,
                 "folder of packages that this agent has run (default: files in the folder of the certificate; a "
                 "temporary one on a unix socket)");
  app.add_option("--files-quota", options.files_quota,
                 "how much of that folder is kept between runs, such as 4GiB; 0 keeps nothing (default: 4GiB)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->type_name("SIZE");
  app.add_option_function<std::string>(
         "--require-sandbox", [&options](const std::string& name) { options.required = *ParseSandboxLevel(name); },
         "do not start if the sandbox of kernels is below this level (default: none)")
      ->check(CLI::IsMember({"none", "filter", "wall"}));
  app.add_option("--user", options.user, "owner of the identity that join as root makes (default: root)");
  app.add_flag("--die-with-parent", options.die_with_parent, "end when the process that started this one ends");
  app.add_option("--launcher-folder", options.launcher_folder)->group("");
  app.add_option("--launcher-channel", options.launcher_channel)->group("");
  app.add_option("--launcher-cancel", options.launcher_cancel)->group("");
  CLI::App* join = app.add_subcommand("join", "get a certificate of a farm, once; hone-agent then needs no options");
  join->add_option("tracker", options.tracker, "HOST:PORT of the tracker")->required();
  join->add_option("--token-file", options.token_file,
                   "file with the token that hone token create --role agent printed; - is standard input");
  join->add_option("--token", options.token,
                   "the token itself; other users of this machine can read it while the command runs")
      ->envname("HONE_TOKEN");
  join->fallthrough();  // to --name, --label and --identity
  CLI::App* doctor =
      app.add_subcommand("doctor", "find what harms timings or security on this machine, and how to fix it");
  doctor->add_flag("--json", options.json, "print one JSON document and nothing else");
  doctor->fallthrough();
  return {join, doctor};
}

Options ReadServiceSettings() {
  if (!std::filesystem::exists(kServiceConfig)) return {};
  Options settings;
  CLI::App app;
  AddOptions(app, settings, kServiceConfig);
  try {
    app.parse(std::vector<std::string>());
  } catch (const CLI::ParseError&) {  // nothing is known of a service that could not start
    return {};
  }
  return settings;
}

int Finish(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "hone-agent: %s\n", ReplaceControlCharacters(std::string(status.message())).c_str());
  return status.code() == absl::StatusCode::kInvalidArgument ? 2 : 1;
}

int Main(int argc, char** argv) {
  // Few arenas save memory of a board: many threads allocate rarely, and freed memory of a large batch must return to
  // the system.
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  Options options;
  CLI::App app("Measures kernels on this device for a Hone tracker.", "hone-agent");
  // If root joins and the service is installed, the service joins. An agent that is started by hand has its own folder.
  const std::string_view first = argc > 1 ? argv[1] : "";
  const bool of_service =
      (first == "join" || first == "doctor") && geteuid() == 0 && std::filesystem::exists(kServiceConfig);
  const auto [join, doctor] = AddOptions(app, options, of_service ? kServiceConfig : "");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.launcher_channel >= 0) return RunLauncher(options);
  if (join->parsed()) return Finish(Join(options));
  if (doctor->parsed()) {
    const absl::StatusOr<int> code = Doctor(options);
    return code.ok() ? *code : Finish(code.status());
  }
  if (options.die_with_parent) prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return Finish(Run(options, signals));
}

}  // namespace
}  // namespace hone::agent

int main(int argc, char** argv) {
  hone::OpenClosedStandardStreams();
  hone::IgnoreFileSizeSignal();
  return hone::agent::Main(argc, argv);
}
