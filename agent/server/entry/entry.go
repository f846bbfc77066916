// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package entry checks the entries of tar archives of which nothing is trusted.
package entry

import (
	"archive/tar"
	"path"
	"strings"
	"time"

	"sandpit.dev/agent/wire"
)

// Check returns where an entry belongs, as [Path] does, or why it is not made. It makes of the header
// what it needs: the type is that of a file, a directory or a link, a size is a file's, and nothing of
// the archive is kept alive by it but its names, of at most [wire.MaxPath] bytes each.
//
// The records of a header, of which it otherwise holds a copy, may have a megabyte.
func Check(h *tar.Header) (clean, why string) {
	if clean, why = Path(h.Name); why != "" {
		return "", why
	}
	switch h.Typeflag {
	case tar.TypeDir, tar.TypeSymlink, tar.TypeLink:
		h.Size = 0
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		h.Typeflag = tar.TypeReg
	case tar.TypeChar, tar.TypeBlock:
		return "", "a device"
	case tar.TypeFifo:
		return "", "a named pipe"
	default:
		return "", "its type is not known"
	}
	if len(h.Linkname) > wire.MaxPath {
		return "", "the path that it leads to is too long"
	}
	*h = tar.Header{
		Typeflag: h.Typeflag, Name: strings.Clone(h.Name), Linkname: strings.Clone(h.Linkname),
		Size: h.Size, Mode: h.Mode, Uid: h.Uid, Gid: h.Gid, ModTime: time.Unix(h.ModTime.Unix(), int64(h.ModTime.Nanosecond())),
	}
	return strings.Clone(clean), ""
}

// Path returns the path of a name below the directory that an archive is unpacked to, or why it is
// none.
func Path(name string) (clean, why string) {
	switch {
	case name == "", strings.IndexByte(name, 0) >= 0:
		return "", "it has no name"
	case len(name) > wire.MaxPath:
		return "", "its name is too long"
	case name[0] == '/':
		return "", "its name is absolute"
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", "its name has .."
		}
	}
	return path.Clean(name), ""
}
