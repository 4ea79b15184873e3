// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "base/identity.h"
#include "base/parse_duration.h"
#include "base/shell_word.h"
#include "base/status.h"
#include "cli/call_tracker.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/tracker_command.h"
#include "cli/tracker_options.h"
#include "hone/v1/identity.grpc.pb.h"
#include "pki/identity_folder.h"
#include "pki/join.h"
#include "pki/token.h"
#include "pki/tracker_folder.h"
#include "proto/convert.h"
#include "transport/transport.h"

namespace hone::cli {
namespace {

using nlohmann::ordered_json;

struct IdentityOptions {
  TrackerOptions tracker;
  std::string role, name, expires = "1h", id, token, token_file, dir;
  std::vector<std::string> hosts;
  int uses = 1, limit = 100;
  bool json = false;
};

// --- Commands that need no tracker ----------------------------------------------------------------------------------

absl::Status Init(IdentityOptions& options) {
  const absl::StatusOr<std::string> host = HostOf(options.tracker.address);
  if (!host.ok()) return UsageError(fmt::format("--tracker {}", std::string(host.status().message())));
  options.hosts.insert(options.hosts.begin(), *host);
  const absl::Time now = absl::Now();
  HONE_RETURN_IF_ERROR(pki::MakeTrackerFolder(options.dir, options.hosts, now));
  HONE_ASSIGN_OR_RETURN(const std::optional<pki::Authority> authority, pki::ReadAuthority(options.dir));
  const std::filesystem::path admin = std::filesystem::path(options.dir) / "admin";
  HONE_RETURN_IF_ERROR(
      pki::IssueIdentity(*authority, admin, {Role::kAdmin, options.name}, options.tracker.address, now));
  if (options.json) {
    return PrintJson({{"dir", options.dir},
                      {"tracker", options.tracker.address},
                      {"hosts", options.hosts},
                      {"admin", options.name},
                      {"identity", std::filesystem::absolute(admin).string()}});
  }
  return PrintText(
      fmt::format(R"(made the authority of a new farm in {0}; keep that folder where only the tracker reads it
start the tracker:  hone-tracker --listen {1} --pki {4}
admin '{2}':  export HONE_IDENTITY={3}
let a machine join:  hone token create --role agent
)",
                  options.dir, options.tracker.address, options.name,
                  ShellWord(std::filesystem::absolute(admin).string()), ShellWord(options.dir)));
}

absl::Status PrintIdentity(const std::string& role, const std::string& name, const std::filesystem::path& folder) {
  return PrintJson({{"role", role}, {"name", name}, {"identity", std::filesystem::absolute(folder).string()}});
}

absl::StatusOr<Role> GivenRole(const IdentityOptions& options) {
  if (const std::optional<Role> role = ParseRole(options.role)) return *role;
  return UsageError(
      fmt::format("--role {}: there is no such role; give agent, tuner, client, viewer or admin", options.role));
}

absl::Status Issue(IdentityOptions& options) {
  HONE_ASSIGN_OR_RETURN(const Role role, GivenRole(options));
  HONE_ASSIGN_OR_RETURN(const std::optional<pki::Authority> authority, pki::ReadAuthority(options.dir));
  if (!authority.has_value()) {
    return absl::NotFoundError(fmt::format("there is no authority.key in {}; hone pki init makes one", options.dir));
  }
  HONE_RETURN_IF_ERROR(pki::IssueIdentity(*authority, options.tracker.identity, {role, options.name},
                                          options.tracker.address, absl::Now()));
  if (options.json) return PrintIdentity(options.role, options.name, options.tracker.identity);
  return PrintText(fmt::format("{} '{}' in {}\n", options.role, options.name, options.tracker.identity));
}

absl::Status Join(IdentityOptions& options) {
  absl::StatusOr<pki::Token> token = pki::ReadToken(options.token, options.token_file);
  if (absl::IsInvalidArgument(token.status())) return UsageError(std::string(token.status().message()));
  HONE_RETURN_IF_ERROR(token.status());
  std::filesystem::path folder = options.tracker.identity;
  if (folder.empty()) {
    HONE_ASSIGN_OR_RETURN(folder, pki::DefaultFolder(token->role));
  }
  const std::string role(Name(token->role));
  const bool person = token->role != Role::kAgent && token->role != Role::kTuner;
  HONE_ASSIGN_OR_RETURN(
      const std::string name,
      pki::Join(folder,
                {*std::move(token), options.name, person ? UserName() : HostName(), {options.tracker.address, {}}}));
  if (options.json) return PrintIdentity(role, name, folder);
  return PrintText(fmt::format("joined as {} '{}'; the certificate is in {}\n", role, name, folder.string()));
}

// --- Commands that call the tracker as an administrator -------------------------------------------------------------

template <typename Request, typename Response>
using Method = grpc::Status (v1::IdentityService::Stub::*)(grpc::ClientContext*, const Request&, Response*);

template <typename Request, typename Response>
absl::StatusOr<Response> Call(IdentityOptions& options, const Request& request, Method<Request, Response> method) {
  if (SocketPath(options.tracker.address)) {
    return UsageError(fmt::format(
        "the tracker {} listens on a socket, so it has no identities, tokens or audit log: every user who can open the "
        "socket may do everything; use the tracker of a farm with certificates (hone pki init)",
        options.tracker.address));
  }
  HONE_ASSIGN_OR_RETURN(const auto channel, options.tracker.Connect());
  const auto stub = v1::IdentityService::NewStub(channel);
  return CallTracker(*stub, method, request, options.tracker.address);
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixSeconds(time.seconds()), absl::LocalTimeZone());
}

