// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"errors"

	"golang.org/x/sys/unix"
)

// resolveRenames decides of the renames that the events left open whether they replaced something.
//
// What was replaced is gone, and no event named it when it went. So a victim that is still
// there is none, and neither is one that was removed by its name. And a directory that is gone
// without a word, though something changed it before, was the victim of a rename that seems to
// have none. Where more than one rename can have done it, or a removal that the kernel does not
// say the directory of, the answer is not Complete.
func (d *diff) resolveRenames() {
	var dirs []*node // gone without a word
	for _, p := range d.w.doubts {
		v := p.victim
		switch {
		case v.told || d.exists(v, p.isDir):
			d.w.alone(p)
		case p.isDir:
			v.told = true
			d.w.clear = append(d.w.clear, p)
			dirs = append(dirs, v)
		default:
			p.replaced(v)
		}
	}
	if len(d.w.clear) == 0 {
		return
	}
	for _, n := range d.w.touched {
		if d.locate(n); !n.place.alive && !n.told {
			dirs = append(dirs, n)
		}
	}
	switch {
	case len(dirs) == 0:
	case len(dirs) == 1 && len(d.w.clear) == 1 && !d.w.unnamed:
		d.w.clear[0].replaced(dirs[0])
	default:
		d.lost.because(errors.New("which of several renames replaced a directory was not told"))
	}
}

// exists reports whether a file has a name, whichever.
func (d *diff) exists(n *node, isDir bool) bool {
	if isDir {
		d.locate(n)
		return n.place.alive
	}
	fd, err := d.openAgain(n.key, 0)
	if err != nil {
		if !errors.Is(err, unix.ESTALE) && !errors.Is(err, unix.ENOENT) {
			d.lost.becausef(err, "cannot open a file by its handle")
		}
		return false
	}
	defer unix.Close(fd)
	var st unix.Statx_t
	return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_NLINK, &st) == nil && st.Nlink > 0
}
