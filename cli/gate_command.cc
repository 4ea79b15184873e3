// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "base/paired_ratio.h"
#include "base/read_file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/device_run.h"
#include "cli/gate_evidence.h"
#include "cli/model_packages.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/timed_run_options.h"
#include "deploy/package/atomic_file.h"
#include "deploy/run/timed_runs.h"
#include "pki/certificates.h"
#include "pki/identity_folder.h"
#include "pki/signature.h"
#include "transport/farm_identity.h"

namespace hone::cli {
namespace {

using nlohmann::ordered_json;

constexpr char kEvidenceFormat[] = "hone-gate 1";

struct GateOptions {
  TimedRunOptions runs;
  DeviceRunOptions device;
  std::string baseline, evidence, check, authority;
  double slower_than = 3;  // percent
  bool has_limit = false;  // whether slower_than was given
};

absl::StatusOr<GateSide> SideOf(const std::string& path) {
  absl::StatusOr<std::string> digest = DigestOfFile(path);
  if (!digest.ok()) return Annotate(digest.status(), "cannot read " + path);
  return GateSide{FileNameOf(path), *std::move(digest), {}};
}

// Runs both packages in turns on this machine.
absl::Status MeasureHere(const GateOptions& options, GateResult& result) {
  HONE_RETURN_IF_ERROR(CheckInputOptions(options.runs));
  ModelPackages models(options.runs.ForModel(), options.device.tracker);
  HONE_ASSIGN_OR_RETURN(const std::string baseline, models.ForThisMachine(options.baseline));
  HONE_ASSIGN_OR_RETURN(const std::string measured, models.ForThisMachine(options.runs.package));
  HONE_ASSIGN_OR_RETURN(result.baseline, SideOf(baseline));
  HONE_ASSIGN_OR_RETURN(result.package, SideOf(measured));
  std::vector<run::LoadedPackage> packages;
  for (const std::string& path : {baseline, measured}) {
    HONE_ASSIGN_OR_RETURN(run::LoadedPackage package, LoadPackage(path, options.runs.threads, options.runs.fallback));
    HONE_RETURN_IF_ERROR(SetInputs(package, options.runs));
    packages.push_back(std::move(package));
  }
  result.target = packages.back().target();
  const std::vector<run::Run> turns = {[&] { return packages[0].Run(); }, [&] { return packages[1].Run(); }};
  return run::TimeInTurns(options.runs.seconds, turns, [&](size_t side, double seconds) {
    (side == 0 ? result.baseline : result.package).seconds.push_back(seconds);
  });
}

// The same on a device of a farm, in one visit.
absl::Status MeasureThere(GateOptions& options, GateResult& result) {
  if (options.device.devices.size() > 1) return UsageError("--device: a gate is for one device; give one --device");
  HONE_ASSIGN_OR_RETURN(v1::RunTask task, TaskOf(options.runs));
  HONE_ASSIGN_OR_RETURN(
      const std::vector<v1::Job> jobs,
      RunOnDevices(options.device, {{options.baseline, options.runs.package}, options.runs.input, std::move(task)}));
  const v1::JobProgress& progress = jobs.front().progress();
  result.device = progress.run_device();
  result.target = progress.run().packages(1).target();
  const auto side = [&](int index) {
    const v1::FileName& file = jobs.front().spec().run().packages(index);
    const auto& seconds = progress.run().packages(index).seconds();
    return GateSide{file.name(), file.digest(), {seconds.begin(), seconds.end()}};
  };
  result.baseline = side(0);
  result.package = side(1);
  return absl::OkStatus();
}

// The document with the signature of the member whose identity folder this is; unsigned where there is none.
absl::StatusOr<std::string> Evidence(const GateOptions& options, const GateResult& result) {
  const std::string statement = MakeStatement(result);
  ordered_json document = {
      {"format", kEvidenceFormat}, {"statement", statement}, {"signature", ""}, {"certificate", ""}};
  std::filesystem::path folder = options.device.tracker.identity;
  if (folder.empty()) {
    HONE_ASSIGN_OR_RETURN(folder, pki::DefaultFolder(Role::kClient));
  }
  const absl::StatusOr<std::string> identity = pki::ReadFile(pki::FilesIn(folder).identity);
  if (identity.ok()) {
    HONE_ASSIGN_OR_RETURN(document["signature"], pki::SignText(statement, *identity));
    const size_t certificate = identity->find("-----BEGIN CERTIFICATE-----");
    if (certificate == std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("{} has no certificate; join the farm again: hone join", folder.string()));
    }
    document["certificate"] = identity->substr(certificate);
  } else if (!absl::IsNotFound(identity.status())) {
    return identity.status();
  } else {
    PrintMessage("warning: the evidence is not signed, because you have joined no farm (hone join)\n");
  }
  return document.dump(2) + "\n";
}

absl::Status Gate(GateOptions& options) {
  if (options.baseline.empty()) return UsageError("--baseline: give the package to compare with");
  if (!options.evidence.empty()) {
    HONE_RETURN_IF_ERROR(CheckNotAnInput(options.evidence, {options.runs.package, options.baseline}));
    HONE_RETURN_IF_ERROR(CheckCanCreate(options.evidence));
  }
  GateResult result;
  result.slower_than = options.slower_than / 100;
  result.time = absl::Now();
  HONE_RETURN_IF_ERROR(options.device.given() ? MeasureThere(options, result) : MeasureHere(options, result));
  const std::optional<PairedRatio> ratio = ComparePaired(result.baseline.seconds, result.package.seconds);
  if (!ratio.has_value()) {
    return absl::FailedPreconditionError(
        fmt::format("{} pairs of runs are too few to compare; give more --seconds, for at least {} runs of each",
                    result.package.seconds.size(), kPairsMin));
  }
  result.ratio = *ratio;
  if (!options.evidence.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::string text, Evidence(options, result));
    HONE_RETURN_IF_ERROR(package::WriteTextFile(text, options.evidence));
  }
  HONE_RETURN_IF_ERROR(options.runs.json ? PrintJson(GateToJson(result)) : PrintText(GateToText(result)));
  if (!result.IsSlower()) return absl::OkStatus();
  return SlowerError(fmt::format("{} is slower than {} by more than {}%", result.package.name, result.baseline.name,
                                 options.slower_than));
}

