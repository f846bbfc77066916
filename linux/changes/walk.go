// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"errors"

	"golang.org/x/sys/unix"
)

// maxDepth bounds the walk of a moved directory, whose open files it holds.
const maxDepth = 64

// walkMoved adds what is in a directory that moved, under its old and its new
// path. Names that events were about are not its business: directory has them.
func (d *diff) walkMoved(n *node) {
	if !n.place.alive {
		return
	}
	before, had := d.before(n)
	if had && before == n.place.now || !(d.holds(n.place.now) || had && d.holds(before)) {
		return
	}
	fd, err := d.handle.open(d.root, n.key, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		d.lost.becausef(err, "cannot open a directory that moved")
		return
	}
	defer unix.Close(fd)
	d.walk(fd, n, n.place.now, before, had, 0)
}

// walk lists one directory; n may be nil, where no event was about it.
func (d *diff) walk(fd int, n *node, now, before string, had bool, depth int) {
	if n != nil && n.dropped {
		d.lost.because(errors.New("a directory moved in whose events were thrown away"))
		had = false
	}
	buf := make([]byte, 16<<10)
	for {
		got, err := unix.ReadDirent(fd, buf)
		if err != nil {
			d.lost.becausef(err, "cannot list a directory that moved")
		}
		if got <= 0 {
			return
		}
		_, _, names := unix.ParseDirent(buf[:got], -1, nil)
		for _, name := range names {
			if n != nil {
				if e := n.names[name]; e != nil && e.before != unsaid {
					continue
				}
			}
			// A bound of its own: the listing is cut at max anyhow, and the walk
			// may see names that turn out to be no change.
			if d.walked++; d.walked > 4*d.max {
				d.truncated = true
				d.lost.because(errors.New("the directories that moved hold too many names"))
				return
			}
			is := item{}
			if !d.look(fd, name, &is) {
				continue
			}
			isDir := is.stat.Mode&unix.S_IFMT == unix.S_IFDIR
			nowPath, beforePath := join(now, name), join(before, name)
			if d.holds(now) {
				d.item(nowPath).set(&is)
			}
			if had && d.holds(before) {
				it := d.item(beforePath)
				it.before, it.was, it.wasDir = true, is.is, isDir
			}
			if isDir {
				d.descend(fd, name, d.w.nodes[is.is], nowPath, beforePath, had, depth+1)
			}
		}
	}
}

func (d *diff) descend(fd int, name string, n *node, now, before string, had bool, depth int) {
	if depth > maxDepth {
		d.truncated = true
		d.lost.because(errors.New("a directory that moved is too deep"))
		return
	}
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	}
	sub, err := unix.Openat2(fd, name, &how)
	if err != nil {
		d.lost.becausef(err, "cannot enter the directory %.80q", name)
		return
	}
	defer unix.Close(sub)
	d.walk(sub, n, now, before, had, depth)
}
