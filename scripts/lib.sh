# SPDX-License-Identifier: Apache-2.0
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

# sources_of SUITE: address and name of what its packages come from. Of bookworm that is all of it that this machine takes
# packages from, and so security.debian.org too; of another, the suite alone.
sources_of() {
  if [[ $1 != bookworm ]]; then
    printf '%s %s\n' "$(debian_mirror)" "$1"
    return
  fi
  apt-get indextargets --format '$(SITE) $(RELEASE) $(CREATED_BY)' 2>/dev/null |
    gawk '$2 ~ /^bookworm(-updates|-security)?$/ && $3 == "Packages" && !seen[$1, $2]++ { print $1, $2 }'
}

# build_release: configures and builds build/release; quick when nothing changed.
build_release() {
  say "building build/release"
  if [[ ! -f build/release/build.ninja ]]; then
    cmake --preset release || fail "cmake could not configure build/release; its messages are above"
  fi
  cmake --build --preset release || fail "the build of build/release failed; the compiler's messages are above"
}

# isolated FOLDER COMMAND...: apt as if the system in FOLDER, which has nothing installed, were all there is.
isolated() { APT_CONFIG=$1/apt.conf "${@:2}"; }

# isolate FOLDER ARCHITECTURE SUITE [deb-src]: makes FOLDER such a system, which knows what packages SUITE has.
isolate() {
  local folder=$1 site suite
  rm -rf "$folder"
  mkdir -p "$folder"/{root,state/lists/partial,cache/archives/partial}
  [[ -n $(debian_mirror) ]] || fail "/etc/apt names no source of Debian 12 (bookworm)"
  sources_of "$3" | while read -r site suite; do
    printf '%s [arch=%s signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "${4:-deb}" "$2" "$site" \
      "$suite"
  done > "$folder/sources.list"
  : > "$folder/state/status"
  cat > "$folder/apt.conf" <<END
Dir::Etc::SourceList "$folder/sources.list";
Dir::Etc::SourceParts "-";
Dir::Etc::Preferences "-";
Dir::Etc::PreferencesParts "-";
Dir::State "$folder/state";
Dir::State::status "$folder/state/status";
Dir::Cache "$folder/cache";
APT::Architecture "$2";
APT::Architectures "$2";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
END
  isolated "$folder" apt-get -q update > "$folder/log" 2>&1 ||
    fail "apt-get update for $3, $2 failed; its messages are in $folder/log"
}

