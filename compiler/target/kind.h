// SPDX-License-Identifier: Apache-2.0
// The kinds of target, as one table: what differs from kind to kind of how a target is written and found.
//
// A new kind is an enumerator, a case of EntryOf (without which nothing compiles), and a file with its entry, as
// opencl.cc is. What a target of it can do is said by the capabilities in Target, which everyone else asks for.
// KindEntry is for this folder; others call ParseTarget, Print and their like (target.h).
#ifndef HONE_COMPILER_TARGET_KIND_H_
#define HONE_COMPILER_TARGET_KIND_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/execution.h"

namespace hone::target {

enum class Kind : uint8_t { kCpu, kOpenCl, kCuda };

struct Target;
struct TargetText;
struct Number;

struct KindEntry {
  Execution execution;                      // how its kernels run
  std::span<const std::string_view> words;  // with which a target's text may begin
  // One of which nothing else is known. Asks nothing of this machine.
  Target (*typical)();
  // All that the text says, on top of what a device of this machine says of itself, or is typical.
  absl::StatusOr<Target> (*parse)(const TargetText& text);
  // The canonical text, but for the numbers.
  std::string (*print)(const Target& target);
  // The options that are numbers, in canonical order. Print and ParseNumbers go through them.
  std::vector<Number> (*numbers)(Target& target);
  // Which device of this machine runs its code, as `hone-agent --device` takes it.
  std::string (*device)(const Target& target);
};

extern const KindEntry kCpuEntry;     // cpu.cc
extern const KindEntry kOpenClEntry;  // opencl.cc
extern const KindEntry kCudaEntry;    // cuda.cc

// Null past the last kind.
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
