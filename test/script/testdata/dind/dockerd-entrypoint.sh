#!/bin/sh
# What the entry point of the image docker:dind does with DOCKER_TLS_CERTDIR: certificates of its own in /certs/ca, /certs/server and
# /certs/client, kept where they are there, and an Engine that listens at 2376 for who has one of them.
set -eu
# A privileged container has these writable; one that has most rights makes them so.
mount -o remount,bind,rw /sys 2>/dev/null || true
for at in /sys/fs/cgroup /sys/fs/cgroup/*; do mount -o remount,bind,rw "$at" 2>/dev/null || true; done
san="DNS:$(hostname),DNS:docker,DNS:localhost,IP:127.0.0.1${DOCKER_TLS_SAN:+,$DOCKER_TLS_SAN}"
dir=$DOCKER_TLS_CERTDIR
mkdir -p "$dir/ca" "$dir/server" "$dir/client"
export OPENSSL_CONF=/etc/openssl.cnf
if [ ! -s "$dir/ca/cert.pem" ]; then
	openssl genrsa -out "$dir/ca/key.pem" 2048
	openssl req -new -key "$dir/ca/key.pem" -out "$dir/ca/cert.pem" -subj '/CN=docker:dind CA' -x509 -days 825 -extensions v3_ca
fi
sign() { # directory, name, extensions
	openssl genrsa -out "$1/key.pem" 2048
	openssl req -new -key "$1/key.pem" -out "$1/csr.pem" -subj "/CN=$2"
	printf '[ x509_exts ]\n%s\n' "$3" >"$1/openssl.cnf"
	openssl x509 -req -in "$1/csr.pem" -CA "$dir/ca/cert.pem" -CAkey "$dir/ca/key.pem" -CAcreateserial -out "$1/cert.pem" -days 825 -extfile "$1/openssl.cnf" -extensions x509_exts
	cp "$dir/ca/cert.pem" "$1/ca.pem"
}
sign "$dir/server" 'docker:dind server' "subjectAltName = $san"
[ -s "$dir/client/cert.pem" ] || sign "$dir/client" 'docker:dind client' 'extendedKeyUsage = clientAuth'
rm -f /var/run/docker.pid
exec docker-init -- dockerd --host=unix:///var/run/docker.sock --host=tcp://0.0.0.0:2376 \
	--tlsverify --tlscacert "$dir/server/ca.pem" --tlscert "$dir/server/cert.pem" --tlskey "$dir/server/key.pem"
