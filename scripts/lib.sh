# SPDX-License-Identifier: Apache-2.0
# Bash functions that several scripts share: messages, installing packages, building, fetching Debian packages, licence
# texts, archives. It is sourced, never run. The caller has set -euo pipefail, and its working directory is the root of the
# repository.

say() { printf '== %s\n' "$*"; }

# fail MESSAGE: prints MESSAGE to standard error and ends the script with exit code 1. MESSAGE says what went wrong and
# what to do about it.
fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# missing_packages NAME...: prints the packages that are not installed, one per line.
missing_packages() {
  local name
  for name in "$@"; do
    if [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) != installed ]]; then
      printf '%s\n' "$name"
    fi
  done
}

# as_root COMMAND...: runs COMMAND as root, through sudo if the user is not root.
as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "cannot run '$*': it needs root, and sudo is not installed. Run that command as root, then try again"
  fi
}

# install_packages NAME...: installs the packages that are missing. If none is missing it uses neither apt nor the network.
install_packages() {
  command -v dpkg-query >/dev/null || fail "this system has no dpkg. Hone's scripts install packages on Debian 12 only"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -eq 0 ]] && return
  say "installing ${#missing[@]} packages: ${missing[*]}"
  as_root apt-get -q update ||
    fail "apt-get update failed; its messages are above. Check the network and /etc/apt, then try again"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" ||
    fail "apt-get could not install ${missing[*]}; its messages are above. All of them are in Debian 12, section main"
}

# debian_mirror: prints the first address in /etc/apt that has the suite bookworm (Debian 12).
debian_mirror() {
  apt-get indextargets --format '$(SITE) $(RELEASE) $(CREATED_BY)' 2>/dev/null |
    gawk '$2 == "bookworm" && $3 == "Packages" { print $1; exit }'
}

# sources_of SUITE: prints the address and the suite of each source of packages, one per line. For bookworm these are all
# sources that this machine has for Debian 12, security updates included. For any other suite it is that suite alone.
sources_of() {
  if [[ $1 != bookworm ]]; then
    printf '%s %s\n' "$(debian_mirror)" "$1"
    return
  fi
  apt-get indextargets --format '$(SITE) $(RELEASE) $(CREATED_BY)' 2>/dev/null |
    gawk '$2 ~ /^bookworm(-updates|-security)?$/ && $3 == "Packages" && !seen[$1, $2]++ { print $1, $2 }'
}

# configure_release on|off: configures build/release with the tests (on) or without them (off). A folder that is configured
# already keeps its tests, because a build of the commands alone does not need them to be off.
configure_release() {
  local cache=build/release/CMakeCache.txt
  if [[ -f build/release/build.ninja ]]; then
    [[ $1 == on ]] && grep -q '^HONE_TESTS:BOOL=OFF$' "$cache" || return 0
  fi
  cmake --preset release -DHONE_TESTS="$1" || fail "cmake could not configure build/release; its messages are above"
}

# show_progress: reads Ninja's output with the status "[DONE/TOTAL] ", and prints the share that is done and the elapsed
# time every 30 seconds. Messages of the compiler are passed on.
show_progress() {
  local line code finished=0 total=0 started=$SECONDS printed=$SECONDS
  while true; do
    code=0
    IFS= read -r -t 5 line || code=$?
    if ((code == 0)); then
      if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
        finished=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
      else
        printf '%s\n' "$line"
      fi
    elif ((code <= 128)); then
      break  # the end of the output; codes above 128 say that 5 seconds passed without a line
    fi
    if ((total > 0 && SECONDS - printed >= 30)); then
      printed=$SECONDS
      printf '   %d%% built (%d of %d steps) after %d:%02d minutes\n' $((100 * finished / total)) "$finished" "$total" \
        $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60))
    fi
  done
}

