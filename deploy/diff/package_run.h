// SPDX-License-Identifier: Apache-2.0
// What a run of a package left behind for a comparison: its values, and which kernels computed them.
#ifndef HONE_DEPLOY_DIFF_PACKAGE_RUN_H_
#define HONE_DEPLOY_DIFF_PACKAGE_RUN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/element_type.h"
#include "deploy/package/metadata.h"
#include "deploy/run/kept_run.h"
#include "deploy/run/loaded_package.h"
#include "deploy/run/npz.h"
#include "deploy/runtime/memory.h"
#include "deploy/runtime/package_view.h"

namespace hone::diff {

// A call of a kernel of the package.
struct KernelCall {
  size_t call = 0;  // its number in the program
  std::string symbol;
  std::vector<run::ModelNode> nodes;  // that it computes
};

// A program of a package file, as tables: nothing of it is loaded. For packages that run elsewhere, too.
class ProgramTables {
 public:
  // program: its number in the package. Errors: the file cannot be read or is damaged; NotFound: it has no such
  // program.
  static absl::StatusOr<ProgramTables> Read(const std::string& path, int64_t program);

  // An input of the program, in the order of the package.
  struct Input {
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;                             // the largest one
    std::optional<std::span<const uint8_t>> default_value;  // refers to the file; nullopt: there is none
  };
  std::vector<Input> Inputs() const;
  // The ranges of random inputs. kDataLoss: the package's description is damaged.
  absl::StatusOr<std::vector<package::InputRange>> InputRanges() const;

  std::string target() const { return std::string(program().Text(program().target)); }
  size_t calls() const { return program().calls.size(); }
  KernelCall Call(size_t call) const;
  // A value of the file that a tensor holds.
  struct Held {
    std::string name;           // in the file
    std::vector<int64_t> axes;  // dimension i of the value is dimension axes[i] in the tensor; empty: in its own order
  };
  std::vector<Held> ValuesOf(size_t tensor) const;
  // The calls that write the output of this name, also by way of copies, the last one first.
  std::vector<size_t> WritersOfOutput(const std::string& name) const;
  // The calls that may have made a tensor wrong: `call` first, then those before it from which it reads, up to tensors
  // in `known`.
  std::vector<size_t> CallsBehind(size_t call, const std::set<size_t>& known) const;

 private:
  const runtime::ProgramView& program() const { return package_.programs[number_]; }
  std::vector<size_t> WritersOf(size_t tensor) const;

  runtime::Mapping file_;
  runtime::PackageView package_;  // refers to file_
  size_t number_ = 0;
  std::map<size_t, std::vector<size_t>> writers_;  // by tensor
  std::map<size_t, std::vector<size_t>> sources_;  // by tensor: those that it is a copy of
};

// A run, here or elsewhere, of a program of a package.
struct PackageRun {
  ProgramTables tables;
  run::KeptRun kept;
};

}  // namespace hone::diff

#endif  // HONE_DEPLOY_DIFF_PACKAGE_RUN_H_
