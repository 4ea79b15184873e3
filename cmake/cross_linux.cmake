# SPDX-License-Identifier: Apache-2.0
# The settings of all toolchain files for other architectures of Linux, with Debian's cross compilers. Before it is included:
#   HONE_TRIPLET  Debian's name of the architecture in paths, aarch64-linux-gnu
#   HONE_MACHINE  the operating system's name, aarch64
# With -DCMAKE_SYSROOT=FOLDER the libraries come from a system of that architecture in that folder (scripts/packages makes one).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${HONE_MACHINE})
set(CMAKE_C_COMPILER ${HONE_TRIPLET}-gcc)
set(CMAKE_CXX_COMPILER ${HONE_TRIPLET}-g++)
if(CMAKE_SYSROOT)
  set(CMAKE_LIBRARY_ARCHITECTURE ${HONE_TRIPLET})
  set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
  set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/${HONE_TRIPLET}/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
else()
  set(CMAKE_FIND_ROOT_PATH /usr/${HONE_TRIPLET})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
