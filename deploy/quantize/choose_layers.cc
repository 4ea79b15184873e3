// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/choose_layers.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "base/status.h"
#include "deploy/quantize/accuracy.h"
#include "deploy/quantize/write_qdq.h"

namespace hone::quantize {
namespace {

constexpr size_t kRankingSamplesMax = 8;  // on which layers are quantized alone

// An array that outlives the run that made it.
struct KeptArray {
  std::string name;
  run::Array array;
  run::ArrayView view() const { return {name, array.dtype, array.shape, array.data}; }
};

class SwitchedModel {
 public:
  SwitchedModel(CompiledModel model, std::vector<std::string> switches, const Samples& samples)
      : model_(std::move(model)), switches_(std::move(switches)), samples_(samples) {}

  // Runs the model in f32, and keeps its outputs.
  absl::Status RunReference() {
    const Choice none(switches_.size());
    return Run(none, samples_.size(), [this](size_t, const std::vector<run::ArrayView>& outputs) {
      std::vector<KeptArray>& kept = reference_.emplace_back();
      for (const run::ArrayView& output : outputs) {
        kept.push_back(
            {output.name,
             {output.dtype, {output.shape.begin(), output.shape.end()}, {output.data.begin(), output.data.end()}}});
      }
    });
  }

  // The worst SQNR of an output with these layers quantized, over the first samples.
  absl::StatusOr<double> Measure(const Choice& choice, size_t samples) {
    Accuracy accuracy;
    HONE_RETURN_IF_ERROR(Run(choice, samples, [&](size_t sample, const std::vector<run::ArrayView>& outputs) {
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (accuracy.size() == i) accuracy.emplace_back(outputs[i].name);
        accuracy[i].Add(reference_[sample][i].view(), outputs[i]);
      }
    }));
    return WorstSqnr(accuracy);
  }

 private:
  template <typename Use>
  absl::Status Run(const Choice& choice, size_t samples, const Use& use) {
    static constexpr std::array<uint8_t, 2> kBools = {0, 1};
    const absl::Status status =
        samples_.ForEach([&](size_t sample, std::span<const run::ArrayView> given) -> absl::Status {
          if (sample >= samples) return absl::CancelledError();  // the others are not wanted
          std::vector<run::ArrayView> arrays(given.begin(), given.end());
          for (size_t l = 0; l < switches_.size(); ++l) {
            arrays.push_back({switches_[l], DType::kBool, {}, {&kBools[choice[l] ? 1 : 0], 1}});
          }
          HONE_ASSIGN_OR_RETURN(const std::vector<run::ArrayView> outputs, model_.Run(arrays));
          use(sample, outputs);
          return absl::OkStatus();
        });
    return absl::IsCancelled(status) ? absl::OkStatus() : status;
  }

  CompiledModel model_;
  const std::vector<std::string> switches_;  // by layer
  const Samples& samples_;
  std::vector<std::vector<KeptArray>> reference_;  // by sample and output
};

}  // namespace

absl::StatusOr<LayerChoice> ChooseLayers(const ModelFile& model, const Layers& layers,
                                         const std::vector<ValueRange>& ranges, const Choice& allowed,
                                         const Samples& samples, double sqnr, const CompileOptions& options,
                                         const std::function<void(std::string_view what, double share)>& progress) {
  const size_t count = layers.layers.size();
  ModelFile with_switches = model;
  HONE_ASSIGN_OR_RETURN(std::vector<std::string> switches, WriteSwitches(with_switches, layers, ranges));
  progress("compiling the model with a switch for each layer", 0);
  HONE_ASSIGN_OR_RETURN(CompiledModel compiled, CompiledModel::Compile(with_switches, options));
  SwitchedModel switched(std::move(compiled), std::move(switches), samples);
  HONE_RETURN_IF_ERROR(switched.RunReference());
  LayerChoice result{allowed, std::vector<double>(count, std::numeric_limits<double>::infinity())};
  std::vector<size_t> worst_first;
  for (size_t l = 0; l < count; ++l) {
    if (!allowed[l]) continue;
    progress("quantizing each layer alone", static_cast<double>(l) / static_cast<double>(count));
    Choice alone(count);
    alone[l] = true;
    HONE_ASSIGN_OR_RETURN(result.alone[l], switched.Measure(alone, kRankingSamplesMax));
    worst_first.push_back(l);
  }
  std::ranges::stable_sort(worst_first, {}, [&](size_t layer) { return result.alone[layer]; });
  const auto without = [&](size_t left_out) {
    Choice choice = allowed;
    for (size_t i = 0; i < left_out; ++i) choice[worst_first[i]] = false;
    return choice;
  };
  size_t too_few = 0, enough = worst_first.size();  // numbers of layers in f32; 0 may be enough
  for (bool first = true; first || too_few < enough; first = false) {
    progress("finding the layers to leave in f32", 1);
    const size_t middle = first ? 0 : (too_few + enough) / 2;
    HONE_ASSIGN_OR_RETURN(const double reached, switched.Measure(without(middle), samples.size()));
    if (reached >= sqnr) {
      enough = middle;
    } else {
      too_few = middle + 1;
    }
  }
  result.choice = without(enough);
  return result;
}

}  // namespace hone::quantize
