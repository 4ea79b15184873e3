# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for 64-bit Arm Linux with Debian's g++-aarch64-linux-gnu:
#   cmake -B build/aarch64 -DHONE_PARTS=runtime -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake
# qemu-aarch64-static -L /usr/aarch64-linux-gnu runs the programs on this machine.
# With -DCMAKE_SYSROOT=FOLDER the libraries come from an arm64 system in that folder (scripts/packages makes one).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
if(CMAKE_SYSROOT)
  set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
  set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
  set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
else()
  set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
