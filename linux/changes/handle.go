// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// handle is the kernel's struct file_handle with room for the longest. Its
// first 8+length bytes are the key under which a window knows a file: that is
// also how the handle stands in an event.
type handle [(8 + 128) / 4]uint32

func (h *handle) bytes() []byte {
	all := unsafe.Slice((*byte)(unsafe.Pointer(h)), len(h)*4)
	return all[:min(8+int(h[0]), len(all))]
}

// open opens what the key names, wherever it is now, on the mount of root.
// The key came from the kernel; a file that is gone is ESTALE.
func (h *handle) open(root int, key string, flags int) (int, error) {
	if len(key) < 8 || len(key) > len(h)*4 || int(binary.NativeEndian.Uint32([]byte(key[:4]))) != len(key)-8 {
		return -1, unix.ESTALE
	}
	*h = handle{}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(h)), len(h)*4), key)
	for {
		fd, _, errno := unix.Syscall(unix.SYS_OPEN_BY_HANDLE_AT, uintptr(root), uintptr(unsafe.Pointer(h)), uintptr(flags|unix.O_CLOEXEC))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return -1, errno
		}
		return int(fd), nil
	}
}

// read fills h with the handle of a name in a directory, never following a
// link. An empty name means dirfd itself.
func (h *handle) read(dirfd int, name string) error {
	h[0] = uint32(len(h)*4 - 8)
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	flags := 0
	if name == "" {
		flags = unix.AT_EMPTY_PATH
	}
	var mount int32
	_, _, errno := unix.Syscall6(unix.SYS_NAME_TO_HANDLE_AT, uintptr(dirfd), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(h)), uintptr(unsafe.Pointer(&mount)), uintptr(flags), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
