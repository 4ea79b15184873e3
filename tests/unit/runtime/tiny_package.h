// SPDX-License-Identifier: Apache-2.0
// The tiny package: a small package with everything that a package can have: two kernels (one parallel, one with a
// workspace), a constant, an intermediate, and outputs that are copies.
//
//   input  x  f32[4, 8]     output y     f32[4, 8] = SCALE * (x + bias)
//   constant bias f32[8]    output x_out f32[4, 8] = x, output bias_out f32[8] = bias
//
// There is a program for CPUs, and two for devices.
#ifndef HONE_TESTS_UNIT_RUNTIME_TINY_PACKAGE_H_
#define HONE_TESTS_UNIT_RUNTIME_TINY_PACKAGE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "deploy/package/package_writer.h"

namespace hone::tests {

inline constexpr int64_t kRows = 4, kColumns = 8;
inline constexpr std::array<float, kColumns> kBias = {1, 2, 3, 4, 5, 6, 7, 8};

std::string ReadWholeFile(const std::string& path);  // aborts if it cannot
void WriteWholeFile(const std::string& path, const std::string& bytes);

// The output of a shell command, on both streams, and its exit code.
struct CommandResult {
  int exit_code;
  std::string output;
};
CommandResult RunCommand(const std::string& command);

// tiny_kernels.c as a shared object, by `compiler` (default: the system's) with extra flags. Aborts if that fails.
std::string CompileTinyKernels(const std::string& flags = "", const std::string& compiler = "");

// Programs with a planned arena, ready for WritePackage: for this machine's CPU, in OpenCL C, and in PTX for the fake
// CUDA driver.
package::PackageProgram TinyProgram(std::string shared_object);
package::PackageProgram TinyOpenClProgram();
package::PackageProgram TinyCudaProgram();
// The model y = 2 (x + bias) + bias in three calls on two units: `device`, a program from above, adds, and this CPU
// scales. Tensors: x, bias, the sum, y, x_out, bias_out, and then the sum for the CPU, the scaled sum, and the scaled
// sum for the device. x_out is copied by the device and bias_out by the CPU.
package::PackageProgram TinySplitProgram(package::PackageProgram device, std::string shared_object);
std::vector<float> TinySplitOutput();  // y for TinyInput()
// Makes the rows an open size from 0 to kRows. Launches on a device have one group for each row.
void OpenRows(package::PackageProgram& program);
// Removes the launches of the kernel that writes y, as in a program where y has no elements.
void LaunchNothingForY(package::PackageProgram& program);
void AddProgram(package::PackageContents& contents, package::PackageProgram program, const std::string& target);
// One program, for this machine: target "cpu".
package::PackageContents TinyContents(std::string shared_object);

// Writes the package; aborts on failure.
void WriteTinyPackage(const std::string& path, const package::PackageContents& contents);

// The values of x in the tests, and the y that the package computes from them.
std::vector<float> TinyInput();
std::vector<float> TinyOutput(float scale = 2);

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_RUNTIME_TINY_PACKAGE_H_
