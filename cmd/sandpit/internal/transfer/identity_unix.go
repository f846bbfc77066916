// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package transfer

import (
	"io/fs"
	"syscall"
)

// nonblocking keeps an open from waiting for the other end of a pipe.
const nonblocking = syscall.O_NONBLOCK

// fileID says which file a name is of.
type fileID struct{ dev, ino uint64 }

// identity returns which file it is; many reports whether it has other names.
func identity(info fs.FileInfo) (id fileID, many bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return id, false
	}
	return fileID{uint64(st.Dev), uint64(st.Ino)}, st.Nlink > 1 //nolint:unconvert // the types differ between systems
}
