# Copyright 2026 The sandpit authors
# SPDX-License-Identifier: Apache-2.0

# Runs a program of a new root, as its user 1000 and without privileges.
# $1 the root, $2 "host" or "none" for the network, $3 a writable directory
# or "", $4 lines of "host path TAB place in the root", then the program.
# It is the first process of its own mount and process namespaces.
set -eu
root=$1 network=$2 writable=$3 binds=$4
shift 4

# The root is its own mount, so that nothing below touches the files on disk.
mount --bind "$root" "$root"
mount -t tmpfs -o nosuid,noexec,mode=0755 dev "$root/dev"
for node in null zero full random urandom; do
	: >"$root/dev/$node"
	mount --bind "/dev/$node" "$root/dev/$node"
done
mkdir -m 1777 "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -t tmpfs -o nosuid,nodev,mode=1777 tmp "$root/tmp"
if [ -n "$writable" ]; then
	mount --bind "$writable" "$root/mnt"
fi
tab=$(printf '\t')
while IFS="$tab" read -r from at; do
	[ -n "$from" ] || continue
	[ -e "$root$at" ] || : >"$root$at"
	mount --bind "$from" "$root$at"
	mount -o remount,bind,ro "$root$at"
done <<END
$binds
END

set -- chroot "$root" setpriv --reuid=1000 --regid=1000 --clear-groups \
	--no-new-privs --bounding-set=-all --inh-caps=-all -- "$@"
if [ "$network" = none ]; then
	set -- unshare --net -- "$@"
fi
exec "$@"
