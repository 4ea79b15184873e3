# Sourced by the tests that run programs on systems other than this one, whose files lie in a folder. Root only.

# on_system [--own-users] ROOT PREPARE COMMAND...: runs it as root of the system in ROOT, with processes and mounts of
# its own and nothing of this one's environment. PREPARE is bash code that runs before, on this system, with $root. As on
# a machine, user namespaces can be made there, which a mere chroot refuses. --own-users: root is the only user there.
on_system() {
  local users=()
  if [[ $1 == --own-users ]]; then
    users=(--user --map-root-user)
    shift
  fi
  unshare "${users[@]}" --mount --pid --fork --kill-child bash -c '
    set -e
    root=$1 prepare=$2; shift 2
    mount --bind "$root" "$root"
    mount --rbind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    eval "$prepare"
    cd "$root"
    mkdir -p old
    pivot_root . old
    while read -r name; do unset "$name"; done < <(compgen -e)
    export HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin
    exec "$@"' bash "$@"
}
