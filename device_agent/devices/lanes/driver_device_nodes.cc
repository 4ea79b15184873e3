// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/lanes/driver_device_nodes.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

namespace hone::agent {
namespace {

struct Node {
  std::string_view path;  // a folder stands for all that is in it
  std::string_view reason;
};

constexpr Node kOfAll[] = {{"/dev/null", "what libraries want to be rid of"}};

constexpr Node kOfNvidia[] = {
    {"/dev/nvidiactl", "the driver itself"},
    {"/dev/nvidia-uvm", "memory"},
    {"/dev/nvidia-uvm-tools", "the same"},
    {"/dev/nvidia-caps", "parts of a card (MIG)"},
    {"/dev/dxg", "the cards of the Windows that WSL2 runs on"},
    // Jetson, JetPack 4 to 6.
    {"/dev/nvmap", "memory"},
    {"/dev/nvhost-ctrl", "events of the chip"},
    {"/dev/nvhost-ctrl-gpu", "what the GPU is, and its events"},
    {"/dev/nvhost-gpu", "queues of work"},
    {"/dev/nvhost-as-gpu", "address spaces"},
    {"/dev/nvhost-tsg-gpu", "queues that take turns together"},
    {"/dev/nvhost-sched-gpu", "whose turn it is"},
    {"/dev/nvhost-nvsched-gpu", "the same"},
    {"/dev/nvhost-nvsched_ctrl_fifo-gpu", "the same"},
    {"/dev/nvhost-ctxsw-gpu", "events when turns change"},
    {"/dev/nvhost-dbg-gpu", "faults of kernels"},
    {"/dev/nvhost-prof-gpu", "the GPU's clock"},
    {"/dev/nvhost-prof-ctx-gpu", "the same"},
    {"/dev/nvhost-prof-dev-gpu", "the same"},
    {"/dev/nvhost-power-gpu", "wakes the GPU"},
    {"/dev/nvgpu", "all these in one folder"},
    {"/dev/host1x-fence", "waits for other engines of the chip"},
#if defined(__aarch64__)  // elsewhere these are cards of others
    {"/dev/dri/renderD128", "memory, from JetPack 6 on: cuInit fails without"},
    {"/dev/dri/renderD129", "the same"},
#endif
};

constexpr Node kOfOthers[] = {
    {"/dev/dri", "cards of AMD, Intel and others"},
    {"/dev/kfd", "AMD's queues of work"},
};

constexpr int kCardsMax = 248;  // that NVIDIA's driver numbers

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
