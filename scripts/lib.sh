# Bash functions that the scripts here share: installing packages, building, and messages. Sourced, never run; the
# caller has set -euo pipefail and stands in the root of the repository.

say() { printf '== %s\n' "$*"; }

# fail MESSAGE: what went wrong and what to do about it, on standard error; ends the script with exit code 1.
fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# missing_packages NAME...: prints those that dpkg does not have installed, one per line.
missing_packages() {
  local name
  for name in "$@"; do
    if [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) != installed ]]; then
      printf '%s\n' "$name"
    fi
  done
}

# as_root COMMAND...: runs it as root, through sudo where need be.
as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "needs root to run '$*', and sudo is not installed; run that command as root, then try again"
  fi
}

# install_packages NAME...: installs those that are missing; touches neither apt nor the network when there are none.
install_packages() {
  command -v dpkg-query >/dev/null || fail "this system has no dpkg; Hone's scripts install packages on Debian 12"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -eq 0 ]] && return
  say "installing ${#missing[@]} packages: ${missing[*]}"
  as_root apt-get -q update ||
    fail "apt-get update failed (its messages are above); check the network and /etc/apt, then try again"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" ||
    fail "apt-get could not install: ${missing[*]}; its messages are above (all of these are in Debian 12's main)"
}

# debian_mirror: the first address in /etc/apt from which this machine takes the suite bookworm itself.
debian_mirror() {
  apt-get indextargets --format '$(SITE) $(RELEASE) $(CREATED_BY)' 2>/dev/null |
    gawk '$2 == "bookworm" && $3 == "Packages" { print $1; exit }'
}

# build_release: configures and builds build/release; quick when nothing changed.
build_release() {
  say "building build/release"
  if [[ ! -f build/release/build.ninja ]]; then
    cmake --preset release || fail "cmake could not configure build/release; its messages are above"
  fi
  cmake --build --preset release || fail "the build of build/release failed; the compiler's messages are above"
}
