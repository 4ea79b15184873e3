// SPDX-License-Identifier: Apache-2.0
// The runtime for C++17 and later: a package as an object that frees itself, inputs and outputs as spans of elements.
//
// Header only, over hone.h, whose rules for memory and threads hold here: one thread at a time may use a Session. Not
// for a model whose ports a program knows when it is compiled: `hone compile --header` makes a typed header for it.
// Start at Session:
//
//   hone::Session session("model.hone");
//   auto x = session.Input<float>("x");           // the memory that the next run reads
//   std::fill(x.begin(), x.end(), 1.0f);
//   session.Run();
//   for (float y : session.Output<float>("y")) ...
//
// Errors: a function that can fail throws hone::Error. Beside each stands one whose name begins with Try and that
// returns a hone::Result instead. A program without exceptions (-fno-exceptions) has the second set alone.
#ifndef HONE_DEPLOY_RUNTIME_HONE_HPP_
#define HONE_DEPLOY_RUNTIME_HONE_HPP_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "hone.h"
#include "hone_types.hpp"  // beside this file, in the tree and where it is installed

namespace hone {

struct LoadOptions {
  int threads = 0;                  // how many compute; 0: one for each core of the fastest kind
  bool trust_constants = false;     // skips the checksum over the weights
  bool allow_onnx_runtime = false;  // ONNX Runtime may compute the parts that are left to it
};

// A loaded package. It can be moved, not copied. A session that was moved from can only be assigned to and destroyed.
class Session {
 public:
  static Result<Session> TryLoad(const std::string& package, const LoadOptions& options = {}) {
    Session session;
    const std::uint32_t flags = (options.trust_constants ? HONE_LOAD_TRUST_CONSTANTS : 0U) |
                                (options.allow_onnx_runtime ? HONE_LOAD_ALLOW_ONNX_RUNTIME : 0U);
    const HoneLoadOptions given = {sizeof(HoneLoadOptions), options.threads, flags};
    if (const HoneStatus status = hone_load(package.c_str(), &given, &session.model_); status != HONE_OK) {
      return FailureOf(status);
    }
    return session;
  }
  Session(Session&& other) noexcept : model_(std::exchange(other.model_, nullptr)) {}
  Session& operator=(Session&& other) noexcept {
    std::swap(model_, other.model_);
    return *this;
  }
  ~Session() { hone_free(model_); }

  HoneModel* get() const noexcept { return model_; }  // for the functions of hone.h; the session's
  std::string_view target() const noexcept { return hone_target(model_); }
  std::string_view passed_over() const noexcept { return hone_passed_over(model_); }
  std::string_view metadata() const noexcept { return hone_metadata(model_, nullptr); }  // JSON
  int threads() const noexcept { return hone_threads(model_); }
  std::vector<Port> inputs() const { return Ports(hone_input_count(model_), hone_input); }
  std::vector<Port> outputs() const { return Ports(hone_output_count(model_), hone_output); }

