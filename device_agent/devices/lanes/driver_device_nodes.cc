// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/lanes/driver_device_nodes.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

namespace hone::agent {
namespace {

struct Node {
  std::string_view path;  // a folder includes all files in it
  std::string_view reason;
};

constexpr Node kOfAll[] = {{"/dev/null", "libraries write discarded output to it"}};

constexpr Node kOfNvidia[] = {
    {"/dev/nvidiactl", "the driver itself"},
    {"/dev/nvidia-uvm", "memory"},
    {"/dev/nvidia-uvm-tools", "memory"},
    {"/dev/nvidia-caps", "parts of a card (MIG)"},
    {"/dev/dxg", "the GPUs of the Windows host of WSL2"},
    // Jetson, JetPack 4 to 6.
    {"/dev/nvmap", "memory"},
    {"/dev/nvhost-ctrl", "events of the chip"},
    {"/dev/nvhost-ctrl-gpu", "properties and events of the GPU"},
    {"/dev/nvhost-gpu", "work queues"},
    {"/dev/nvhost-as-gpu", "address spaces"},
    {"/dev/nvhost-tsg-gpu", "groups of queues that are scheduled together"},
    {"/dev/nvhost-sched-gpu", "scheduling of queues"},
    {"/dev/nvhost-nvsched-gpu", "scheduling of queues"},
    {"/dev/nvhost-nvsched_ctrl_fifo-gpu", "scheduling of queues"},
    {"/dev/nvhost-ctxsw-gpu", "events when the running queue changes"},
    {"/dev/nvhost-dbg-gpu", "faults of kernels"},
    {"/dev/nvhost-prof-gpu", "the GPU's clock"},
    {"/dev/nvhost-prof-ctx-gpu", "the GPU's clock"},
    {"/dev/nvhost-prof-dev-gpu", "the GPU's clock"},
    {"/dev/nvhost-power-gpu", "wakes the GPU"},
    {"/dev/nvgpu", "a folder with all of these"},
    {"/dev/host1x-fence", "waits for other engines of the chip"},
#if defined(__aarch64__)  // on other machines these belong to other GPUs
    {"/dev/dri/renderD128", "memory, from JetPack 6 on; cuInit fails without it"},
    {"/dev/dri/renderD129", "memory, from JetPack 6 on"},
#endif
};

constexpr Node kOfOthers[] = {
    {"/dev/dri", "GPUs of AMD, Intel and others"},
    {"/dev/kfd", "work queues of AMD GPUs"},
};

constexpr int kCardsMax = 248;  // largest number of GPUs of NVIDIA's driver

void Add(std::span<const Node> nodes, std::vector<std::string>& paths) {
  for (const Node& node : nodes) paths.emplace_back(node.path);
}

}  // namespace

// All cards, because the driver numbers those that a process can reach. A number must mean the same card in the agent
// and in the sandbox.
std::vector<std::string> CudaDeviceNodes() {
  std::vector<std::string> paths;
  for (int card = 0; card < kCardsMax; ++card) paths.push_back(fmt::format("/dev/nvidia{}", card));
  Add(kOfNvidia, paths);
  Add(kOfAll, paths);
  return paths;
}

std::vector<std::string> OpenClDeviceNodes() {
  std::vector<std::string> paths = CudaDeviceNodes();
  Add(kOfOthers, paths);
  return paths;
}

}  // namespace hone::agent