std::string StateOf(const v1::Token& token) {
  if (token.revoked()) return "revoked";
  if (token.uses_left() == 0) return "used";
  return absl::FromUnixSeconds(token.expires().seconds()) <= absl::Now() ? "expired" : "good";
}

absl::Status CreateToken(IdentityOptions& options) {
  HONE_RETURN_IF_ERROR(GivenRole(options).status());
  v1::CreateTokenRequest request;
  request.set_role(options.role);
  request.set_name(options.name);
  request.set_uses(options.uses);
  const std::optional<absl::Duration> life = ParsePositiveDuration(options.expires);
  if (!life.has_value()) {
    return UsageError(fmt::format("--expires {}: write a duration such as 30m, 12h or 7d", options.expires));
  }
  *request.mutable_time_to_live() = ToProto(*life);
  HONE_ASSIGN_OR_RETURN(const auto created, Call(options, request, &v1::IdentityService::Stub::CreateToken));
  const std::optional<Role> role = ParseRole(created.token().role());
  if (!role.has_value())
    return absl::InternalError("the tracker made a token for a role that this hone does not know; update hone");
  const std::string text = pki::Print({*role, created.secret(), created.fingerprint()});
  if (options.json)
    return PrintJson({{"token", text}, {"id", created.token().id()}, {"tracker", options.tracker.address}});
  const char* command = *role == Role::kAgent ? "hone-agent join" : "hone join";
  return PrintText(fmt::format(
      "token {}, valid until {}, shown only once; on the machine that should join, run:\n{} {} --token-file -\n"
      "and give it this input:\n{}\n",
      created.token().id(), TimeText(created.token().expires()), command, options.tracker.address, text));
}

absl::Status ListTokens(IdentityOptions& options) {
  HONE_ASSIGN_OR_RETURN(const auto list,
                        Call(options, v1::ListTokensRequest(), &v1::IdentityService::Stub::ListTokens));
  ordered_json document = ordered_json::array();
  std::string text = fmt::format("{:<9} {:<8} {:<16} {:<8} {:>4}  {:<19}  {}\n", "token", "role", "name", "state",
                                 "uses", "expires", "by");
  for (const v1::Token& t : list.tokens()) {
    document.push_back({{"id", t.id()},
                        {"role", t.role()},
                        {"name", t.name()},
                        {"state", StateOf(t)},
                        {"uses_left", t.uses_left()},
                        {"expires", t.expires().seconds()},
                        {"by", t.created_by()}});
    text += Row("{:<9} {:<8} {:<16} {:<8} {:>4}  {:<19}  {}", t.id(), t.role(), t.name().empty() ? "any" : t.name(),
                StateOf(t), t.uses_left(), TimeText(t.expires()), t.created_by());
  }
  return options.json ? PrintJson({{"tokens", document}}) : PrintText(text);
}

