// SPDX-License-Identifier: Apache-2.0
// An ONNX file, from its bytes to the plan of what would be compiled.
#include <cstdint>
#include <string_view>

#include "compiler/graph/onnx_import.h"
#include "compiler/graph/passes/pipeline.h"
#include "compiler/graph/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto graph = hone::graph::ImportOnnxBytes(bytes, "/nowhere", {});
  if (!graph.ok()) return 0;
  if (hone::graph::RunPasses(*graph).ok()) hone::graph::BuildPlan(*graph).IgnoreError();
  return 0;
}
