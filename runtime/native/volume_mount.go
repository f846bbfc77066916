// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/mount"
	"sandpit.dev/runtime/native/furnish"
	"sandpit.dev/sandbox"
)

// volumes are those of a life that begins.
type volumes struct {
	dirs  []*os.File // of the store
	ready []furnish.Volume
}

// openVolumes makes mounts of volumes for the sandbox's user namespace, and the places
// on its root where they go, and puts down that it does. No code of the sandbox's
// runs yet, but what is on the disk is of its making; and whoever else mounts a volume
// may change that meanwhile. The result is to be closed, after an error too.
func (i *Instance) openVolumes(mounts []sandbox.Mount, root, userns *os.File) (v volumes, err error) {
	if err := sandbox.CheckMounts(mounts); err != nil {
		return v, err
	}
	i.d.volumes.RLock()
	defer i.d.volumes.RUnlock()
	if err := i.noteVolumes(mounts); err != nil {
		return v, err
	}
	for _, m := range mounts {
		dir, err := i.d.layers.OpenVolume(string(m.Volume))
		if err != nil {
			return v, err
		}
		v.dirs = append(v.dirs, dir)
		if m.Sub != "" {
			if dir, err = makeDirs(dir, m.Sub); err != nil {
				return v, blockedAs(err, "the directory %s of volume %s cannot be mounted", m.Sub, m.Volume)
			}
			v.dirs = append(v.dirs, dir)
		}
		at, err := makeDirs(root, strings.TrimPrefix(m.Path, "/"))
		if err != nil {
			return v, blockedAs(err, "no volume can be mounted at %s", m.Path)
		}
		tree, err := i.d.lendVolume(dir, userns, m.ReadOnly)
		if err != nil {
			_ = at.Close()
			return v, fault.Wrap(fault.Unavailable, err, "volume %s cannot be mounted", m.Volume).
				WithRemedy("run `sandpit doctor` on the host")
		}
		v.ready = append(v.ready, furnish.Volume{Tree: tree, At: at, Path: m.Path})
	}
	return v, nil
}

// lendVolume makes a detached mount of a volume's directory. Nothing inside can make
// a read-only one writable: no command has the right to change a mount.
func (d *Driver) lendVolume(dir, userns *os.File, readOnly bool) (*os.File, error) {
	tree, err := d.clone(int(dir.Fd()))
	if err != nil {
		return nil, err
	}
	attrs := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if readOnly {
		attrs |= unix.MOUNT_ATTR_RDONLY
	}
	if err := mount.Lend(tree, userns, attrs); err != nil {
		_ = tree.Close()
		return nil, err
	}
	return tree, nil
}

// close lets go of what a life needs no more once it has its volumes.
func (v *volumes) close(later *closer) {
	var slow []io.Closer // see closer
	for _, r := range v.ready {
		_ = r.At.Close() // it holds the overlay
		slow = append(slow, r.Tree)
	}
	for _, dir := range v.dirs {
		slow = append(slow, dir)
	}
	later.drop(slow)
}

// blocked is the error of a path on which this name is a file or a link.
type blocked string

func (b blocked) Error() string { return "/" + sandbox.Clip(string(b), 80) + " is a file or a link" }

// blockedAs returns the error of makeDirs its code and words.
func blockedAs(err error, format string, args ...any) error {
	switch _, ok := errors.AsType[blocked](err); {
	case ok:
		return fault.Wrap(fault.Conflict, err, format, args...).WithRemedy("remove what is there, or choose another path")
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fault.NoSpace(fault.SandboxDisk, err, format, args...).WithRemedy("delete files, or give it a larger disk")
	}
	return fault.Wrap(fault.Unavailable, err, format, args...)
}

// makeDirs opens the directory name below root, and makes it where it is missing, as
// whoever owns the directory above. No link is followed, and nothing on the way is
// trusted to stay what it was.
func makeDirs(root *os.File, name string) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	const tries = 10 // of a directory that somebody removes as often as it is made
	var held []io.Closer
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	dir := root
	for at, rest := "", name; rest != ""; {
		var next string
		next, rest, _ = strings.Cut(rest, "/")
		at = strings.TrimPrefix(at+"/"+next, "/")
		for try, made := 0, false; ; try++ {
			fd, err := unix.Openat2(int(dir.Fd()), next, &how)
			if err == nil {
				above := dir
				dir = os.NewFile(uintptr(fd), at)
				held = append(held, dir)
				if made {
					openToAll(above, dir)
				}
				break
			}
			switch {
			case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
				return nil, blocked(at)
			case errors.Is(err, unix.ENOENT) && try < tries:
				if err = makeDir(dir, next); err == nil {
					made = true
				} else if errors.Is(err, fs.ErrExist) {
					err = nil
				}
			case (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)) && try < tries:
				err = nil
			}
			if err != nil {
				return nil, &os.PathError{Op: "open", Path: at, Err: err}
			}
		}
	}
	held = held[:len(held)-1]
	return dir, nil
}

// makeDir makes a directory that belongs to who owns the one above.
func makeDir(dir *os.File, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), "", &st, unix.AT_EMPTY_PATH); err != nil {
		return err
	}
	var err error
	if failed := withFileIDs(st.Uid, st.Gid, func() { err = unix.Mkdirat(int(dir.Fd()), name, 0o755) }); failed != nil {
		return failed
	}
	return err
}

// openToAll gives a directory that was just made its mode, whatever the server's umask
// is. Where somebody else's is in its place by now, that stays as it is.
func openToAll(above, dir *os.File) {
	const mode = 0o755
	var st, owner unix.Stat_t
	if unix.Fstatat(int(above.Fd()), "", &owner, unix.AT_EMPTY_PATH) != nil || unix.Fstatat(int(dir.Fd()), "", &st, unix.AT_EMPTY_PATH) != nil {
		return
	}
	if st.Uid == owner.Uid && st.Mode&0o7777 != mode {
		if unix.Fchmodat(int(dir.Fd()), "", mode, unix.AT_EMPTY_PATH) != nil { // before Linux 6.6
			_ = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), mode)
		}
	}
}
