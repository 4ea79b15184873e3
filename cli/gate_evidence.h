// SPDX-License-Identifier: Apache-2.0
// The evidence of `hone gate`: what was compared, every pair of times, and the verdict, as a document that can be
// checked later without the farm.
//
// The document is JSON with `format`, `statement`, `signature` and `certificate`. The statement is itself a JSON text,
// so that the signed bytes are exact; the signature and the certificate are those of the member who ran the gate, and
// empty where none has joined a farm. Pure. Start at MakeStatement.
#ifndef HONE_CLI_GATE_EVIDENCE_H_
#define HONE_CLI_GATE_EVIDENCE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/paired_ratio.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// One side of a gate: a package, and its times.
struct GateSide {
  std::string name, digest;     // of the package file; the digest is SHA-256 in hex
  std::vector<double> seconds;  // the k-th is paired with the k-th of the other side
};

struct GateResult {
  std::string device;  // "board/cpu"; "" = this machine
  std::string target;  // of the program that ran
  GateSide baseline, package;
  double slower_than = 0.03;  // the limit, as a fraction
  PairedRatio ratio = {};     // time of the package / time of the baseline
  absl::Time time;

  bool IsSlower() const { return ratio.IsSlowerBy(slower_than); }
};

// What `hone gate --json` prints, without the times.
nlohmann::ordered_json GateToJson(const GateResult& result);
std::string GateToText(const GateResult& result);

// The statement as JSON text, with the times.
std::string MakeStatement(const GateResult& result);
// Reads a statement and compares the times again. kDataLoss: it is no statement, or its verdict does not follow from
// its times.
absl::StatusOr<GateResult> ReadStatement(std::string_view text);

}  // namespace hone::cli

#endif  // HONE_CLI_GATE_EVIDENCE_H_