// The name of the member whose certificate it is. kPermissionDenied: the certificate does not let a person use the
// farm, or did not hold at `time`. A certificate that was revoked since is not told from others.
absl::StatusOr<std::string> SignerOf(const std::string& certificate, absl::Time time) {
  HONE_ASSIGN_OR_RETURN(const pki::CertificateFacts facts, pki::ReadCertificate(certificate));
  HONE_ASSIGN_OR_RETURN(const FarmIdentity identity, IdentityFromUris(facts.uris));
  if (identity.role != Role::kClient && identity.role != Role::kAdmin) {
    return absl::PermissionDeniedError(
        fmt::format("the evidence is signed by {} '{}', who runs no gates", Name(identity.role), identity.name));
  }
  if (facts.from <= time && time <= facts.until) return fmt::format("{} '{}'", Name(identity.role), identity.name);
  return absl::PermissionDeniedError(
      fmt::format("the certificate of '{}' was not valid at the time of the gate", identity.name));
}

// kFailedPrecondition: the evidence is about other packages than those given.
absl::Status CheckPackages(const GateOptions& options, const GateResult& result) {
  for (const auto& [path, side] :
       {std::pair(&options.runs.package, &result.package), std::pair(&options.baseline, &result.baseline)}) {
    if (path->empty()) continue;
    HONE_ASSIGN_OR_RETURN(const GateSide given, SideOf(*path));
    if (given.digest == side->digest) continue;
    return absl::FailedPreconditionError(
        fmt::format("{} is not the package of the evidence, {} with digest {}", *path, side->name, side->digest));
  }
  return absl::OkStatus();
}

// Checks the evidence of an earlier gate, and has the exit code of that gate.
absl::Status CheckEvidence(const GateOptions& options) {
  const absl::StatusOr<std::string> text = ReadWholeFile(options.check);
  if (!text.ok()) return Annotate(text.status(), "cannot read " + options.check);
  const ordered_json document = ordered_json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto field = [&](const char* name) {
    return document.is_object() && document.contains(name) && document[name].is_string()
               ? document[name].get<std::string>()
               : std::string();
  };
  if (field("format") != kEvidenceFormat) return absl::DataLossError(options.check + " is no evidence of hone gate");
  HONE_ASSIGN_OR_RETURN(GateResult result, ReadStatement(field("statement")));
  if (options.has_limit) result.slower_than = options.slower_than / 100;
  const std::string certificate = field("certificate");
  HONE_RETURN_IF_ERROR(
      Annotate(pki::CheckSignature(field("statement"), field("signature"), certificate), options.check));
  HONE_ASSIGN_OR_RETURN(const std::string authority, pki::ReadFile(options.authority));
  if (!pki::IsSignedBy(certificate, authority)) {
    return absl::PermissionDeniedError(
        fmt::format("{}: who signed it is no member of the farm of {}", options.check, options.authority));
  }
  HONE_ASSIGN_OR_RETURN(const std::string signer, SignerOf(certificate, result.time));
  HONE_RETURN_IF_ERROR(CheckPackages(options, result));
  PrintMessage(fmt::format("the device and the times are the statement of {}\n", signer));
  HONE_RETURN_IF_ERROR(options.runs.json ? PrintJson(GateToJson(result)) : PrintText(GateToText(result)));
  if (!result.IsSlower()) return absl::OkStatus();
  return SlowerError(fmt::format("{} was slower than {} by more than {}%", result.package.name, result.baseline.name,
                                 100 * result.slower_than));
}

}  // namespace

void AddGateCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<GateOptions>();
  CLI::App* command = app.add_subcommand("gate", "tell whether a package is slower than another, for build scripts");
  options->runs.seconds = 10;
  options->runs.AddTo(command);
  options->device.AddTo(command);
  command->get_option("PACKAGE")->required(false);
  command->add_option("--baseline", options->baseline, "the package or model to compare with; both run in turns")
      ->check(NotEmpty);
  CLI::Option* limit =
      command
          ->add_option("--slower-than", options->slower_than,
                       "the limit in percent: exit code 4 if it is sure (99%) that the package is slower by more")
          ->transform(CLI::Validator(WithoutPercentSign, "", "percent"))
          ->check(CLI::Range(0.0, 1000.0))
          ->check(NoNan)
          ->capture_default_str();
  command->add_option("--evidence", options->evidence, "write all times and the verdict to this file, signed")
      ->check(NotEmpty)
      ->check(NotDash);
  CLI::Option* check =
      command->add_option("--check", options->check, "check the evidence in this file instead")->check(NotEmpty);
  CLI::Option* authority =
      command->add_option("--authority", options->authority, "with --check: the certificate of the farm's authority")
          ->check(NotEmpty)
          ->needs(check);
  check->needs(authority);
  command->callback([options, limit, result] {
    options->has_limit = limit->count() > 0;
    if (!options->check.empty()) {
      *result = CheckEvidence(*options);
    } else if (options->runs.package.empty()) {
      *result = UsageError("give a PACKAGE, or --check with a file of evidence");
    } else {
      *result = Gate(*options);
    }
  });
}

}  // namespace hone::cli
