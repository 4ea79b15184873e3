// A loaded package: mapped file, loaded code, memory, worker threads, and the addresses each kernel is called with.
//
// The C interface (hone.h) is a thin shell around this class and documents what callers may do; the errors are worded
// here. Start with Load, then Run.
#ifndef HONE_DEPLOY_RUNTIME_MODEL_H_
#define HONE_DEPLOY_RUNTIME_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/kernel_abi.h"
#include "base/thread_pool.h"
#include "deploy/runtime/code_object.h"
#include "deploy/runtime/fault.h"
#include "deploy/runtime/memory.h"
#include "deploy/runtime/package_view.h"

namespace hone::runtime {

class Model {
 public:
  // threads as in HoneLoadOptions. On success *model holds the model.
  static Fault Load(const std::string& path, int threads, ConstantsCheck check, std::unique_ptr<Model>* model);

  const PackageView& package() const { return package_; }

  // `index` counts inputs (outputs); a bad one is InvalidArgument.
  Fault InputPort(size_t index, HonePort* port) const;
  Fault OutputPort(size_t index, HonePort* port) const;
  Fault SetInput(size_t index, const DLTensor& tensor);
  Fault InputView(size_t index, DLTensor* view);
  Fault BindInput(size_t index, const DLTensor& tensor);
  Fault BindOutput(size_t index, const DLTensor& tensor);
  Fault OutputView(size_t index, DLTensor* view) const;

  Fault Run();
  // nanoseconds: one per call.
  Fault RunProfiled(std::span<int64_t> nanoseconds);

  Fault SetThreads(int threads);
  int threads() const { return pool_->threads(); }

 private:
  struct Call {
    HoneKernel kernel;
    void* const* buffers;
    void* workspace;
  };

  Model() = default;
  Fault FindKernels();
  void PlaceTensors();
  void PointTensorAt(uint32_t tensor, uint8_t* address);
  uint8_t* OwnAddress(uint32_t tensor) const;  // of an input or output: the model's own buffer
  Fault CheckIndex(size_t index, std::span<const uint32_t> ids, const char* what) const;
  Fault CheckTensor(uint32_t tensor, const DLTensor& given) const;
  Fault CheckBindable(uint32_t tensor, const DLTensor& given) const;
  HonePort PortOf(uint32_t tensor) const;
  DLTensor ViewOf(uint32_t tensor) const;
  Fault CheckInputsSet() const;
  void DoCopies();

  Mapping file_;
  PackageView package_;  // points into file_
  CodeObject code_;
  Mapping io_, arena_;
  std::vector<uint8_t*> addresses_;  // per tensor
  std::vector<void*> buffers_;       // per argument of the package, flat
  std::vector<Call> calls_;          // point into buffers_
  std::vector<bool> input_set_;      // per input
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_MODEL_H_
