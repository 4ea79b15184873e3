// SPDX-License-Identifier: Apache-2.0
#include "cli/gate_evidence.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/median.h"
#include "cli/output.h"
#include "cli/quantity_text.h"

namespace hone::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRounding = 1e-9;  // between a ratio and the same ratio computed on another machine

Json SideToJson(const GateSide& side) {
  return {{"name", side.name}, {"digest", side.digest}, {"median_ms", Median(side.seconds) * 1e3}};
}

GateSide SideFromJson(const Json& json) {
  return {json.at("name").get<std::string>(), json.at("digest").get<std::string>(),
          json.at("seconds").get<std::vector<double>>()};
}

std::string Percent(double ratio) {
  const double percent = 100 * (ratio - 1);
  return fmt::format("{:.2f}% {}", std::abs(percent), percent < 0 ? "faster" : "slower");
}

}  // namespace

nlohmann::ordered_json GateToJson(const GateResult& result) {
  return {{"device", result.device},
          {"target", result.target},
          {"time", absl::FormatTime(absl::RFC3339_sec, result.time, absl::UTCTimeZone())},
          {"package", SideToJson(result.package)},
          {"baseline", SideToJson(result.baseline)},
          {"pairs", result.ratio.pairs},
          {"ratio", result.ratio.ratio},
          {"ratio_low", result.ratio.low},
          {"ratio_high", result.ratio.high},
          {"slower_than", result.slower_than},
          {"slower", result.IsSlower()}};
}

std::string GateToText(const GateResult& result) {
  return Row("{} {}: {} is {} than {} (98% sure: {} to {}; {} pairs, medians {} and {}){}",
             result.IsSlower() ? "slower" : "passed", result.device.empty() ? "here" : "on " + result.device,
             result.package.name, Percent(result.ratio.ratio), result.baseline.name, Percent(result.ratio.low),
             Percent(result.ratio.high), result.ratio.pairs, Latency(Median(result.package.seconds)),
             Latency(Median(result.baseline.seconds)),
             fmt::format("; the limit is {}", Percent(1 + result.slower_than)));
}

std::string MakeStatement(const GateResult& result) {
  Json json = GateToJson(result);
  json["package"]["seconds"] = result.package.seconds;
  json["baseline"]["seconds"] = result.baseline.seconds;
  return json.dump();
}

absl::StatusOr<GateResult> ReadStatement(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  GateResult result;
  double ratio = 0;
  bool slower = false;
  try {  // the library's only way to report a missing or wrong field
    result.device = json.at("device").get<std::string>();
    result.target = json.at("target").get<std::string>();
    result.package = SideFromJson(json.at("package"));
    result.baseline = SideFromJson(json.at("baseline"));
    result.slower_than = json.at("slower_than").get<double>();
    ratio = json.at("ratio").get<double>();
    slower = json.at("slower").get<bool>();
    std::string error;
    if (!absl::ParseTime(absl::RFC3339_sec, json.at("time").get<std::string>(), &result.time, &error)) {
      return absl::DataLossError(fmt::format("the statement's time cannot be read: {}", error));
    }
  } catch (const Json::exception& error) {
    return absl::DataLossError(fmt::format("it is no statement of hone gate: {}", error.what()));
  }
  const std::optional<PairedRatio> again = ComparePaired(result.baseline.seconds, result.package.seconds);
  if (!again.has_value()) return absl::DataLossError("the statement has too few times, or times that are not positive");
  result.ratio = *again;
  if (std::abs(again->ratio - ratio) <= kRounding * ratio && result.IsSlower() == slower) return result;
  return absl::DataLossError(
      fmt::format("the statement's verdict does not follow from its times: it says {} and {}, "
                  "but the times say {} and {}",
                  ratio, slower ? "slower" : "not slower", again->ratio, result.IsSlower() ? "slower" : "not slower"));
}

}  // namespace hone::cli
