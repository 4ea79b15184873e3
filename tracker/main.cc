// SPDX-License-Identifier: Apache-2.0
// hone-tracker: the queue of jobs, the registry of devices and the farm's records, behind gRPC.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/config_option.h"
#include "base/one_line.h"
#include "base/parse_duration.h"
#include "base/resource_limit.h"
#include "base/standard_streams.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "pki/identity_folder.h"
#include "records/default_path.h"
#include "storage/backup.h"
#include "storage/open.h"
#include "tracker/access.h"
#include "tracker/file_service.h"
#include "tracker/http/http_front_end.h"
#include "tracker/http/notifier.h"
#include "tracker/http/post.h"
#include "tracker/membership.h"
#include "tracker/package_sweeper.h"
#include "tracker/private_socket.h"
#include "tracker/services.h"
#include "transport/transport.h"

namespace hone::tracker {
namespace {

struct Options {
  std::string listen, records, state, files, port_file, pki;
  std::string http, http_file;
  std::string backup_to, restore_from;
  std::string certificate_life = "30d", keep_jobs_for = "90d";
  int64_t files_quota = int64_t{16} << 30;  // bytes
  int keep_jobs = JobOptions().ended_max;
  v1::SandboxLevel required_sandbox = DeviceOptions().required_sandbox;
  std::vector<std::string> notify_allowed;
  bool die_with_parent = false;
};

constexpr absl::Duration kNoticeTimeout = absl::Seconds(10);

// Writes the address that the tracker listens on. The file appears whole, because other programs wait for it.
absl::Status WritePortFile(const std::string& path, const std::string& address) {
  if (path.empty()) return absl::OkStatus();
  const std::string temporary = path + ".new";
  std::ofstream file(temporary);
  file << address << "\n";
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(
        fmt::format("cannot write the port file {}: {}; name a file in an existing folder that is writable", path,
                    std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> ParseLife(const std::string& option, const std::string& text) {
  if (const auto life = ParsePositiveDuration(text)) return *life;
  return absl::InvalidArgumentError(fmt::format("{} {}: write a duration such as 30d or 12h", option, text));
}

struct Listening {
  std::string address;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<PrivateSocket> socket;  // null where the address is HOST:PORT
};

// Starts the gRPC server. membership: null for a unix socket, where no call is checked by the gate.
absl::StatusOr<Listening> Listen(const Options& options, const Membership* membership, Gate* gate,
                                 const std::vector<std::unique_ptr<grpc::Service>>& services) {
  Listening listening{options.listen, nullptr, nullptr};
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  ConfigureServer(builder);
  for (const auto& service : services) builder.RegisterService(service.get());
  if (const auto path = SocketPath(options.listen)) {
    HONE_ASSIGN_OR_RETURN(listening.socket, PrivateSocket::Listen(*path));
    listening.server = builder.BuildAndStart();
    HONE_CHECK(listening.server != nullptr);  // without a port there is nothing that could fail
    listening.socket->Serve(listening.server.get());
    return listening;
  }
  int port = 0;
  HONE_ASSIGN_OR_RETURN(const auto credentials,
                        ListenCredentials(pki::FilesIn(options.pki),
                                          membership->signs() ? AnonymousClients::kAccept : AnonymousClients::kReject));
  credentials->SetAuthMetadataProcessor(std::make_shared<RoleCheck>(gate));
  builder.AddListeningPort(options.listen, credentials, &port);
  listening.server = builder.BuildAndStart();
  if (listening.server == nullptr || port == 0) {
    return absl::UnavailableError(
        fmt::format("cannot listen on {}; check that no other program uses the port", options.listen));
  }
  listening.address = fmt::format("{}:{}", options.listen.substr(0, options.listen.rfind(':')), port);
  return listening;
}

// Opens the folder of --pki. Null for a unix socket, where there are no certificates. records: their address.
absl::StatusOr<std::unique_ptr<Membership>> OpenMembership(const Options& options,
                                                           const std::filesystem::path& records) {
  if (SocketPath(options.listen)) {
    if (options.pki.empty()) return nullptr;
    return absl::InvalidArgumentError("a unix socket uses no certificates; omit --pki");
  }
  if (options.pki.empty()) {
    return absl::InvalidArgumentError(
        "HOST:PORT needs TLS: make the certificates with hone pki init, and give their folder with --pki DIR; for "
        "programs of one user on one machine, unix:/PATH needs no certificates");
  }
  MembershipOptions membership{.folder = options.pki, .records = records};
  HONE_ASSIGN_OR_RETURN(membership.machine_life, ParseLife("--certificate-life", options.certificate_life));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Membership> opened, Membership::Open(std::move(membership)));
  HONE_RETURN_IF_ERROR(opened->RenewOwn(absl::Now()));
  return opened;
}

// Waits for a signal and returns it. Meanwhile it renews the tracker's own certificate when that is due.
int AwaitSignal(const sigset_t& signals, const Membership* membership) {
  constexpr timespec kHour = {3600, 0};
  while (true) {
    const int signal = sigtimedwait(&signals, nullptr, &kHour);
    if (signal > 0) return signal;
    if (membership == nullptr) continue;
    const absl::Status renewed = membership->RenewOwn(absl::Now());
    if (!renewed.ok()) spdlog::error("cannot renew the tracker's certificate: {}", std::string(renewed.message()));
  }
}

absl::StatusOr<storage::TrackerFiles> FilesFrom(const Options& options) {
  storage::TrackerFiles files{options.records, options.state, options.pki};
  if (files.records.empty()) {
    HONE_ASSIGN_OR_RETURN(files.records, records::DefaultRecordsPath());
  }
  if (files.state.empty()) files.state = storage::AddressesBeside(files.records, files.certificates).state;
  return files;
}

absl::Status Backup(const Options& options) {
  HONE_ASSIGN_OR_RETURN(const storage::TrackerFiles files, FilesFrom(options));
  HONE_RETURN_IF_ERROR(storage::MakeBackup(files, options.backup_to));
  WriteStdout(fmt::format("copied to {}\n", options.backup_to));
  return absl::OkStatus();
}

absl::Status Restore(const Options& options) {
  HONE_ASSIGN_OR_RETURN(const storage::TrackerFiles files, FilesFrom(options));
  std::vector<std::filesystem::path> replaced;
  HONE_RETURN_IF_ERROR(storage::RestoreBackup(options.restore_from, files, &replaced));
  WriteStdout(fmt::format("restored from {}\n", options.restore_from));
  for (const std::filesystem::path& file : replaced) {
    WriteStdout(fmt::format("the previous file is kept as {}\n", file.string()));
  }
  return absl::OkStatus();
}

absl::StatusOr<FarmOptions> FarmOptionsFrom(const Options& options) {
  FarmOptions farm;
  farm.jobs.ended_max = options.keep_jobs;
  farm.devices.required_sandbox = options.required_sandbox;
  for (const std::string& prefix : options.notify_allowed) {
    if (ParseNoticeUrl(prefix).ok()) continue;
    return absl::InvalidArgumentError(
        fmt::format("--notify-allow {}: write the first part of a URL, such as https://hooks.lab/hone/", prefix));
  }
  farm.jobs.notify_allowed = options.notify_allowed;
  HONE_ASSIGN_OR_RETURN(farm.jobs.keep_ended, ParseLife("--keep-jobs-for", options.keep_jobs_for));
  return farm;
}

absl::Status Run(const Options& options, const sigset_t& signals) {
  HONE_ASSIGN_OR_RETURN(const storage::TrackerFiles files, FilesFrom(options));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<records::Store> store,
                        storage::OpenRecords(files.records, records::OpenMode::kReadWrite));
  HONE_ASSIGN_OR_RETURN(FarmState state, FarmState::Open(files.state, absl::Now()));
  HttpFrontEndOptions http_front_end{.listen = options.http,
                                     .pki = options.pki,
                                     .url_file = options.http_file,
                                     .secret = state.receipt_key(),
                                     .not_before = state.latest_start()};
  HONE_ASSIGN_OR_RETURN(const FarmOptions farm, FarmOptionsFrom(options));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Shell> shell, Shell::Start(farm, std::move(state), store.get()));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Membership> membership, OpenMembership(options, files.records));
  const std::filesystem::path folder = options.files.empty() ? files.state.string() + ".files" : options.files;
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<files::FileStore> contents,
      OpenFiles(folder, options.files_quota, [shell = shell.get()](const std::vector<std::string>& digests) {
        std::set<std::string> in_use;
        shell->WithFarm([&](const Farm& farm, absl::Time) { in_use = farm.FilesInUse(digests); });
        return in_use;
      }));
  const PackageSweeper sweeper(shell.get(), contents.get());
  const FileRights rights(shell.get(), contents.get());
  const auto services = MakeServices(shell.get(), store.get(), contents.get(), &rights, membership.get());
  Gate gate(membership.get());
  HONE_ASSIGN_OR_RETURN(const Listening listening, Listen(options, membership.get(), &gate, services));
  // The notifier runs without --notify-allow too: it closes the notices of jobs that were submitted when notices were
  // allowed.
  std::unique_ptr<Notifier> notifier =
      Notifier::Start(shell.get(), options.notify_allowed,
                      [](const std::string& url, const std::string& body, const std::stop_token& stop) -> absl::Status {
                        HONE_ASSIGN_OR_RETURN(const NoticeUrl parsed, ParseNoticeUrl(url));
                        return PostJson(parsed, body, kNoticeTimeout, stop);
                      });
  std::unique_ptr<HttpFrontEnd> http;
  if (!options.http.empty()) {
    http_front_end.tracker = listening.address;
    HONE_ASSIGN_OR_RETURN(http, HttpFrontEnd::Start(http_front_end, shell.get(), store.get(), contents.get(), &rights,
                                                    membership.get(), &gate));
  }
  HONE_RETURN_IF_ERROR(WritePortFile(options.port_file, listening.address));
  spdlog::info("tracker listens on {}, records in {}", listening.address, files.records.string());
  if (http != nullptr) {
    // The part after '#' is a secret key. With --http-file it is in that file, so it is kept out of the log.
    const std::string& url = http->url();
    spdlog::info("dashboard at {}", options.http_file.empty() ? url : url.substr(0, url.find('#')));
  }
  spdlog::info("stopping on signal {}", AwaitSignal(signals, membership.get()));
  if (http != nullptr) http->Stop();
  notifier.reset();
  shell->Stop();
  if (listening.socket != nullptr) listening.socket->Stop();
  // Every call has its answer by now. Only connections of clients that do not read are left.
  listening.server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  return absl::OkStatus();
}

