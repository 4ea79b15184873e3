# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for 64-bit Arm Linux with Debian's g++-aarch64-linux-gnu:
#   cmake -B build/aarch64 -DHONE_PARTS=runtime -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake
# qemu-aarch64-static -L /usr/aarch64-linux-gnu runs the programs on this machine.
set(HONE_TRIPLET aarch64-linux-gnu)
set(HONE_MACHINE aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/cross_linux.cmake)