absl::Status RevokeToken(IdentityOptions& options) {
  v1::RevokeTokenRequest request;
  request.set_id(options.id);
  HONE_RETURN_IF_ERROR(Call(options, request, &v1::IdentityService::Stub::RevokeToken).status());
  return options.json ? PrintJson({{"id", options.id}, {"revoked", true}}) : absl::OkStatus();
}

absl::Status ListIdentities(IdentityOptions& options) {
  HONE_ASSIGN_OR_RETURN(const auto list,
                        Call(options, v1::ListIdentitiesRequest(), &v1::IdentityService::Stub::ListIdentities));
  ordered_json document = ordered_json::array();
  std::string text = fmt::format("{:<24} {:<8} {:<8} {:<19}  {}\n", "name", "role", "state", "expires", "vouched by");
  for (const v1::Identity& i : list.identities()) {
    const bool over = absl::FromUnixSeconds(i.expires().seconds()) <= absl::Now();
    const std::string state = i.revoked() ? "revoked" : over ? "expired" : "good";
    document.push_back({{"name", i.name()},
                        {"role", i.role()},
                        {"state", state},
                        {"serial", i.serial()},
                        {"issued", i.issued().seconds()},
                        {"expires", i.expires().seconds()},
                        {"vouched_by", i.vouched_by()}});
    text += Row("{:<24} {:<8} {:<8} {:<19}  {}", i.name(), i.role(), state, TimeText(i.expires()), i.vouched_by());
  }
  return options.json ? PrintJson({{"identities", document}}) : PrintText(text);
}

absl::Status RevokeIdentity(IdentityOptions& options) {
  v1::RevokeIdentityRequest request;
  request.set_name(options.name);
  HONE_ASSIGN_OR_RETURN(const auto done, Call(options, request, &v1::IdentityService::Stub::RevokeIdentity));
  if (options.json) return PrintJson({{"name", options.name}, {"certificates", done.certificates()}});
  if (done.certificates() > 0) return absl::OkStatus();
  PrintMessage(
      fmt::format("the tracker has no valid certificate of '{}' on record; the name is revoked, so any such "
                  "certificate is refused\n",
                  options.name));
  return absl::OkStatus();
}

absl::Status Audit(IdentityOptions& options) {
  v1::ListAuditRequest request;
  request.set_limit(options.limit);
  HONE_ASSIGN_OR_RETURN(const auto list, Call(options, request, &v1::IdentityService::Stub::ListAudit));
  ordered_json document = ordered_json::array();
  std::string text;
  for (const v1::AuditEntry& e : list.entries()) {
    document.push_back({{"number", e.number()},
                        {"time", e.time().seconds()},
                        {"role", e.role()},
                        {"name", e.name()},
                        {"peer", e.peer()},
                        {"method", e.method()},
                        {"object", e.object()},
                        {"result", e.result()}});
    const std::string who = e.name().empty() ? "(unknown)" : e.role() + " " + e.name();
    text +=
        Row("{}  {:<20} {:<32} {:<20} {}  {}", TimeText(e.time()), who, e.method(), e.object(), e.result(), e.peer());
  }
  return options.json ? PrintJson({{"entries", document}}) : PrintText(text);
}

void AddJsonTo(CLI::App* command, IdentityOptions& options) {
  command->add_flag("--json", options.json, "print one JSON document and nothing else");
}

