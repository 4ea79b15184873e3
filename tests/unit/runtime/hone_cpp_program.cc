// SPDX-License-Identifier: Apache-2.0
// A C++17 program without exceptions against the shared library: loads the tests' tiny package, runs it on ones and
// prints y[0].
#include <algorithm>
#include <cstdio>

#include "deploy/runtime/hone.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  hone::Result<hone::Session> session = hone::Session::TryLoad(argv[1]);
  if (!session) {
    std::fprintf(stderr, "load: %s\n", session.error().text.c_str());
    return 1;
  }
  const hone::Result<hone::Span<float>> x = session->TryInput<float>("x");
  if (!x) return 1;
  std::fill(x->begin(), x->end(), 1.0F);
  if (const hone::Result<> ran = session->TryRun(); !ran) {
    std::fprintf(stderr, "run: %s\n", ran.error().text.c_str());
    return 1;
  }
  const hone::Result<hone::Span<const float>> y = session->TryOutput<float>("y");
  if (!y) return 1;
  std::printf("y[0] = %g\n", (*y)[0]);
  return 0;
}
