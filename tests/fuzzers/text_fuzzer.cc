// SPDX-License-Identifier: Apache-2.0
// The texts that come with jobs and records, and those of hone-opt. What can be read and is printed can be read again,
// and is printed the same; and the verifier ends on it.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/kernel_interface.h"
#include "base/status.h"
#include "compiler/graph/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"

namespace {

template <typename Parse, typename Print>
void RoundTrip(std::string_view text, const Parse& parse, const Print& print) {
  const auto first = parse(text);
  if (!first.ok()) return;
  const std::string printed = print(*first);
  const auto second = parse(printed);
  HONE_CHECK(second.ok());
  HONE_CHECK(print(*second) == printed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;  // NOLINT: one function
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  RoundTrip(text, ir::ParseFunc, [](const ir::Func& func) { return ir::Print(func); });
  if (const auto func = ir::ParseFunc(text); func.ok()) static_cast<void>(ir::Verify(*func).ok());
  RoundTrip(text, ir::ParseWorkload, [](const ir::Workload& workload) { return ir::Print(workload); });
  RoundTrip(text, graph::ParseGraph, [](const graph::Graph& graph) { return graph::Print(graph); });
  RoundTrip(text, schedule::ParseSchedule, [](const schedule::Schedule& steps) { return schedule::Print(steps); });
  RoundTrip(text, target::ParseTarget, [](const target::Target& target) { return target::Print(target); });
  std::string error;
  ParseKernelInterface(std::string(text), &error);
  return 0;
}
