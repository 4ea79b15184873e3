# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests here. Sets $made (what scripts/packages has made) and $work (a scratch folder), and makes systems in
# folders of $work that behave like boards. Usage of a test: NAME FOLDER_WITH_HONE'S_PROGRAMS. Needs root.
set -euo pipefail
bin=$(realpath "${1:?usage: $0 FOLDER_WITH_HONE\'S_PROGRAMS}")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib.sh
. tests/packages/other_systems.sh

skip() {
  echo "skipped: $1"
  exit 77
}
[[ $EUID -eq 0 ]] || skip "needs root, for roots of other systems"
command -v qemu-aarch64-static > /dev/null || skip "needs qemu-user-static"
[[ $(dpkg --print-architecture) != arm64 ]] || skip "needs another architecture than arm64"

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

# make_root NAME FROM: makes a system for arm64 with the files that were fetched into FROM.
make_root() {
  local root=$work/$1
  mkdir -p "$root"
  cp -a "$made/$2/root/." "$root"
  mkdir -p "$root"/{proc,dev,tmp,etc,root,usr/bin}
  chmod 755 "$root"
  chmod 1777 "$root/tmp"
  cp /etc/hosts "$root/etc/hosts"
}

# make_board NAME DEB: makes a system for arm64 with the libraries of Debian 12 and the files of the agent's package DEB.
make_board() {
  make_root "$1" libraries-arm64
  dpkg-deb -x "$2" "$work/$1"
  # The user and the folder that postinst makes. The namespace of `emulated` has no user but root, so postinst cannot run.
  echo 'hone-agent:x:0:0::/var/lib/hone-agent:/usr/sbin/nologin' > "$work/$1/etc/passwd"
  mkdir -p "$work/$1/var/lib/hone-agent"
}
