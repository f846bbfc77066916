// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// place is where a directory is and was, relative to the root; looked up once.
type place struct {
	looked bool
	alive  bool
	now    string // with alive

	asked  bool // before is answered, or being answered
	had    bool
	before string // with had
}

// locateOpen opens a directory by its handle and learns its path; -1 where it is gone.
func (d *diff) locateOpen(n *node) int {
	if n.place.looked && !n.place.alive {
		return -1
	}
	n.place.looked = true
	fd, err := d.openAgain(n.key, unix.O_DIRECTORY)
	if err != nil {
		if !errors.Is(err, unix.ESTALE) && !errors.Is(err, unix.ENOENT) {
			d.lost.becausef(err, "cannot open a directory by its handle")
		}
		n.place.alive = false
		return -1
	}
	n.place.now, n.place.alive = d.pathNow(fd)
	if !n.place.alive {
		unix.Close(fd)
		return -1
	}
	return fd
}

// openAgain opens a file by its handle. Of one that is gone the kernel says
// ENOMEM, and not ESTALE, while its inode number is being given to a new file, by
// whatever process of the host: it is asked again until it has done so. That takes
// microseconds, or on a busy host as long as its creator waits for a processor.
func (d *diff) openAgain(key string, kind int) (fd int, err error) {
	for pause := 50 * time.Microsecond; ; pause *= 2 {
		fd, err = d.handle.open(d.root, key, unix.O_PATH|unix.O_NOFOLLOW|kind)
		if pause = min(pause, d.patience); !errors.Is(err, unix.ENOMEM) || pause == 0 {
			return fd, err
		}
		d.patience -= pause
		time.Sleep(pause)
	}
}

func (d *diff) locate(n *node) {
	if n.place.looked {
		return
	}
	if fd := d.locateOpen(n); fd >= 0 {
		unix.Close(fd)
	}
}

// pathNow returns the path of an open directory relative to the root.
func (d *diff) pathNow(fd int) (string, bool) {
	path, err := pathOf(fd)
	if err != nil {
		d.lost.becausef(err, "cannot tell the path of a directory") // above all: too deep to have one
		return "", false
	}
	rel, ok := strings.CutPrefix(path, d.base)
	switch {
	case !ok:
		return "", false // not below the root: the mount itself was moved meanwhile
	case rel == "" || rel == "/":
		return "", true
	case rel[0] != '/':
		return "", false
	}
	rel = rel[1:]
	if !strings.HasSuffix(rel, " (deleted)") {
		return rel, true
	}
	// So the kernel marks a removed directory, and so may one be named.
	var open, named unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_INO, &open) != nil ||
		unix.Statx(d.root, rel, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO, &named) != nil {
		return "", false
	}
	return rel, open.Ino == named.Ino
}

// pathOf returns the kernel's path of an open file.
func pathOf(fd int) (string, error) {
	var name [32]byte
	link := strconv.AppendInt(append(name[:0], "/proc/self/fd/"...), int64(fd), 10)
	var buf [4096]byte
	n, err := unix.Readlink(string(link), buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// before returns the path that a directory had when the window began; false
// where it did not exist.
//
// A directory that did not move itself moved with the nearest one above it that
// did: nothing that was made in the window can stand between the two.
func (d *diff) before(n *node) (string, bool) {
	p := &n.place
	if p.asked {
		return p.before, p.had
	}
	p.asked = true // ends a cycle, which only lost events can make
	if n.born {
		return "", false
	}
	if n.from != nil {
		if base, ok := d.before(n.from); ok {
			p.before, p.had = join(base, n.fromName), true
		}
		return p.before, p.had
	}
	if d.locate(n); !p.alive {
		p.before, p.had = d.lowerPath(n.key)
		// What was in it cannot be named: unless all of it was new, that is a loss.
		if !p.had && n.hadNames() {
			d.lost.because(errors.New("the place of a directory that is gone was not told"))
		}
		return p.before, p.had
	}
	p.before, p.had = p.now, true
	for at := p.now; len(d.byPath) > 0; {
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			break
		}
		at = at[:i]
		if above := d.byPath[at]; above != nil {
			base, ok := d.before(above)
			p.before, p.had = base+p.now[len(at):], ok
			break
		}
	}
	return p.before, p.had
}
