// SPDX-License-Identifier: Apache-2.0
// hone-make-models OUTDIR writes: the sample models (OUTDIR/NAME.onnx), one of them again with its weights in a file
// beside it (external_data.onnx), models with one thing wrong each (broken/), and with one bit flipped (bit_flips/).
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "fmt/format.h"
#include "tests/models/broken_models.h"
#include "tests/models/sample_models.h"

namespace hone::models {
namespace {

namespace fs = std::filesystem;

bool Write(const fs::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) std::cerr << fmt::format("hone-make-models: cannot write {}\n", path.string());
  return static_cast<bool>(file);
}

// Moves the float weights of `model` into FOLDER/WEIGHTS_FILE, as exporters do with models over 2 GiB, and returns the
// bytes of the model without them; empty on failure.
std::string MoveWeights(onnx::ModelProto model, const fs::path& folder, const std::string& weights_file) {
  std::string weights;
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.data_type() != onnx::TensorProto::FLOAT) continue;
    weights.resize((weights.size() + 4095) / 4096 * 4096);
    const auto entry = [&](std::string_view key, const std::string& value) {
      onnx::StringStringEntryProto& pair = *tensor.add_external_data();
      pair.set_key(std::string(key));
      pair.set_value(value);
    };
    entry("location", weights_file);
    entry("offset", std::to_string(weights.size()));
    entry("length", std::to_string(tensor.raw_data().size()));
    weights += tensor.raw_data();
    tensor.clear_raw_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  }
  return Write(folder / weights_file, weights) ? model.SerializeAsString() : std::string();
}

// Copies of a model without weights in it, so that the flipped bits hit its structure.
bool WriteBitFlips(const onnx::ModelProto& model, const fs::path& folder) {
  constexpr int kCopies = 200;
  const std::string bytes = MoveWeights(model, folder, "weights.bin");
  if (bytes.empty()) return false;
  int copy = 0;
  for (const std::string& flipped : BitFlips(bytes, kCopies)) {
    if (!Write(folder / fmt::format("bit_flip_{:03}.onnx", copy++), flipped)) return false;
  }
  return true;
}

bool MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    std::cerr << fmt::format("hone-make-models: cannot make folder {}: {}\n", folder.string(), error.message());
  return !error;
}

bool WriteAll(const fs::path& folder) {
  if (!MakeFolder(folder / "broken") || !MakeFolder(folder / "bit_flips")) return false;
  for (const SampleModel& sample : SampleModels()) {
    if (!Write(folder / (sample.name + ".onnx"), sample.model.SerializeAsString())) return false;
    if (sample.name != "residual_blocks") continue;
    const std::string external = MoveWeights(sample.model, folder, "external_data.bin");
    if (external.empty() || !Write(folder / "external_data.onnx", external)) return false;
    if (!WriteBitFlips(sample.model, folder / "bit_flips")) return false;
  }
  for (const BrokenModel& broken : BrokenModels()) {
    if (!Write(folder / "broken" / (broken.name + ".onnx"), broken.bytes)) return false;
  }
  return true;
}

}  // namespace
}  // namespace hone::models

int main(int argc, char** argv) {
  if (argc != 2 || std::string_view(argv[1]).starts_with("-")) {
    std::cerr << "usage: hone-make-models OUTDIR\n";
    return 2;
  }
  return hone::models::WriteAll(argv[1]) ? 0 : 1;
}
