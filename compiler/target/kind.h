// SPDX-License-Identifier: Apache-2.0
// The table of target kinds: how the targets of each kind are parsed, printed and detected.
//
// A new kind needs an enumerator, a case in EntryOf (the compiler rejects a missing one), and a file with its entry,
// such as opencl.cc. What a target can do is described by the capabilities in Target; other rooms ask for these.
// KindEntry is internal to this folder; other rooms call ParseTarget, Print and the other functions in target.h.
#ifndef HONE_COMPILER_TARGET_KIND_H_
#define HONE_COMPILER_TARGET_KIND_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/execution.h"

namespace hone {

struct Roofline;  // base/roofline.h

}  // namespace hone

namespace hone::target {

enum class Kind : uint8_t { kCpu, kOpenCl, kCuda };

struct Target;
struct TargetText;
struct Number;

struct KindEntry {
  ExecutionFacts facts;                     // how its kernels run
  std::span<const std::string_view> words;  // possible first words of a target's text
  // Returns a typical target of the kind. Does not inspect this machine.
  Target (*typical)();
  // Parses a text. What it does not state comes from a device of this machine, or else from the typical target.
  absl::StatusOr<Target> (*parse)(const TargetText& text);
  // Returns the canonical text without the numeric options.
  std::string (*print)(const Target& target);
  // Returns the numeric options in canonical order, bound to the fields of `target`. Print and ParseNumbers use them.
  std::vector<Number> (*numbers)(Target& target);
  // Returns the text that selects the target's device in `hone-agent --device`: "cpu", "cuda:NAME". Does not inspect
  // this machine.
  std::string (*device)(const Target& target);
  // Measures that device. Errors as MeasureRoofline in target.h.
  absl::StatusOr<Roofline> (*roofline)(const Target& target, int threads);
};

extern const KindEntry kCpuEntry;     // cpu.cc
extern const KindEntry kOpenClEntry;  // opencl.cc
extern const KindEntry kCudaEntry;    // cuda.cc

// Returns the entry of the kind, or nullptr if the number is past the last kind.
constexpr const KindEntry* EntryOf(Kind kind) {
  switch (kind) {
    case Kind::kCpu:
      return &kCpuEntry;
    case Kind::kOpenCl:
      return &kOpenClEntry;
    case Kind::kCuda:
      return &kCudaEntry;
  }
  return nullptr;
}

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_KIND_H_
