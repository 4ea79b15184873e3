# SPDX-License-Identifier: Apache-2.0
# Sourced by every lint: stands in the root of the tree to check ($1), and offers the list of its own files.
# A lint prints one line per finding, "file:line: what and why", and ends with exit code 1 when there is one.
set -euo pipefail
shopt -s inherit_errexit  # a tool that is missing must not look like a clean tree
cd "${1:?usage: $0 TREE}"

# files PATTERN...: our files whose names match one of the patterns, sorted; nothing generated, built or fetched.
files() {
  local names=() pattern
  for pattern in "$@"; do names+=(-o -name "$pattern"); done
  find . \( -path ./build -o -path ./.git -o -path ./shared -o -path ./dashboard/dist -o -name node_modules \) -prune -o \
    -type f \( "${names[@]:1}" \) -printf '%P\n' | LC_ALL=C sort
}

# finish FINDINGS: prints them and ends the lint.
finish() {
  [[ -z $1 ]] && exit 0
  printf '%s\n' "$1"
  exit 1
}