# build_release TARGET: builds TARGET in build/release, and shows how far the build is: on a terminal in one line that is
# rewritten, elsewhere in a line every 30 seconds. The folder must be configured.
build_release() {
  say "building $1 in build/release"
  if [[ -t 1 ]]; then
    NINJA_STATUS='%p built (%f of %t steps) after %e s: ' cmake --build --preset release --target "$1"
  else
    NINJA_STATUS='[%f/%t] ' cmake --build --preset release --target "$1" 2>&1 | show_progress
  fi || fail "the build of build/release failed; the compiler's messages are above"
}

# isolated FOLDER COMMAND...: runs a command of apt with the settings that isolate wrote to FOLDER. apt then sees an empty
# system in FOLDER, and neither reads nor changes this one.
isolated() { APT_CONFIG=$1/apt.conf "${@:2}"; }

# isolate FOLDER ARCHITECTURE SUITE [deb-src]: makes an empty system for apt in FOLDER, and loads the package lists of SUITE
# for ARCHITECTURE. With deb-src these are the lists of source packages. Removes what was in FOLDER.
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

# make_movable ROOT: rewrites absolute symbolic links and linker scripts below ROOT, so that a linker finds the libraries in
# ROOT and not those of this system.
make_movable() {
  local link script
  find "$1" -type l -lname '/*' | while read -r link; do
    ln -sfn "$(realpath -m --relative-to="${link%/*}" "$1$(readlink "$link")")" "$link"
  done
  { grep -rlI 'GNU ld script' "$1/usr/lib" || true; } | while read -r script; do
    sed -i -E 's#/(usr/)?lib(64)?/([a-z0-9_-]+/)?##g' "$script"
  done
}

# note FOLDER DEB: enters DEB as installed into FOLDER/dpkg, a database of dpkg. Its files are listed below FOLDER/root, where
# they were unpacked. dpkg-shlibdeps reads this database when it finds the packages of libraries of another architecture.
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

# complete FOLDER WHAT: succeeds if FOLDER was fetched to its end and has exactly WHAT.
complete() { [[ $(cat "$1/complete" 2>/dev/null) == "$2" ]]; }

# fetched FOLDER WHAT: succeeds if FOLDER has exactly WHAT and is at most a week old. Older packages are fetched again, because
# Debian publishes security fixes for them.
fetched() { complete "$1" "$2" && [[ -n $(find "$1/complete" -mtime -7) ]]; }

# answers FOLDER ARCHITECTURE SUITE [deb-src]: succeeds if the servers of SUITE answer. FOLDER itself is not changed, so that
# what it has stays usable without a network.
answers() {
  (isolate "$1.asked" "${@:2}") || return
  rm -rf "$1.asked"
}

# fetch FOLDER ARCHITECTURE SUITE VERB PACKAGE...: unpacks Debian packages into FOLDER/root. None of their scripts is run. VERB
# is install (the packages and all that they depend on) or download (the packages alone).
fetch() {
  local folder=$1 architecture=$2 suite=$3 verb=$4 deb
  shift 4
  fetched "$folder" "$suite $*" && return
  say "fetching libraries of $suite for $architecture"
  if ! answers "$folder" "$architecture" "$suite"; then
    complete "$folder" "$suite $*" && return
    fail "cannot fetch libraries of $suite for $architecture: no server answers. Check the network and /etc/apt"
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

# fetch_sources FOLDER SUITE PACKAGE...: unpacks source packages of Debian into FOLDER/root/PACKAGE, without Debian's patches.
fetch_sources() {
  local folder=$1 suite=$2 package
  shift 2
  fetched "$folder" "$suite $*" && return
  say "fetching sources of $*"
  if ! answers "$folder" "$(dpkg --print-architecture)" "$suite" deb-src; then
    complete "$folder" "$suite $*" && return
    fail "cannot fetch sources of $suite: no server answers. Check the network and /etc/apt"
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

# fetch_old_glibc FOLDER ARCHITECTURE: fetches glibc 2.31 of Debian 11 into FOLDER/root. Programs that are linked with it start
# on that version and every later one.
fetch_old_glibc() { fetch "$1" "$2" bullseye download libc6 libc6-dev libgcc-s1; }

# Debian's names of architectures, and their names in paths and in names of tools.
declare -A triplet=([amd64]=x86_64-linux-gnu [arm64]=aarch64-linux-gnu [armhf]=arm-linux-gnueabihf)

# hone_version: prints the version of this source tree.
hone_version() { sed -nE 's/^project\(hone VERSION ([0-9.]+).*/\1/p' CMakeLists.txt; }

# Debian packages with code that is part of hone-agent: libraries that are linked statically in the package or the archive, and
# libraries whose headers are compiled in. tests/packages/linked_terms checks both lists against what is compiled and linked.
agent_contents=(libabsl-dev libc-ares2 libcli11-dev libfmt-dev libgrpc29 libprotobuf32 libre2-9 libseccomp2 libspdlog-dev
  libssl3 libstdc++6 nlohmann-json3-dev opencl-headers zlib1g)
# The same for all programs of Hone together. libdmlc0 and libgomp1 are linked by XGBoost.
commands_contents=("${agent_contents[@]}" libboost1.74-dev libdmlc0 libgomp1 liblld-19-dev libllvm19 libonnx1 libsqlite3-0
  libxgboost0 libzstd1)
# Libraries that no Debian package has. Their terms are in packaging/licences.
dashboard_contents=(uplot)

# licences_in COPYRIGHT: prints the short names of the licences in a copyright file of Debian, those of Debian's own packaging
# left out. Prints nothing if the file is not in the machine-readable format.
licences_in() {
  gawk '/^Files:/ { ours = !/^Files: *debian\/\*$/ } /^License:/ && ours && NF > 1 { sub(/^License: */, ""); print; ours = 0 }' "$1" |
    LC_ALL=C sort -u | paste -sd ';' | sed 's/;/; /g'
}

# copy_terms FOLDER DOCUMENTS PACKAGE...: writes LICENSE and NOTICE of Hone into FOLDER, and the terms of each PACKAGE into
# FOLDER/licences. These are DOCUMENTS/PACKAGE/copyright, or packaging/licences/PACKAGE for a library that is not in Debian. The
# licence texts that they refer to on a Debian system are copied into FOLDER/licences/common-licenses. NOTICE lists all.
copy_terms() {
  local folder=$1 documents=$2 package text
  shift 2
  mkdir -p "$folder"
  cp LICENSE "$folder/LICENSE"
  gawk -v RS= 'NR <= 2 { print $0 "\n" }' NOTICE > "$folder/NOTICE"  # the paragraphs about Hone itself
  mkdir -p "$folder/licences"
  printf 'These libraries of others are a part of it. The file of that name in the folder licences has the terms.\n\n' \
    >> "$folder/NOTICE"
  for package in "$@"; do
    if [[ -f packaging/licences/$package ]]; then
      cp "packaging/licences/$package" "$folder/licences/$package"
      printf '  %-20s %s\n' "$package" "$(head -n 1 "packaging/licences/$package")" >> "$folder/NOTICE"
      continue
    fi
    [[ -f $documents/$package/copyright ]] ||
      fail "the terms of $package are missing: there is no $documents/$package/copyright. Install the package $package"
    cp -L "$documents/$package/copyright" "$folder/licences/$package"
    text=$(licences_in "$folder/licences/$package")
    printf '  %-20s %s\n' "$package" "${text:-see its file}" >> "$folder/NOTICE"
  done
  mkdir -p "$folder/licences/common-licenses"
  for text in $(grep -rhoE '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$folder/licences" | sort -u); do
    cp -L "$text" "$folder/licences/common-licenses" 2> /dev/null || true  # a few files name a text that Debian does not have
  done
}

# pack FOLDER [NAME]: packs FOLDER into NAME.tar.xz beside it, and removes FOLDER. NAME is the name of FOLDER if it is not given.
# The same files always give the same bytes.
pack() {
  local archive=${1%/*}/${2:-${1##*/}}.tar.xz
  XZ_OPT=-9 tar -C "${1%/*}" --sort=name --owner=0 --group=0 --numeric-owner \
    --mtime="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || date +%s)}" -cJf "$archive" "${1##*/}"
  rm -rf "$1"
  say "$archive"
}
