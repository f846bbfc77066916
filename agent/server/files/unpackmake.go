// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"archive/tar"
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/entry"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// dir makes a directory. One that is there stays as it is.
func (u *unpacker) dir(parent int, name string, w *unpacked) error {
	err := unix.Mkdirat(parent, name, 0o700)
	if err == nil {
		u.dirs = append(u.dirs, madeDir{w.name, w.Header})
		return nil
	}
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	fd, err := beneath(u.top, w.name)
	if errors.Is(err, unix.ENOTDIR) {
		return fault.New(fault.Exists, "what is there is no directory")
	}
	descriptor.CloseAll([]int{fd})
	return err
}

// leaveDirs finishes the directories that the entry of a name is not in. It runs within Do.
func (u *unpacker) leaveDirs(name string) {
	for len(u.dirs) > 0 {
		d := u.dirs[len(u.dirs)-1]
		if name != "" && (d.name == "." || strings.HasPrefix(name, d.name+"/")) {
			return
		}
		u.dirs = u.dirs[:len(u.dirs)-1]
		fd, err := dirs.Openat2(u.top, d.name, unix.OpenHow{
			Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_SYMLINKS,
		})
		if err == nil {
			err = u.attributes(fd, d.Header)
			_ = unix.Close(fd)
		}
		if err != nil {
			u.leave(d.name, "its mode and time: "+leftWord(err))
		}
	}
}

// symlink makes a link, in the place of what has its name. Where it leads is for who follows it.
func (u *unpacker) symlink(parent int, name string, h *tar.Header) error {
	return u.place(parent, name, func(as string) error {
		if h.Linkname == "" || strings.IndexByte(h.Linkname, 0) >= 0 {
			return fault.New(fault.Invalid, "a link to nothing")
		}
		if err := unix.Symlinkat(h.Linkname, parent, as); err != nil {
			return err
		}
		if u.owners {
			_ = unix.Fchownat(parent, as, h.Uid, h.Gid, unix.AT_SYMLINK_NOFOLLOW)
		}
		return unix.UtimesNanoAt(parent, as, times(h), unix.AT_SYMLINK_NOFOLLOW)
	})
}

// link adds a name to a file below the top.
func (u *unpacker) link(parent int, name, target string) error {
	clean, why := entry.Path(target)
	if why != "" {
		return fault.New(fault.Invalid, "a link to %q: %s", message.Clip(wire.EscapeName(target), 200), why)
	}
	dir, from := path.Split(clean)
	fd, err := beneath(u.top, path.Clean(dir))
	if err != nil {
		return fault.New(fault.Invalid, "a link to %q: %s", message.Clip(wire.EscapeName(target), 200), leftWord(err))
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstatat(fd, from, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fault.New(fault.Invalid, "a link to %q, where no file is", message.Clip(wire.EscapeName(target), 200))
	}
	return u.place(parent, name, func(as string) error { return unix.Linkat(fd, from, parent, as, 0) })
}

// place makes something under a name that is free, or else puts it in the place of a file or link.
func (u *unpacker) place(parent int, name string, do func(as string) error) error {
	err := do(name)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	if err := mayGive(parent, name); err != nil {
		return err
	}
	tmp := tempName()
	if err := do(tmp); err != nil {
		return err
	}
	err = unix.Renameat(parent, tmp, parent, name)
	_ = unix.Unlinkat(parent, tmp, 0) // two names of one file are left by a rename as they are
	return err
}

// mayGive asks whether what is there may be replaced: as with a file that is written, what the user may
// not write to stays.
func mayGive(parent int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return fault.New(fault.Exists, "a directory is there")
	case unix.S_IFREG:
		return unix.Faccessat2(parent, name, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW)
	}
	return nil
}

// create creates a file: under its name if that is free and the content is at hand, and else
// under another, tmp, that takes the name when it is complete.
func (u *unpacker) create(parent int, name string, apart bool) (fd int, tmp string, err error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if !apart {
		if fd, err = unix.Openat(parent, name, flags, 0o600); !errors.Is(err, unix.EEXIST) {
			return fd, name, err
		}
	}
	if err := mayGive(parent, name); err != nil && !errors.Is(err, unix.ENOENT) {
		return -1, "", err
	}
	tmp = tempName()
	fd, err = unix.Openat(parent, tmp, flags, 0o600)
	return fd, tmp, err
}

// finish sets the mode and time of a file, and renames it to its own name.
func (u *unpacker) finish(parent, fd int, tmp, name string, h *tar.Header) error {
	err := u.attributes(fd, h)
	if err == nil && tmp != name {
		err = unix.Renameat(parent, tmp, parent, name)
	}
	if err != nil {
		_ = unix.Unlinkat(parent, tmp, 0)
		return err
	}
	u.sum.Bytes += h.Size
	return nil
}

// attributes sets mode and time, and owners if they are asked for; no set-user-id bits and their like.
func (u *unpacker) attributes(fd int, h *tar.Header) error {
	if u.owners {
		if err := unix.Fchown(fd, h.Uid, h.Gid); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(fd, uint32(h.Mode)&0o1777); err != nil {
		return err
	}
	return unix.UtimesNanoAt(fd, "", times(h), unix.AT_EMPTY_PATH)
}

func times(h *tar.Header) []unix.Timespec {
	return []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: h.ModTime.Unix(), Nsec: int64(h.ModTime.Nanosecond())}}
}
