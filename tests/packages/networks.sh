# SPDX-License-Identifier: Apache-2.0
# Sourced after boards.sh by tests whose machines have a network namespace each, on one network. A test defines `hone`: how
# the command runs on the machine of a user.
command -v ip > /dev/null || skip "needs iproute2"

prefix=hone-$$
machines=()
tidy() {
  for machine in wire "${machines[@]}"; do ip netns del "$prefix-$machine" 2> /dev/null || true; done
}

# make_networks MACHINE...: the first has the address 10.77.0.1, the second 10.77.0.2, and so on.
make_networks() {
  local i machine
  machines=("$@")
  ip netns add "$prefix-wire"
  ip -n "$prefix-wire" link add wire type bridge
  ip -n "$prefix-wire" link set wire up
  for i in "${!machines[@]}"; do
    machine=${machines[i]}
    ip netns add "$prefix-$machine"
    ip -n "$prefix-$machine" link add eth0 type veth peer name "$machine" netns "$prefix-wire"
    ip -n "$prefix-wire" link set "$machine" master wire up
    ip -n "$prefix-$machine" addr add "10.77.0.$((i + 1))/24" dev eth0
    ip -n "$prefix-$machine" link set eth0 up
    ip -n "$prefix-$machine" link set lo up
  done
}
on() { ip netns exec "$prefix-$1" "${@:2}"; }

# start NAME MACHINE COMMAND...: runs COMMAND on MACHINE in the background, with its log in NAME.log.
declare -A running=()
start() {
  ip netns exec "$prefix-$2" "${@:3}" >> "$work/$1.log" 2>&1 &
  running[$1]=$!
  processes+=($!)
}
# await SECONDS TEXT COMMAND...: repeats COMMAND until it succeeds. Fails with TEXT after SECONDS.
await() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" > /dev/null 2>&1; do
    ((SECONDS < end)) || fail "never: $what"
    sleep 0.5
  done
}
# says FILTER COMMAND...: succeeds if the filter is true of what `hone COMMAND --json` prints.
says() { hone "${@:2}" --json | jq -e "$1"; }
