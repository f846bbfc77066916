// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// changer changes mode, owner, group and attributes of a file, or of a tree. Every file is opened by its
// name alone, behind no link, and changed by its descriptor: what stands under the name a moment later is not touched.
type changer struct {
	s        *Service
	ctx      context.Context
	v        view.View
	what     *wire.Change
	uid, gid int // -1: stays
	until    time.Time
	looked   int
	sum      wire.FileChanged
}

// Change answers a change. A change of a tree that fails, or whose ctx ends, is made in a part.
func (s *Service) Change(ctx context.Context, req *wire.Request) (wire.FileChanged, error) {
	v, err := s.o.View(req.User, req.AsRoot)
	if err != nil {
		return wire.FileChanged{}, err
	}
	p, err := s.Absolute("path", req.Path)
	if err != nil {
		return wire.FileChanged{}, err
	}
	c := &changer{s: s, ctx: ctx, v: v, what: req.Change, until: time.Now().Add(wire.MaxChangeTime * time.Second)}
	n := s.names(v)
	if err := c.check(n); err != nil {
		return wire.FileChanged{}, err
	}
	if err := c.top(p); err != nil {
		return wire.FileChanged{}, err
	}
	n.add(&c.sum.File)
	return c.sum, nil
}

// check checks what is asked for.
func (c *changer) check(n names) (err error) {
	w := c.what
	if w == nil || w.Mode == nil && w.Owner == "" && w.Group == "" && len(w.Attributes) == 0 && len(w.Remove) == 0 && !w.Replace {
		return fault.New(fault.Invalid, "the call does not say what to change").WithRemedy("give a mode, an owner, a group or attributes")
	}
	if w.Mode != nil {
		if err := checkMode(*w.Mode); err != nil {
			return err
		}
	}
	if c.uid, err = n.users.number("owner", w.Owner, passwdFile); err != nil {
		return err
	}
	if c.gid, err = n.groups.number("group", w.Group, groupFile); err != nil {
		return err
	}
	for _, key := range w.Remove {
		if err := checkAttributeKey("remove_attributes", key); err != nil {
			return err
		}
	}
	return checkAttributes("attributes", w.Attributes)
}

// top changes what the path names.
func (c *changer) top(p string) error {
	dir, name := split(p)
	if name == "" {
		dir, name = p, "."
	}
	parent := -1
	var err error
	c.v.Do(func() { parent, err = c.s.openStrict(dir) })
	if err != nil {
		return c.refused(p, err)
	}
	defer unix.Close(parent)
	fd, st, err := c.open(parent, name)
	if err != nil {
		return c.refused(p, err)
	}
	defer unix.Close(fd)
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return c.refused(p, unix.ELOOP)
	}
	if err := c.one(parent, name, fd, &st); err != nil {
		return c.refused(p, err)
	}
	c.v.Do(func() {
		c.sum.File, _, err = c.s.describeAt(parent, name)
		if err == nil && (c.sum.File.Type == wire.File || c.sum.File.Type == wire.Dir) {
			c.sum.File.Attributes = attributesAt(parent, name)
		}
	})
	if err != nil {
		return c.refused(p, err)
	}
	c.sum.File.Name, c.sum.File.Path = wire.EscapeName(baseOf(shown(p))), shown(p)
	return nil
}

func (c *changer) refused(p string, err error) error {
	if errors.Is(err, unix.ELOOP) {
		return fault.InvalidField("path", "%q is a link, or a link is on its way; a change follows none", message.Clip(shown(p), 400)).
			WithRemedy("name the file that the link leads to")
	}
	return fileFault(c.v, "change", p, err)
}

