#!/bin/sh
# Installs the Debian packages that sandpit uses, those that are missing:
#   mmdebstrap   builds the images
#   btrfs-progs  makes the store of the writable layers (disk limits, snapshots)
#   gpg, debian-archive-keyring  to check what an image is built from
#   gcc          for Go's race detector, which only the tests use
# and with "tests" as its argument, what nothing else needs:
#   npm          fetches the MCP conformance suite and clients
#   git          serves what sandboxes clone
#   iproute2, nftables, libseccomp-dev  are for a cluster: its network, its policies, its runc
# Without root, or without apt-get, it says what is missing and goes on.
set -eu

missing=""
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need mmdebstrap mmdebstrap
need mkfs.btrfs btrfs-progs
need gpg gpg
need gcc gcc
if [ "${1:-}" = tests ]; then
	need npm npm
	need git git
	need ip iproute2
	need nft nftables
	[ -e /usr/include/seccomp.h ] || missing="$missing libseccomp-dev"
fi
[ -e /usr/include/stdlib.h ] || missing="$missing libc6-dev"
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing="$missing debian-archive-keyring"
[ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates"

[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	echo "setup: missing:$missing. Install them as root; images, disk limits or tests may not work without." >&2
	exit 0
fi
echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update -q && apt-get install -y -q --no-install-recommends $missing; } >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "setup: apt-get could not install:$missing" >&2
	exit 1
fi