  // The memory from which the next run reads the input, to be filled in place. It holds so many elements as its current
  // shape says, and keeps its values from run to run. The element type must be the model's, or std::byte.
  template <typename Element>
  Result<Span<Element>> TryInput(PortKey input) {
    const Result<std::size_t> index = InputIndex(input);
    if (!index) return index.error();
    DLTensor view;
    if (const HoneStatus status = hone_get_input(model_, *index, &view); status != HONE_OK) return FailureOf(status);
    return SpanOf<Element>(view);
  }
  // What the last run wrote, valid until the next one. The element type must be the model's, or std::byte.
  template <typename Element>
  Result<Span<const Element>> TryOutput(PortKey output) const {
    const Result<std::size_t> index = OutputIndex(output);
    if (!index) return index.error();
    DLTensor view;
    if (const HoneStatus status = hone_get_output(model_, *index, &view); status != HONE_OK) return FailureOf(status);
    return SpanOf<const Element>(view);
  }
  // The extents of the output in the last run.
  Result<Span<const std::int64_t>> TryShape(PortKey output) const {
    const Result<std::size_t> index = OutputIndex(output);
    if (!index) return index.error();
    HonePort port;
    if (const HoneStatus status = hone_output(model_, *index, &port); status != HONE_OK) return FailureOf(status);
    return Span<const std::int64_t>(port.shape, static_cast<std::size_t>(port.ndim));
  }
  // Sets the shape of an input with open dimensions for the next run, without its values.
  Result<> TryResize(PortKey input, Span<const std::int64_t> shape) {
    const Result<std::size_t> index = InputIndex(input);
    if (!index) return index.error();
    return Done(hone_resize(model_, *index, shape.data(), static_cast<std::int32_t>(shape.size())));
  }
  // Copies the values, row by row, into the input, and sets its shape.
  template <typename Element>
  Result<> TrySet(PortKey input, Span<const Element> values, Span<const std::int64_t> shape) {
    return WithTensor(InputIndex(input), const_cast<Element*>(values.data()), values.size(), shape, hone_set_input);
  }
  // Lets the model read the input from, or write the output to, memory of the caller: compact, on a multiple of 64
  // bytes, and valid until the port is bound again or the session ends. hone_bind_input in hone.h has all rules.
  template <typename Element>
  Result<> TryBindInput(PortKey input, Span<const Element> memory, Span<const std::int64_t> shape) {
    return WithTensor(InputIndex(input), const_cast<Element*>(memory.data()), memory.size(), shape, hone_bind_input);
  }
  template <typename Element>
  Result<> TryBindOutput(PortKey output, Span<Element> memory, Span<const std::int64_t> shape) {
    return WithTensor(OutputIndex(output), memory.data(), memory.size(), shape, hone_bind_output);
  }
  // Runs the model once, and returns when all outputs are written.
  Result<> TryRun() { return Done(hone_run(model_)); }
  // Runs it, and returns the time of each kernel call.
  Result<std::vector<CallTime>> TryProfile() {
    std::vector<std::int64_t> nanoseconds(hone_call_count(model_));
    const HoneStatus status = hone_run_profiled(model_, nanoseconds.data(), nanoseconds.size());
    if (status != HONE_OK) return FailureOf(status);
    std::vector<CallTime> times;
    for (std::size_t i = 0; i < nanoseconds.size(); ++i) {
      times.push_back({hone_call_symbol(model_, i), hone_call_target(model_, i), 1e-9 * double(nanoseconds[i]), {}});
      for (std::size_t node = 0; node < hone_call_node_count(model_, i); ++node) {
        times.back().nodes.emplace_back(hone_call_node(model_, i, node));
      }
    }
    return times;
  }
  // How many threads compute; 0: one for each core of the fastest kind.
  Result<> TrySetThreads(int threads) { return Done(hone_set_threads(model_, threads)); }

#if defined(__cpp_exceptions)
  explicit Session(const std::string& package, const LoadOptions& options = {})
      : Session(TryLoad(package, options).value()) {}
  template <typename Element>
  Span<Element> Input(PortKey input) {
    return TryInput<Element>(input).value();
  }
  template <typename Element>
  Span<const Element> Output(PortKey output) const {
    return TryOutput<Element>(output).value();
  }
  Span<const std::int64_t> Shape(PortKey output) const { return TryShape(output).value(); }
  void Resize(PortKey input, Span<const std::int64_t> shape) { TryResize(input, shape).value(); }
  template <typename Element>
  void Set(PortKey input, Span<const Element> values, Span<const std::int64_t> shape) {
    TrySet<Element>(input, values, shape).value();
  }
  template <typename Element>
  void BindInput(PortKey input, Span<const Element> memory, Span<const std::int64_t> shape) {
    TryBindInput<Element>(input, memory, shape).value();
  }
  template <typename Element>
  void BindOutput(PortKey output, Span<Element> memory, Span<const std::int64_t> shape) {
    TryBindOutput<Element>(output, memory, shape).value();
  }
  void Run() { TryRun().value(); }
  std::vector<CallTime> Profile() { return TryProfile().value(); }
  void SetThreads(int threads) { TrySetThreads(threads).value(); }
#endif

