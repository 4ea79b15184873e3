# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests here. Sets $made (what scripts/packages has made) and $work (a scratch folder), and makes systems in
# folders of $work that behave like boards. Usage of a test: NAME FOLDER_WITH_HONE'S_PROGRAMS
# [arm64|armhf]. $architecture is that of the boards. Needs root.
set -euo pipefail
bin=$(realpath "${1:?usage: $0 FOLDER_WITH_HONE\'S_PROGRAMS [arm64|armhf]}")
architecture=${2:-arm64}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib.sh
. tests/packages/other_systems.sh

skip() {
  echo "skipped: $1"
  exit 77
}
[[ $EUID -eq 0 ]] || skip "needs root, for roots of other systems"
emulator=${emulators[$architecture]}
command -v "$emulator" > /dev/null || skip "needs qemu-user-static"
[[ $(dpkg --print-architecture) != "$architecture" ]] || skip "needs another architecture than $architecture"

made=build/packages
work=$(mktemp -d)
processes=()  # ids of the processes that the test started and has not ended
tidy() { :; }  # a test may replace this function; it runs at the end

# end_at_once PROCESS...: kills the processes and their children. A child in a namespace of processes that has become another
# user's does not end with its parent.
end_at_once() {
  local process
  for process in "$@"; do
    pkill -KILL -P "$process" || true
    kill -KILL "$process" 2> /dev/null || true
  done
}

finish() {
  local status=$?
  end_at_once "${processes[@]}"
  wait
  tidy
  [[ $status -eq 0 || $status -eq 77 ]] || tail -n 20 "$work"/*.log
  rm -rf --one-file-system "$work"
}
trap finish EXIT

# A program for arrays of floats: arrays.py get ARRAYS.npz NAME FILE writes the bytes of one array, and arrays.py compare A B
# fails if they are more than 1e-3 of the largest apart.
arrays=$work/arrays.py
cat > "$arrays" <<'PYTHON'
import array, struct, sys, zipfile
if sys.argv[1] == "get":
    data = zipfile.ZipFile(sys.argv[2]).read(sys.argv[3] + ".npy")
    open(sys.argv[4], "wb").write(data[10 + struct.unpack("<H", data[8:10])[0]:])
else:
    a, b = (array.array("f", open(file, "rb").read()) for file in sys.argv[2:4])
    assert len(a) == len(b) > 0
    apart = max(abs(x - y) for x, y in zip(a, b)) / max(map(abs, a))
    print(f"{apart:.2g} apart")
    sys.exit(not apart <= 1e-3)
PYTHON

# make_root NAME FROM: makes a board's system with the files that were fetched into FROM.
make_root() {
  local root=$work/$1
  mkdir -p "$root"
  cp -a "$made/$2/root/." "$root"
  mkdir -p "$root"/{proc,dev,tmp,etc,root,usr/bin}
  chmod 755 "$root"
  chmod 1777 "$root/tmp"
  cp /etc/hosts "$root/etc/hosts"
}

# make_board NAME DEB: makes a board's system with the libraries of Debian 12 and the files of the agent's package DEB.
make_board() {
  make_root "$1" "libraries-$architecture"
  dpkg-deb -x "$2" "$work/$1"
  # The user and the folder that postinst makes. The namespace of `emulated` has no user but root, so postinst cannot run.
  echo 'hone-agent:x:0:0::/var/lib/hone-agent:/usr/sbin/nologin' > "$work/$1/etc/passwd"
  mkdir -p "$work/$1/var/lib/hone-agent"
}
