// SPDX-License-Identifier: Apache-2.0
// Shows the inputs and outputs of a package, and the time of each kernel call on inputs of zeros.
//
//   kernel_times PACKAGE.hone [THREADS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <hone.hpp>
#include <string>

namespace {

void Print(const char* kind, const hone::Port& port) {
  std::printf("%s %s: %d-bit elements, shape", kind, std::string(port.name).c_str(), port.dtype.bits);
  for (const int64_t extent : port.shape) std::printf(" %lld", static_cast<long long>(extent));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: kernel_times PACKAGE.hone [THREADS]\n");
    return 2;
  }
  try {
    hone::LoadOptions options;
    options.threads = argc > 2 ? std::atoi(argv[2]) : 0;
    hone::Session session(argv[1], options);
    for (const hone::Port& port : session.inputs()) {
      Print("input", port);
      const hone::Span<std::byte> bytes = session.Input<std::byte>(port.name);
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
    }
    session.Run();  // the first run warms the caches
    const std::vector<hone::CallTime> times = session.Profile();
    for (const hone::Port& port : session.outputs()) Print("output", port);
    for (const hone::CallTime& time : times) {
      std::printf("%10.3f us  %s\n", time.seconds * 1e6, std::string(time.kernel).c_str());
    }
  } catch (const hone::Error& error) {
    std::fprintf(stderr, "kernel_times: %s\n", error.what());
    return 1;
  }
  return 0;
}
