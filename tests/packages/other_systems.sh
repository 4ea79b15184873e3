# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests that run programs on another system, whose files are in a folder. Needs root.
#
# The arrays `native` and `emulated` are prefixes of a command line: "${native[@]}" FOLDER COMMAND... runs COMMAND as root of the
# system in FOLDER. The command has its own processes and mounts, which end with it, and no variable of this environment. It can
# make user namespaces, which a chroot does not allow. `emulated` is for systems for $architecture (arm64 unless it
# is set before, or armhf), where root is the only user.

declare -A emulators=([arm64]=qemu-aarch64-static [armhf]=qemu-arm-static)
# The bytes of an ELF header that tell the architectures apart: the class (32 or 64 bits) and the machine.
declare -A elf_class=([arm64]='\x02' [armhf]='\x01') elf_machine=([arm64]='\xb7' [armhf]='\x28')
architecture=${architecture:-arm64}

inside='
  set -e
  root=$1; shift
  mount --bind "$root" "$root"
  mount --rbind /dev "$root/dev"
  mount -t proc proc "$root/proc"
  [[ ! -d $root/sys ]] || mount --rbind /sys "$root/sys"
  cd "$root"
  if [[ -n ${EMULATOR:-} ]]; then
    # Registers the emulator in the namespace of the test alone. Programs that the agent starts need it too.
    mount -t binfmt_misc none proc/sys/fs/binfmt_misc
    printf "%s%s%s" ":board:M::\x7fELF$ELF_CLASS\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00$ELF_MACHINE\x00" \
      ":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff" \
      ":$EMULATOR:F" > proc/sys/fs/binfmt_misc/register
  fi
  mkdir -p old
  pivot_root . old
  while read -r name; do unset "$name"; done < <(compgen -e)
  export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  exec "$@"'
native=(unshare --mount --pid --fork --kill-child bash -c "$inside" bash)
emulated=(env EMULATOR="$(command -v "${emulators[$architecture]}" || true)" ELF_CLASS="${elf_class[$architecture]}"
  ELF_MACHINE="${elf_machine[$architecture]}" unshare --user --map-root-user --mount --pid --fork
  --kill-child bash -c "$inside" bash)