// openStrict opens a directory behind no link, for use with the *at calls. It runs within Do.
func (s *Service) openStrict(dir string) (int, error) {
	root, err := unix.Open(s.o.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	if dir = strings.TrimLeft(dir, "/"); dir == "" {
		dir = "."
	}
	fd, err := dirs.Openat2(root, dir, unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_IN_ROOT,
	})
	if err != nil {
		return -1, err
	}
	if err := dirs.CheckStorage(fd); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// open opens a name of a directory by its path alone, and refuses what is the kernel's.
func (c *changer) open(dir int, name string) (fd int, st unix.Stat_t, err error) {
	c.v.Do(func() {
		fd, err = dirs.Openat2(dir, name, unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_BENEATH,
		})
	})
	if err != nil {
		return -1, st, err
	}
	if err = unix.Fstat(fd, &st); err == nil {
		err = dirs.CheckStorage(fd)
	}
	if err == nil && (st.Mode&unix.S_IFMT == unix.S_IFCHR || st.Mode&unix.S_IFMT == unix.S_IFBLK) {
		err = fault.New(fault.Denied, "it is a device, which stays as it is")
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// one changes a file, and with Recursive what is in a directory: that first, as the change may shut the directory.
func (c *changer) one(dir int, name string, fd int, st *unix.Stat_t) error {
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !isDir || !c.what.Recursive {
		return c.apply(dir, name, fd, st)
	}
	in, err := c.list(fd)
	if errors.Is(err, unix.EACCES) { // perhaps the change opens it
		if err := c.apply(dir, name, fd, st); err != nil {
			return err
		}
		if in, err = c.list(fd); err != nil {
			c.leave(name, err)
			return nil
		}
		c.below(in, name, 1)
		return nil
	}
	if err != nil {
		return err
	}
	c.below(in, name, 1)
	return c.apply(dir, name, fd, st)
}

// list opens a directory for its names.
func (c *changer) list(fd int) (*os.File, error) {
	var in int
	var err error
	c.v.Do(func() { in, err = unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(in), "directory"), nil
}

// below changes all that is in a directory, and closes it. What cannot be changed is left, and told.
func (c *changer) below(in *os.File, rel string, depth int) {
	defer in.Close()
	for c.sum.Ended == "" {
		batch, err := in.Readdirnames(nameBatch)
		if len(batch) == 0 || err != nil {
			return
		}
		for _, name := range batch {
			at := path.Join(rel, name)
			if c.looked++; c.looked > wire.MaxChangedAll {
				c.sum.Ended = wire.EndedByEntries
			} else if c.ctx.Err() != nil || time.Now().After(c.until) {
				c.sum.Ended = wire.EndedByTime
			}
			if c.sum.Ended != "" {
				return
			}
			c.entry(int(in.Fd()), name, at, depth)
		}
	}
}

func (c *changer) entry(dir int, name, at string, depth int) {
	fd, st, err := c.open(dir, name)
	if errors.Is(err, unix.ENOENT) {
		return
	}
	if err != nil {
		c.leave(at, err)
		return
	}
	defer unix.Close(fd)
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if err := c.apply(dir, name, fd, &st); err != nil && !errors.Is(err, errNotChanged) {
			c.leave(at, err)
		}
		return
	}
	if depth == maxDepth {
		c.leave(at, fault.New(fault.TooLarge, "it is more than %d levels deep", maxDepth))
		return
	}
	in, err := c.list(fd)
	opened := false
	if errors.Is(err, unix.EACCES) {
		if err = c.apply(dir, name, fd, &st); err == nil {
			opened = true
			in, err = c.list(fd)
		}
	}
	if err != nil {
		c.leave(at, err)
		return
	}
	c.below(in, at, depth+1)
	if opened {
		return
	}
	if err := c.apply(dir, name, fd, &st); err != nil {
		c.leave(at, err)
	}
}

// leave notes what could not be changed.
func (c *changer) leave(name string, err error) {
	if c.sum.LeftAll++; len(c.sum.Left) < wire.MaxLeftOut {
		c.sum.Left = append(c.sum.Left, wire.LeftOut{Path: message.Clip(wire.EscapeName(name), wire.MaxLeftPath), Reason: leftWord(err)})
	}
}

// errNotChanged is a link in a tree whose owner stays: it has neither mode nor attributes.
var errNotChanged = errors.New("a link has nothing to change")

// apply changes one file by its descriptor.
func (c *changer) apply(dir int, name string, fd int, st *unix.Stat_t) (err error) {
	link := st.Mode&unix.S_IFMT == unix.S_IFLNK
	if link && c.uid < 0 && c.gid < 0 {
		return errNotChanged
	}
	c.v.Do(func() {
		if c.uid >= 0 || c.gid >= 0 {
			if err = unix.Fchownat(fd, "", c.uid, c.gid, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW); err != nil {
				if errors.Is(err, unix.EINVAL) {
					err = fault.InvalidField("owner", "the sandbox has no user %d or no group %d: its numbers end before", c.uid, c.gid)
				}
				return
			}
		}
		if link {
			return
		}
		if c.what.Replace || len(c.what.Attributes)+len(c.what.Remove) > 0 {
			if err = c.attributes(dir, name, st); err != nil {
				return
			}
		}
		if c.what.Mode != nil {
			err = chmod(fd, *c.what.Mode)
		}
	})
	if err == nil {
		c.sum.Changed++
	}
	return err
}

// chmod changes the mode of a file that is opened by its path alone. Before Linux 6.6 the way to that is its
// name in /proc.
func chmod(fd int, mode uint32) error {
	err := unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		if perr := unix.Chmod(fmt.Sprintf("/proc/thread-self/fd/%d", fd), mode); !errors.Is(perr, unix.ENOENT) {
			return perr
		}
	}
	return err
}

// attributes changes the attributes of a file that is still the one that was opened. It runs within Do.
func (c *changer) attributes(dir int, name string, st *unix.Stat_t) error {
	if t := st.Mode & unix.S_IFMT; t != unix.S_IFREG && t != unix.S_IFDIR {
		return fault.New(fault.Invalid, "it is %s; files and directories alone have attributes", kind(st.Mode))
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return err
	}
	if now.Dev != st.Dev || now.Ino != st.Ino {
		return fault.New(fault.Conflict, "another file has taken its name").WithRemedy("try again")
	}
	// What is there already and stays counts.
	size := 0
	var gone []string
	for key, value := range attributesOf(fd) {
		_, set := c.what.Attributes[key]
		switch {
		case set:
		case c.what.Replace || slices.Contains(c.what.Remove, key):
			gone = append(gone, key)
		default:
			size += len(key) + len(value)
		}
	}
	for key, value := range c.what.Attributes {
		size += len(key) + len(value)
	}
	if err := checkAttributesSize("attributes", size); err != nil {
		return err
	}
	for _, key := range gone {
		if err := unix.Fremovexattr(fd, userSpace+key); err != nil && !errors.Is(err, unix.ENODATA) {
			return attributeError(err)
		}
	}
	return setAttributes(fd, c.what.Attributes)
}
