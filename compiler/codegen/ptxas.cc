// SPDX-License-Identifier: Apache-2.0
// Assembles PTX to machine code with NVIDIA's ptxas, which comes with a CUDA toolkit. It is optional: without it, the
// device's driver assembles the PTX when it loads it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <utility>

#include "base/read_file.h"
#include "base/run_program.h"
#include "base/temporary_folder.h"
#include "compiler/codegen/backend.h"

namespace hone::codegen {
namespace {

constexpr char kToolkitPtxas[] = "/usr/local/cuda/bin/ptxas";

// The largest number that stands directly before `what` in the text; 0 if there is none.
int64_t LargestBefore(std::string_view text, std::string_view what) {
  int64_t most = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) {
    size_t begin = at;
    while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
    int64_t number = 0;
    std::from_chars(text.data() + begin, text.data() + at, number);
    most = std::max(most, number);
  }
  return most;
}

}  // namespace

std::optional<Assembled> AssemblePtx(const std::string& object, const target::Target& target) {
  std::string assembler = FindProgram("ptxas");
  if (assembler.empty()) assembler = kToolkitPtxas;
  if (access(assembler.c_str(), X_OK) != 0) return std::nullopt;
  const absl::StatusOr<TemporaryFolder> scratch = TemporaryFolder::Create();
  if (!scratch.ok()) return std::nullopt;
  const std::string source = *scratch / "kernel.ptx", made = *scratch / "kernel.cubin";
  std::ofstream(source) << object;
  // Fails if this ptxas does not know the architecture.
  const absl::StatusOr<std::string> text = RunProgram({assembler, "-v", "-arch", target.cpu, source, "-o", made});
  if (!text.ok()) return std::nullopt;
  absl::StatusOr<std::string> machine_code = ReadWholeFile(made);
  if (!machine_code.ok()) return std::nullopt;
  return Assembled{{.registers = LargestBefore(*text, " registers"),
                    .shared_bytes = LargestBefore(*text, " bytes smem"),
                    .spill_bytes = std::max(LargestBefore(*text, " bytes spill stores"),
                                            LargestBefore(*text, " bytes spill loads"))},
                   *std::move(machine_code)};
}

}  // namespace hone::codegen
