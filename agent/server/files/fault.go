// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"path"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/fault"
)

// fileFault says to the caller why a file operation failed. verb is what was
// tried: "read", "write", "list" …
func fileFault(v view.View, verb, p string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	whole := p
	p = message.Clip(shown(p), 400)
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	switch {
	case is(dirs.ErrPseudo):
		return fault.New(fault.Denied, "%s: %q is on a file system of the kernel's; only files of the sandbox can be used this way", verb, p).
			WithRemedy("run a command, for example cat, to see it")
	case is(unix.ENOENT):
		return fault.New(fault.NotFound, "%s: there is no %q", verb, p).WithRemedy("list its directory to see what is there")
	case is(unix.EACCES, unix.EPERM):
		return denied(v, verb, p, "is not allowed to")
	case is(unix.EIO), is(unix.EROFS) && !onReadOnly(v, whole):
		return fault.Wrap(fault.Unavailable, err, "%s %q: the disk of all sandboxes failed (%s)", verb, p, message.Of(err)).
			WithRemedy("try again later: the server mounts it anew, and the sandbox is started again after that")
	case is(unix.EROFS):
		return denied(v, verb, p, "sees the system's files read-only, and so is not allowed to")
	case is(unix.ENOSPC, unix.EDQUOT):
		return message.NoSpace(err, "%s %q", verb, p)
	case is(unix.EMFILE, unix.ENFILE, unix.ENOMEM):
		return fault.Wrap(fault.Exhausted, err, "%s %q: the sandbox's agent has no more open files or memory", verb, p).
			WithRemedy("try again")
	case is(unix.EISDIR):
		return fault.InvalidField("path", "%q is a directory", p)
	case is(unix.ENOTDIR):
		return fault.InvalidField("path", "a part of %q is not a directory", p)
	case is(unix.ENOTEMPTY):
		return fault.New(fault.State, "%s: the directory %q is not empty", verb, p)
	case is(unix.ELOOP):
		return fault.InvalidField("path", "%q leads through too many links, or through a link of the kernel's", p)
	case is(unix.ENAMETOOLONG):
		return fault.InvalidField("path", "%q is too long: a name has at most 255 bytes, a path 4095", p)
	case is(unix.EEXIST):
		return fault.New(fault.Exists, "%s: %q exists already", verb, p)
	case is(unix.EBUSY, unix.EXDEV):
		return fault.Wrap(fault.State, err, "%s: %q is a mount point, or in use", verb, p)
	case is(unix.EFBIG):
		return fault.Wrap(fault.TooLarge, err, "%s: %q would be larger than a file can be", verb, p)
	case is(unix.ENXIO, unix.ENODEV, unix.EINVAL):
		return fault.InvalidField("path", "%q is not something to %s: %s", p, verb, message.Of(err))
	case is(unix.EAGAIN):
		return fault.Wrap(fault.Conflict, err, "%s: %q changes all the time", verb, p).WithRemedy("try again")
	case is(unix.ENOSYS):
		return fault.Wrap(fault.Unsupported, err, "%s: this kernel lacks a call that is needed to do it safely", verb)
	}
	return fault.Wrap(fault.Internal, err, "%s %q failed: %s", verb, p, message.Of(err))
}

// onReadOnly reports whether a path, or where it would be made, is mounted read-only in the
// view, or may be. A write that is refused as read-only elsewhere met a file system that failed.
func onReadOnly(v view.View, p string) bool {
	var st unix.Statfs_t
	var err unix.Errno
	v.Do(func() {
		for dir := p; ; dir = path.Dir(dir) {
			err, _ = unix.Statfs(dir, &st).(unix.Errno)
			if err != unix.ENOENT || dir == "/" || dir == "." {
				return
			}
		}
	})
	return err != 0 || st.Flags&unix.ST_RDONLY != 0
}

func denied(v view.View, verb, p, why string) error {
	id := v.Identity()
	e := fault.New(fault.Denied, "the user %q %s %s %q", id.Name, why, verb, p)
	if id.UID != 0 {
		return e.WithRemedy("do it as the user root, where the sandbox allows that, or use /workspace")
	}
	return e
}