 private:
  using Describe = HoneStatus(const HoneModel*, std::size_t, HonePort*);
  using Take = HoneStatus(HoneModel*, std::size_t, const DLTensor*);

  Session() = default;

  static Failure FailureOf(HoneStatus status) { return {status, hone_error()}; }
  static Result<> Done(HoneStatus status) {
    if (status != HONE_OK) return FailureOf(status);
    return std::monostate();
  }
  static Failure Wrong(std::string text) { return {HONE_INVALID_ARGUMENT, std::move(text)}; }

  std::vector<Port> Ports(std::size_t count, Describe* describe) const {
    std::vector<Port> ports(count);
    for (std::size_t i = 0; i < count; ++i) {
      HonePort port;
      if (describe(model_, i, &port) != HONE_OK) std::abort();  // i is an index, so it cannot fail
      ports[i] = {port.name, port.dtype, {port.shape, static_cast<std::size_t>(port.ndim)}, port.bytes};
    }
    return ports;
  }
  Result<std::size_t> InputIndex(const PortKey& key) const {
    return IndexOf("input", key, hone_input_count(model_), hone_input);
  }
  Result<std::size_t> OutputIndex(const PortKey& key) const {
    return IndexOf("output", key, hone_output_count(model_), hone_output);
  }
  Result<std::size_t> IndexOf(const char* kind, const PortKey& key, std::size_t count, Describe* describe) const {
    if (!key.is_name()) return key.index();  // hone.h checks it
    std::string known;
    HonePort port;
    for (std::size_t i = 0; i < count && describe(model_, i, &port) == HONE_OK; ++i) {
      if (key.name() == port.name) return i;
      known += (known.empty() ? "" : ", ") + std::string(port.name);
    }
    return Wrong("the model has no " + std::string(kind) + " '" + std::string(key.name()) + "'; it has: " + known);
  }
  template <typename Element>
  static Result<Span<Element>> SpanOf(const DLTensor& view) {
    std::size_t count = 1;
    for (std::int32_t i = 0; i < view.ndim; ++i) count *= static_cast<std::size_t>(view.shape[i]);
    if constexpr (std::is_same_v<std::remove_const_t<Element>, std::byte>) {
      count *= (view.dtype.bits + 7U) / 8U;
    } else {
      constexpr DLDataType kWanted = ElementType<std::remove_const_t<Element>>();
      if (view.dtype.code != kWanted.code || view.dtype.bits != kWanted.bits) {
        return Wrong("its elements have DLPack code " + std::to_string(view.dtype.code) + " and " +
                     std::to_string(view.dtype.bits) + " bits, not code " + std::to_string(kWanted.code) + " and " +
                     std::to_string(kWanted.bits) + " bits");
      }
    }
    return Span<Element>(static_cast<Element*>(view.data), count);
  }
  // Calls `take` with a tensor of `count` elements.
  template <typename Element>
  Result<> WithTensor(const Result<std::size_t>& index, Element* data, std::size_t count,
                      Span<const std::int64_t> shape, Take* take) {
    if (!index) return index.error();
    std::size_t wanted = 1;
    for (const std::int64_t extent : shape) wanted *= static_cast<std::size_t>(extent);
    if (wanted != count) {
      return Wrong("the shape has " + std::to_string(wanted) + " elements, the memory " + std::to_string(count));
    }
    const DLTensor tensor = {data,
                             {kDLCPU, 0},
                             static_cast<std::int32_t>(shape.size()),
                             ElementType<Element>(),
                             const_cast<std::int64_t*>(shape.data()),
                             nullptr,
                             0};
    return Done(take(model_, *index, &tensor));
  }

  HoneModel* model_ = nullptr;
};

}  // namespace hone

#endif  // HONE_DEPLOY_RUNTIME_HONE_HPP_
