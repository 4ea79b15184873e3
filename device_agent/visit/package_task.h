// SPDX-License-Identifier: Apache-2.0
// The task of a child that runs packages, what it reports, and the memory in which it reports it. The launcher's side
// is launcher/package_runner.h; the child's is child/run_packages.h.
//
// The child counts as part of the packages, so the launcher checks every value of a report.
#ifndef HONE_DEVICE_AGENT_VISIT_PACKAGE_TASK_H_
#define HONE_DEVICE_AGENT_VISIT_PACKAGE_TASK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/memory_file.h"
#include "device_agent/visit/batch.h"

namespace hone::agent {

inline constexpr size_t kRunSecondsMax = 20000;      // values of one package that a report has (PackageReport.seconds)
inline constexpr int64_t kOutputBytesMax = 1 << 30;  // of one package's file of outputs
inline constexpr double kMinuteCurveSeconds = 120;   // of a measurement that has a curve per minute

struct PackageTask {
  enum class Purpose {
    kFirstRun,  // of one package: load it, run it once, store its outputs
    kMeasure,   // of all packages: run them in turns, and profile them
  };
  Purpose purpose = Purpose::kFirstRun;
  std::vector<std::string> names;  // of the packages of this child
  bool has_inputs = false;         // else random ones
  std::vector<std::string> shapes;
  int threads = 0;
  double seconds = 0;  // of the measurement, for each package; 0: none
  bool profile = false;
  bool keep_outputs = false;
  bool keep_values = false;  // as RunTask.keep_values
  bool allows_onnx_runtime = false;
};

// The files that come with the task, in this order: the task, the memory of the report, the packages, the inputs if
// has_inputs, and with keep_outputs a writable file of kOutputBytesMax for the outputs. The packages and inputs are
// read-only.
enum PackageTaskFile : size_t { kPackageTaskFile, kReportFile, kFirstPackageFile };

std::string Pack(const PackageTask& task);
// kInternal: Pack did not write the bytes.
absl::StatusOr<PackageTask> UnpackPackageTask(std::string_view bytes);

struct KernelRun {
  std::string symbol, target;
  double median_seconds = 0;
  std::vector<std::string> nodes;
};

struct KernelWork {
  int64_t calls = 0;
  double flops = 0, bytes = 0;
};

struct MinuteOfRuns {
  int64_t runs = 0;
  double median_seconds = 0;
};

// The fields mean what proto/hone/v1/run.proto says of PackageReport.
struct PackageRun {
  std::string target;
  int32_t threads = 0;
  double load_seconds = 0, first_run_seconds = 0;
  std::vector<double> seconds;
  int64_t runs = 0;
  int64_t peak_memory_bytes = 0;
  std::vector<KernelRun> kernels;
  int64_t output_bytes = 0;  // written to the file of outputs
  std::vector<MinuteOfRuns> minutes;
  std::vector<std::string> passed_over;
  std::vector<KernelWork> work;
  std::string work_unknown;
};

struct PackageFindings {
  bool failed = false;
  VisitFailure failure;              // if failed
  std::vector<PackageRun> packages;  // in the order of the task, unless failed
};

// The memory that both processes map. Besides the findings it shows how far the child is, so that the launcher notices
// a run that does not end, although no message is sent during measurements.
class ReportMemory {
 public:
  static absl::StatusOr<ReportMemory> Create();  // kResourceExhausted: no memory
  static absl::StatusOr<ReportMemory> Open(MemoryFile file);
  const MemoryFile& file() const { return file_; }

  // In the child: it goes on with the package of that index in the task.
  void BeginStep(size_t package);
  // In the child. False: they are too many.
  bool Store(const PackageFindings& findings);

  // In the launcher. Every value may be wrong.
  uint64_t steps() const;
  size_t package() const;
  // kInternal: the child has stored nothing, or something else.
  absl::StatusOr<PackageFindings> findings() const;

 private:
  struct Header;
  ReportMemory(MemoryFile file, Mapping memory);
  Header& header() const;

  MemoryFile file_;
  Mapping memory_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_PACKAGE_TASK_H_
