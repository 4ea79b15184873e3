// SPDX-License-Identifier: Apache-2.0
#include "cli/kernel_sums.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/one_line.h"

namespace hone::cli {

std::vector<KernelSum> SumByKernel(const std::vector<KernelCall>& calls, double* all) {
  std::map<std::string, KernelSum> by_symbol;
  *all = 0;
  for (const KernelCall& call : calls) {
    KernelSum& sum = by_symbol[call.symbol];
    sum.symbol = call.symbol;
    ++sum.calls;
    sum.seconds += call.seconds;
    sum.nodes.insert(sum.nodes.end(), call.nodes.begin(), call.nodes.end());
    *all += call.seconds;
  }
  std::vector<KernelSum> sums;
  for (auto& [symbol, sum] : by_symbol) sums.push_back(std::move(sum));
  std::ranges::stable_sort(sums, [](const KernelSum& a, const KernelSum& b) { return a.seconds > b.seconds; });
  return sums;
}

std::string NodesText(const std::vector<std::string>& nodes) {
  std::string text;
  for (const std::string& node : nodes) text.append(text.empty() ? "" : ", ").append(OneLine(node));
  return text.empty() ? "-" : text;
}

}  // namespace hone::cli