void AddPkiCommands(CLI::App& app, absl::Status* result) {
  CLI::App* pki =
      app.add_subcommand("pki", "the certificate authority of a farm, and certificates made without a tracker");
  pki->require_subcommand(1);
  auto options = std::make_shared<IdentityOptions>();
  options->name = "admin";
  CLI::App* init = pki->add_subcommand(
      "init", "make a farm's authority, the certificate of its tracker, and that of its first admin");
  init->add_option("--dir", options->dir, "folder to make; the tracker takes it as --pki")->required();
  init->add_option("--tracker", options->tracker.address, "HOST:PORT at which the farm will reach the tracker")
      ->required();
  init->add_option("--host", options->hosts, "another name or address of the tracker; may be repeated");
  init->add_option("--admin", options->name, "name of the first admin")->capture_default_str();
  AddJsonTo(init, *options);
  init->callback([options, result] { *result = Init(*options); });

  options = std::make_shared<IdentityOptions>();
  CLI::App* issue = pki->add_subcommand(
      "issue", "make an identity with the authority's key, for example for an admin who lost his key");
  issue->add_option("--dir", options->dir, "folder that hone pki init made")->required();
  issue->add_option("--role", options->role, "agent, tuner, client, viewer or admin")->required();
  issue->add_option("--name", options->name, "name of the identity, unique in the farm")->required();
  issue->add_option("--identity", options->tracker.identity, "folder to make")->required();
  issue
      ->add_option("--tracker", options->tracker.address,
                   "HOST:PORT of the tracker, written into the folder's settings")
      ->required();
  AddJsonTo(issue, *options);
  issue->callback([options, result] { *result = Issue(*options); });
}

void AddTokenCommands(CLI::App& app, absl::Status* result) {
  CLI::App* token = app.add_subcommand("token", "tokens with which machines and users join a farm");
  token->require_subcommand(1);
  auto options = std::make_shared<IdentityOptions>();
  CLI::App* create =
      AddTrackerCommand(*token, "create", "make a token; it is shown only once", options, CreateToken, result);
  create->add_option("--role", options->role, "agent, tuner, client, viewer or admin")->required();
  create->add_option("--name", options->name, "the only name that may join with the token")->check(NotEmpty);
  create->add_option("--expires", options->expires, "how long the token is valid")->capture_default_str();
  create->add_option("--uses", options->uses, "how often the token can be used")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  AddTrackerCommand(*token, "list", "list the tokens of the last 30 days", std::make_shared<IdentityOptions>(),
                    ListTokens, result);
  options = std::make_shared<IdentityOptions>();
  AddTrackerCommand(*token, "revoke", "make a token invalid", options, RevokeToken, result)
      ->add_option("token", options->id, "id of the token, as hone token list shows it")
      ->required();
}

}  // namespace

void AddIdentityCommands(CLI::App& app, absl::Status* result) {
  AddPkiCommands(app, result);
  AddTokenCommands(app, result);
  auto options = std::make_shared<IdentityOptions>();
  CLI::App* join = app.add_subcommand("join", "get a certificate of a farm, with a token from one of its admins");
  join->add_option("tracker", options->tracker.address, "HOST:PORT of the tracker")->required();
  join->add_option("--token-file", options->token_file,
                   "file with the token that hone token create printed; - is standard input");
  join->add_option("--token", options->token,
                   "the token itself; other users of this machine can read it while the command runs")
      ->envname("HONE_TOKEN");
  join->add_option("--name", options->name,
                   "name of this identity, unique in the farm (default: made from the name of the user or host)")
      ->check(NotEmpty);
  join->add_option("--identity", options->tracker.identity,
                   "folder for the identity (default: ~/.config/hone/user, or tuner)")
      ->check(NotEmpty);
  AddJsonTo(join, *options);
  join->callback([options, result] { *result = Join(*options); });

  CLI::App* identity = app.add_subcommand("identity", "the members of a farm and their certificates");
  identity->require_subcommand(1);
  AddTrackerCommand(*identity, "list", "list all certificates", std::make_shared<IdentityOptions>(), ListIdentities,
                    result);
  options = std::make_shared<IdentityOptions>();
  AddTrackerCommand(
      *identity, "revoke",
      "revoke all certificates of a name, and all tokens for it or made by it, at once; the name is then free", options,
      RevokeIdentity, result)
      ->add_option("name", options->name, "name, as hone identity list shows it")
      ->required();

  options = std::make_shared<IdentityOptions>();
  AddTrackerCommand(app, "audit", "list changes at a tracker and refused calls, newest first", options, Audit, result)
      ->add_option("--limit", options->limit, "number of entries")
      ->capture_default_str();
}

}  // namespace hone::cli
