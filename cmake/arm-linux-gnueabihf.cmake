# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for 32-bit Arm Linux with Debian's g++-arm-linux-gnueabihf:
#   cmake -B build/arm -DHONE_PARTS=runtime -DCMAKE_TOOLCHAIN_FILE=cmake/arm-linux-gnueabihf.cmake
# qemu-arm-static -L /usr/arm-linux-gnueabihf runs the programs on this machine.
set(HONE_TRIPLET arm-linux-gnueabihf)
set(HONE_MACHINE armv7l)
include(${CMAKE_CURRENT_LIST_DIR}/cross_linux.cmake)
