// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// canName reports whether files without a name can get one here.
func canName() bool {
	_, err := os.Lstat("/proc/self/fd")
	return err == nil
}

// unnamed creates a file that has no name. Not every disk can.
func unnamed(in *os.Root) (*os.File, error) {
	return in.OpenFile(".", os.O_WRONLY|unix.O_TMPFILE, 0o600)
}

// pathOf is a path of an open file.
func pathOf(f *os.File) string { return pathOfFD(int(f.Fd())) }

func pathOfFD(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// nameIn names a file in a directory. A name that there is already is fs.ErrExist.
func nameIn(dir *os.File, name string, f *os.File) error {
	return nameFD(int(dir.Fd()), name, int(f.Fd()))
}

func nameFD(dir int, name string, fd int) error {
	err := unix.Linkat(fd, "", dir, name, unix.AT_EMPTY_PATH)
	if err == unix.ENOENT { // before Linux 6.10 that takes a capability
		err = unix.Linkat(unix.AT_FDCWD, pathOfFD(fd), dir, name, unix.AT_SYMLINK_FOLLOW)
	}
	return err
}

// small writes a file whose content is at hand, by the fewest calls: most copies are of such. It is errNamed where
// a file cannot be without a name.
func (m *maker) small(in *openDir, name string, e *entry) error {
	d, err := in.handle()
	if err != nil {
		return err
	}
	dir := int(d.Fd())
	fd, err := unix.Openat(dir, ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return errNamed
	}
	defer unix.Close(fd)
	for b := e.data; len(b) > 0 && err == nil; {
		var n int
		if n, err = unix.Write(fd, b); err == unix.EINTR {
			err = nil
		} else if err == nil {
			b = b[n:]
		}
	}
	if err == nil {
		err = unix.Fchmod(fd, uint32(e.mode))
	}
	if err != nil {
		return fault.Wrap(fault.Exhausted, err, "%s cannot be written", e.name)
	}
	at := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: e.time.Unix(), Nsec: int64(e.time.Nanosecond())}}
	if err = unix.UtimesNanoAt(fd, "", at, unix.AT_EMPTY_PATH); err != nil { // before Linux 5.8 it is not known
		err = os.Chtimes(pathOfFD(fd), time.Time{}, e.time)
	}
	if err != nil {
		m.left = append(m.left, leftOut{e.name, "its time: " + reason(err)})
	}
	return place(in.root, name, func(as string) error { return nameFD(dir, as, fd) })
}
