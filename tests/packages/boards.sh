# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests here: what scripts/packages has made, a scratch folder ($work), and systems in folders of it in which
# programs run as on a board. Usage of a test: NAME FOLDER_WITH_HONE'S_PROGRAMS; as root, since it makes systems.
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
processes=()  # that the test started and has not ended
tidy() { :; }  # what a test has to put away besides

# end_at_once PROCESS...: and what it runs in a namespace of processes, which outlives unshare once it is another user's.
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

# make_root NAME FROM: a system for arm64 whose files are those in FROM.
make_root() {
  local root=$work/$1
  mkdir -p "$root"
  cp -a "$made/$2/root/." "$root"
  mkdir -p "$root"/{proc,dev,tmp,etc,root,usr/bin}
  chmod 755 "$root"
  chmod 1777 "$root/tmp"
  cp /etc/hosts "$root/etc/hosts"
}

# make_board NAME DEB: a system for arm64 with Debian 12's libraries, in which the agent's package lies as dpkg puts it.
make_board() {
  make_root "$1" libraries-arm64
  dpkg-deb -x "$2" "$work/$1"
  # What postinst makes; in the namespace of emulated there is no user but root.
  echo 'hone-agent:x:0:0::/var/lib/hone-agent:/usr/sbin/nologin' > "$work/$1/etc/passwd"
  mkdir -p "$work/$1/var/lib/hone-agent"
}
