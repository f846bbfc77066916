// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"
)

// An overlay's file handle wraps that of the layer's file system: 3 bytes of
// padding, version, magic, length, flags, type, a uuid, and the inner handle.
// The length counts from the version.
const (
	wrapType    = 0xf8
	wrapMagic   = 0xfb
	wrapUpper   = 1 << 2
	wrapLength  = 5
	wrapFlags   = 6
	wrapInner   = 7
	wrapHeader  = 24
	wrapPadding = 3
)

// lowerPath names a directory of a lower layer that the overlay no longer has:
// its handle leads to the directory in the layer, which has the same path there.
func (d *diff) lowerPath(key string) (string, bool) {
	inner, ok := unwrap(key)
	if !ok {
		return "", false
	}
	for _, layer := range d.lower {
		if path, ok := d.pathInLayer(layer, inner); ok {
			return path, true
		}
	}
	return "", false
}

func (d *diff) pathInLayer(layer, key string) (string, bool) {
	top, err := unix.Open(layer, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(top)
	fd, err := d.handle.open(top, key, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	base, err := pathOf(top)
	if err != nil {
		return "", false
	}
	path, err := pathOf(fd)
	if err != nil {
		return "", false
	}
	path, ok := strings.CutPrefix(path, strings.TrimSuffix(base, "/")+"/")
	return path, ok
}

// unwrap returns the key of the handle inside an overlay's handle of a lower directory.
func unwrap(key string) (string, bool) {
	if len(key) < 8 || binary.NativeEndian.Uint32([]byte(key[4:8])) != wrapType {
		return "", false
	}
	h := key[8:]
	if len(h) < wrapHeader || h[wrapPadding+1] != wrapMagic || h[wrapFlags]&wrapUpper != 0 {
		return "", false
	}
	end := wrapPadding + int(h[wrapLength])
	if end < wrapHeader || end > len(h) {
		return "", false
	}
	var head [8]byte
	binary.NativeEndian.PutUint32(head[:4], uint32(end-wrapHeader))
	binary.NativeEndian.PutUint32(head[4:], uint32(h[wrapInner]))
	return string(head[:]) + h[wrapHeader:end], true
}

// hadNames reports whether the directory is known to have had a name in it when
// the window began.
func (n *node) hadNames() bool {
	for _, e := range n.names {
		if e.before == present {
			return true
		}
	}
	return false
}