void AddOptions(CLI::App& app, Options& options) {
  AddConfigOption(app, "", "file with lines OPTION = VALUE for these options; the command line overrides it");
  app.add_option("--listen", options.listen, "unix:/PATH, or HOST:PORT with TLS; port 0 takes a free one");
  app.add_option("--records", options.records, "records file (default: the user's)");
  app.add_option("--state", options.state, "file that keeps the jobs across restarts (default: RECORDS.farm)");
  app.add_option(
      "--files", options.files,
      "folder of the files of jobs: models, packages, inputs and outputs (default: the file of --state with .files)");
  app.add_option("--files-quota", options.files_quota,
                 "how much that folder may hold, such as 16GiB; files that open jobs need, or that were used within a "
                 "day, are not deleted for new ones (default: 16GiB)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->type_name("SIZE");
  app.add_option("--port-file", options.port_file, "file that receives the address once the tracker serves");
  app.add_option("--pki", options.pki, "folder of the farm's certificates that hone pki init made; with HOST:PORT");
  app.add_option(
      "--http", options.http,
      "HOST:PORT of dashboard, API and metrics: HTTPS with the certificates of --pki; without --pki HTTP, on "
      "127.0.0.1 only (default: none)");
  app.add_option("--http-file", options.http_file,
                 "file that receives the URL of --http, closed to other users; without --pki the URL holds a key");
  app.add_option("--certificate-life", options.certificate_life,
                 "how long certificates of agents and tuners are valid; agents and tuners renew them in time")
      ->capture_default_str();
  app.add_option("--keep-jobs", options.keep_jobs,
                 "how many ended jobs are kept, in addition to open jobs and those that ended lately")
      ->check(CLI::Range(0, 1000000000))
      ->capture_default_str();
  app.add_option("--keep-jobs-for", options.keep_jobs_for, "how long ended jobs are kept; records are kept for ever")
      ->capture_default_str();
  app.add_option("--notify-allow", options.notify_allowed,
                 "first part of the URLs that hone submit --notify may use, such as https://hooks.lab/hone/; may be "
                 "repeated (default: none)");
  const std::map<std::string, v1::SandboxLevel> levels = {{NameOf(v1::SANDBOX_LEVEL_NONE), v1::SANDBOX_LEVEL_NONE},
                                                          {NameOf(v1::SANDBOX_LEVEL_FILTER), v1::SANDBOX_LEVEL_FILTER},
                                                          {NameOf(v1::SANDBOX_LEVEL_WALL), v1::SANDBOX_LEVEL_WALL}};
  app.add_option("--require-sandbox", options.required_sandbox,
                 "none, filter or wall: give work only to devices whose agent reports at least this sandbox level "
                 "(docs/SANDBOX.md)")
      ->type_name("LEVEL")
      ->transform(CLI::CheckedTransformer(levels).description(""));
}

int Main(int argc, char** argv) {
  RaiseOpenFileLimit();  // each agent has a connection, and other hosts may open some
  Options options;
  CLI::App app("The tracker of a Hone farm: jobs, devices, records.", "hone-tracker");
  AddOptions(app, options);
  CLI::App* backup = app.add_subcommand("backup", "copy the databases, also while the tracker runs");
  backup->fallthrough();
  backup->add_option("FOLDER", options.backup_to, "the folder to make, which receives the copy")->required();
  CLI::App* restore = app.add_subcommand("restore", "replace the databases by a copy; the tracker must not run");
  restore->fallthrough();
  restore->add_option("FOLDER", options.restore_from, "a folder that backup made")->required();
  app.add_flag("--die-with-parent", options.die_with_parent, "end when the process that started this one ends");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!backup->parsed() && !restore->parsed() && options.listen.empty()) {
    std::fprintf(stderr, "hone-tracker: --listen is required; see hone-tracker --help\n");
    return 2;
  }
  if (options.die_with_parent) prctl(PR_SET_PDEATHSIG, SIGTERM);
  // The signals are blocked before any thread starts, so that only AwaitSignal receives them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const absl::Status status = backup->parsed()    ? Backup(options)
                              : restore->parsed() ? Restore(options)
                                                  : Run(options, signals);
  if (status.ok()) return 0;
  std::fprintf(stderr, "hone-tracker: %s\n", ReplaceControlCharacters(std::string(status.message())).c_str());
  return 1;
}

}  // namespace
}  // namespace hone::tracker

int main(int argc, char** argv) {
  hone::OpenClosedStandardStreams();
  hone::IgnoreFileSizeSignal();
  return hone::tracker::Main(argc, argv);
}
