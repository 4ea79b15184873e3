// SPDX-License-Identifier: Apache-2.0
// Runs a package whose inputs are floats once, on ones, and prints the first element of each output. It is compiled
// without exceptions: each call returns a result that has a value or a failure.
//
//   run_once PACKAGE.hone
#include <algorithm>
#include <cstdio>
#include <hone.hpp>

namespace {

int Fail(const hone::Failure& failure) {
  std::fprintf(stderr, "run_once: %s\n", failure.text.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: run_once PACKAGE.hone\n");
    return 2;
  }
  hone::Result<hone::Session> session = hone::Session::TryLoad(argv[1]);
  if (!session) return Fail(session.error());
  for (const hone::Port& port : session->inputs()) {
    const hone::Result<hone::Span<float>> input = session->TryInput<float>(port.name);
    if (!input) return Fail(input.error());
    std::fill(input->begin(), input->end(), 1.0F);
  }
  if (const hone::Result<> ran = session->TryRun(); !ran) return Fail(ran.error());
  for (const hone::Port& port : session->outputs()) {
    const hone::Result<hone::Span<const float>> output = session->TryOutput<float>(port.name);
    if (!output) return Fail(output.error());
    if (!output->empty()) std::printf("%.*s %g\n", static_cast<int>(port.name.size()), port.name.data(), (*output)[0]);
  }
  return 0;
}
