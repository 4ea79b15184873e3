# SPDX-License-Identifier: Apache-2.0
# Sourced by the end-to-end tests: the programs under test, a scratch folder, and checks that count their failures.
# Usage of a test: NAME BIN_FOLDER, where the programs are. Ends with exit code 1 when a check failed.
set -euo pipefail
bin=$(cd "${1:?usage: $0 BIN_FOLDER}" && pwd)
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
expected_outputs=$source_root/tests/models/expected_outputs.txt
scratch=$(mktemp -d)
export XDG_DATA_HOME=$scratch/data  # keeps tests away from the user's records
failures=0
checks=0

# clean_up: kills the processes that the test started, by their ids, and removes the scratch folder.
clean_up() {
  local pids
  mapfile -t pids < <(jobs -p)
  [[ ${#pids[@]} -eq 0 ]] || kill -9 "${pids[@]}" 2>/dev/null || true
  chmod -R u+w "$scratch" 2>/dev/null || true
  rm -rf "$scratch"
}
trap clean_up EXIT

# failed TEXT: counts a failed check and prints TEXT.
failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# succeeds COMMAND...: COMMAND must end with exit code 0. Its standard output goes to $scratch/out, its errors to $scratch/err.
succeeds() {
  local code=0
  checks=$((checks + 1))
  "$@" > "$scratch/out" 2> "$scratch/err" || code=$?
  [[ $code -eq 0 ]] || failed "$* ended with $code: $(tail -3 "$scratch/err")"
}

# fails CODE TEXT COMMAND...: COMMAND must end with exit code CODE, print no standard output, and print an error that matches
# the regular expression TEXT.
fails() {
  local wanted=$1 text=$2 code=0
  shift 2
  checks=$((checks + 1))
  "$@" > "$scratch/out" 2> "$scratch/err" || code=$?
  if [[ $code -ne $wanted ]]; then
    failed "$* ended with $code, should be $wanted: $(tail -3 "$scratch/err")"
  elif ! grep -qiE -- "$text" "$scratch/err"; then
    failed "$* does not say '$text': $(tail -3 "$scratch/err")"
  elif [[ -s $scratch/out ]]; then
    failed "$* failed and still printed: $(head -3 "$scratch/out")"
  fi
}

# holds TEXT JQ_FILTER FILE: the filter must be true of the JSON document in FILE. TEXT is the message if it is not.
holds() {
  checks=$((checks + 1))
  jq -e "$2" "$3" > /dev/null 2>&1 || failed "$1: not so in $(head -c 600 "$3")"
}

# finish: prints the counts, and is the last line of a test, whose exit code it decides.
finish() {
  echo "$checks checks, $failures failed"
  [[ $failures -eq 0 ]]
}
