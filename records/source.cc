// SPDX-License-Identifier: Apache-2.0
#include "records/source.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "base/status.h"

namespace hone::records {
namespace {

// The words of letters and digits in the text, in lower case.
std::set<std::string> Words(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.insert(word);
  return words;
}

// The share of words that two fingerprints have in common, from 0 to 1 (Dice coefficient).
double Similarity(std::string_view a, std::string_view b) {
  if (a == b) return 1;
  const std::set<std::string> left = Words(a);
  const std::set<std::string> right = Words(b);
  if (left.empty() || right.empty()) return 0;
  std::vector<std::string> common;
  std::set_intersection(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(common));
  return 2.0 * static_cast<double>(common.size()) / static_cast<double>(left.size() + right.size());
}

NearestRecord Judge(const Key& wanted, BestRecord best) {
  NearestRecord nearest;
  const Key& key = best.stored.record.key;
  nearest.device_similarity = Similarity(wanted.device_fingerprint, key.device_fingerprint);
  if (key.device_fingerprint != wanted.device_fingerprint) {
    nearest.closeness = Closeness::kOtherDevice;
  } else if (key.compiler_version != wanted.compiler_version) {
    nearest.closeness = Closeness::kSameDeviceOtherCompiler;
  }
  nearest.best = std::move(best);
  return nearest;
}

// Whether `a` is nearer to the key `wanted` than `b`. On a tie the same compiler is nearer, then the newer measurement,
// then the later row.
bool Nearer(const Key& wanted, const NearestRecord& a, const NearestRecord& b) {
  const auto rank = [&wanted](const NearestRecord& n) {
    const Record& record = n.best.stored.record;
    return std::tuple(-static_cast<int>(n.closeness), n.device_similarity,
                      record.key.compiler_version == wanted.compiler_version, record.measured_at, n.best.stored.row);
  };
  return rank(a) > rank(b);
}

}  // namespace

std::string_view ClosenessName(Closeness closeness) {
  switch (closeness) {
    case Closeness::kExact:
      return "exact";
    case Closeness::kSameDeviceOtherCompiler:
      return "same_device_other_compiler";
    case Closeness::kOtherDevice:
      return "other_device";
  }
  HONE_CHECK(!"a closeness without a name");
  return {};
}

std::optional<NearestRecord> Nearest(const Key& wanted, std::vector<BestRecord> winners) {
  std::optional<NearestRecord> nearest;
  for (BestRecord& winner : winners) {
    const Key& key = winner.stored.record.key;
    if (key.workload_digest != wanted.workload_digest || key.target != wanted.target) continue;
    NearestRecord judged = Judge(wanted, std::move(winner));
    if (!nearest.has_value() || Nearer(wanted, judged, *nearest)) nearest = std::move(judged);
  }
  return nearest;
}

void SortForDisplay(std::vector<BestRecord>& winners) {
  const auto order = [](const BestRecord& best) {
    const Record& r = best.stored.record;
    return std::tie(r.operator_label, r.key.workload_digest, r.key.target, r.key.device_fingerprint,
                    r.key.compiler_version);
  };
  std::sort(winners.begin(), winners.end(),
            [&](const BestRecord& a, const BestRecord& b) { return order(a) < order(b); });
}

}  // namespace hone::records