# make_movable ROOT: links and linker scripts that say where the system's libraries lie say so from where they lie.
make_movable() {
  local link script
  find "$1" -type l -lname '/*' | while read -r link; do
    ln -sfn "$(realpath -m --relative-to="${link%/*}" "$1$(readlink "$link")")" "$link"
  done
  { grep -rlI 'GNU ld script' "$1/usr/lib" || true; } | while read -r script; do
    sed -i -E 's#/(usr/)?lib(64)?/([a-z0-9_-]+/)?##g' "$script"
  done
}

# note FOLDER DEB: FOLDER/dpkg is a database of dpkg in which DEB is installed, with its files where they were unpacked.
note() {
  local name file info=$1/dpkg/info
  name=$(dpkg-deb -f "$2" Package)
  [[ $(dpkg-deb -f "$2" Multi-Arch) != same ]] || name+=:$(dpkg-deb -f "$2" Architecture)
  mkdir -p "$info" "$1/dpkg/updates"
  echo 1 > "$info/format"
  dpkg-deb -f "$2" | sed -E '/^(Pre-)?Depends:/d; s/^Package: .*/&\nStatus: install ok installed/' >> "$1/dpkg/status"
  echo >> "$1/dpkg/status"
  dpkg-deb --fsys-tarfile "$2" | tar -t | sed -E "s#^\.#$1/root#; s#/\$##" > "$info/$name.list"
  for file in symbols shlibs; do
    dpkg-deb --ctrl-tarfile "$2" | tar -xO "./$file" > "$info/$name.$file" 2> /dev/null || rm "$info/$name.$file"
  done
}

# complete FOLDER WHAT: whether just that is in FOLDER.
complete() { [[ $(cat "$1/complete" 2>/dev/null) == "$2" ]]; }

# fetched FOLDER WHAT: whether it is there since a week at most: Debian mends what it has released.
fetched() { complete "$1" "$2" && [[ -n $(find "$1/complete" -mtime -7) ]]; }

# answers FOLDER ARCHITECTURE SUITE [deb-src]: whether FOLDER can be made anew, without touching it: where nobody
# answers, what is there stays.
answers() {
  (isolate "$1.asked" "${@:2}") || return
  rm -rf "$1.asked"
}

# fetch FOLDER ARCHITECTURE SUITE WITH PACKAGE...: unpacks Debian packages into FOLDER/root; no script of theirs is run.
# WITH is what to do: install, with what they depend on, or download, without.
fetch() {
  local folder=$1 architecture=$2 suite=$3 verb=$4 deb
  shift 4
  fetched "$folder" "$suite $*" && return
  say "fetching libraries of $suite for $architecture"
  if ! answers "$folder" "$architecture" "$suite"; then
    complete "$folder" "$suite $*" && return
    fail "no libraries of $suite for $architecture can be fetched"
  fi
  isolate "$folder" "$architecture" "$suite"
  if [[ $verb == install ]]; then
    isolated "$folder" apt-get -q -y -d --no-install-recommends install "$@" >> "$folder/log" 2>&1
  else
    (cd "$folder/cache/archives" && isolated "$folder" apt-get -q download "$@" >> "$folder/log" 2>&1)
  fi || fail "apt-get could not fetch $*; its messages are in $folder/log"
  for deb in "$folder"/cache/archives/*.deb; do
    dpkg-deb -x "$deb" "$folder/root"
    note "$folder" "$deb"
  done
  make_movable "$folder/root"
  rm -rf "$folder/cache" "$folder/state"
  echo "$suite $*" > "$folder/complete"
}

# fetch_sources FOLDER SUITE PACKAGE...: unpacks Debian's source packages, as their authors released them, into
# FOLDER/root/PACKAGE.
fetch_sources() {
  local folder=$1 suite=$2 package
  shift 2
  fetched "$folder" "$suite $*" && return
  say "fetching sources of $*"
  if ! answers "$folder" "$(dpkg --print-architecture)" "$suite" deb-src; then
    complete "$folder" "$suite $*" && return
    fail "no sources of $suite can be fetched"
  fi
  isolate "$folder" "$(dpkg --print-architecture)" "$suite" deb-src
  (cd "$folder/cache" && isolated "$folder" apt-get -q source --download-only "$@" >> "$folder/log" 2>&1) ||
    fail "apt-get could not fetch the sources of $*; its messages are in $folder/log"
  for package in "$@"; do
    dpkg-source --skip-patches -x "$folder/cache/$package"_*.dsc "$folder/root/$package" >> "$folder/log" 2>&1 ||
      fail "dpkg-source could not unpack $package; its messages are in $folder/log"
  done
  rm -rf "$folder/cache" "$folder/state"
  echo "$suite $*" > "$folder/complete"
}

# fetch_old_glibc FOLDER ARCHITECTURE: what programs are linked with that are to start on glibc 2.31 and later.
fetch_old_glibc() { fetch "$1" "$2" bullseye download libc6 libc6-dev libgcc-s1; }

hone_version() { sed -nE 's/^project\(hone VERSION ([0-9.]+).*/\1/p' CMakeLists.txt; }

# Debian packages whose code is in the bundled agent.
agent_contents=(libabsl-dev libc-ares2 libfmt-dev libgrpc29 libprotobuf32 libre2-9 libseccomp2 libspdlog-dev libssl3
  libstdc++6 zlib1g)

# copy_terms FOLDER DOCUMENTS PACKAGE...: the terms of each, from DOCUMENTS/PACKAGE, into FOLDER.
copy_terms() {
  local folder=$1 documents=$2 package
  shift 2
  mkdir -p "$folder"
  for package in "$@"; do cp -L "$documents/$package/copyright" "$folder/$package"; done
}

# pack FOLDER [NAME]: makes NAME.tar.xz of it beside it, the same bytes for the same files, and removes it. Its own name, if
# none is given.
pack() {
  local archive=${1%/*}/${2:-${1##*/}}.tar.xz
  XZ_OPT=-9 tar -C "${1%/*}" --sort=name --owner=0 --group=0 --numeric-owner \
    --mtime="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || date +%s)}" -cJf "$archive" "${1##*/}"
  rm -rf "$1"
  say "$archive"
}
