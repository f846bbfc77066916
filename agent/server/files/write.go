// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// upload is a file being written: into a file of another name in the same
// directory, that takes the place of the old one when it is complete. Who reads
// meanwhile sees the old one; so does everyone if the upload is cut off.
//
// Links on the way are followed as a program would follow them, and so is a link
// at the end: what is replaced is the file that it leads to. The new file
// has the old one's permissions (and owner, where the user may give it away), but is
// a new file: other hard links keep the old content.
type upload struct {
	dir     int // open directory
	fd      int // the new file
	written int // the same for reading, which brings it to the disk without telling watchers
	tmp     string
	name    string
	path    string // as messages have it
	created bool

	attributes map[string]string

	condition *wire.Condition // of the file that is there; nil: none
	locks     *locks
	still     func() error // what else is asked just before the new file takes its name; nil: nothing
}

// tempPrefix begins the names of files that are not complete.
const (
	tempPrefix = ".sandpit-"
	tempRandom = 20 // letters after it
)

// tempName makes a name that nobody can have foreseen.
func tempName() string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	var b [tempRandom]byte
	_, _ = unix.Getrandom(b[:], 0) // for so few bytes it does not fail
	for i, c := range b {
		b[i] = letters[c%32]
	}
	return tempPrefix + string(b[:])
}

// Write takes a file.
func (s *Service) Write(c *call.Conn, req *wire.Request) error {
	v, err := s.o.View(req.User, req.AsRoot)
	if err == nil {
		err = checkMode(req.Mode)
	}
	if err == nil {
		err = checkAttributes("attributes", req.Attributes)
	}
	if err == nil && req.Op == wire.OpWriteIf {
		err = checkCondition(req.If)
	}
	if (req.Op == wire.OpWriteWith || req.Op == wire.OpWriteIf && req.If != nil && req.If.Attributes) && req.Attributes == nil { // which is how no attributes come
		req.Attributes = map[string]string{}
	}
	var p string
	if err == nil {
		p, err = s.Absolute("path", req.Path)
	}
	if err != nil {
		return s.refuseUpload(c, err)
	}
	var u *upload
	v.Do(func() { u, err = s.beginUpload(v, p, req) })
	if err != nil {
		return s.refuseUpload(c, fileFault(v, "write", p, s.tellUnmet(v, req.If, err)))
	}
	defer u.close()
	err = u.receive(c, req.Size)
	if err == nil && c.Gone() {
		err = net.ErrClosed
	}
	if err != nil {
		v.Do(u.discard)
		return s.refuseUpload(c, fileFault(v, "write", u.path, err))
	}
	var fi wire.FileInfo
	v.Do(func() { fi, err = u.commit() })
	if err == nil && req.Sync {
		err = u.sync()
	}
	if err == nil && req.If != nil {
		err = u.version(&fi)
	}
	if err != nil {
		return fileFault(v, "write", u.path, s.tellUnmet(v, req.If, err))
	}
	if !req.Sync {
		s.syncer.add(u.written)
		u.written = -1
	}
	// Before the answer: who watches sees the close, and it belongs to this call.
	u.close()
	return c.Answer(wire.Written{File: fi, Created: u.created})
}

// refuseUpload answers an upload with an error, and takes what the client goes
// on to send, within bounds: a connection that is closed before that may
// lose the answer.
func (s *Service) refuseUpload(c *call.Conn, err error) error {
	if call.IsCut(err) {
		return err
	}
	const most, patience = 64 << 20, 5 * time.Second
	c.Fail(err)
	_ = c.SetReadDeadline(time.Now().Add(patience))
	for taken := 0; taken < most; {
		b, err := c.Data()
		if b == nil || err != nil {
			break
		}
		taken += len(b)
	}
	return net.ErrClosed // answered
}

func checkMode(mode uint32) error {
	if mode&^0o1777 != 0 {
		return fault.InvalidField("mode", "%o is not a valid octal mode up to 1777; set-user-id and its like cannot be set this way", mode)
	}
	return nil
}

// beginUpload opens what is needed. It runs within Do.
func (s *Service) beginUpload(v view.View, p string, req *wire.Request) (*upload, error) {
	u := &upload{dir: -1, fd: -1, written: -1, locks: &s.locks}
	if req.Op == wire.OpWriteIf {
		u.condition = req.If
	}
	replaces := u.condition != nil && !u.condition.Absent // else directories would be made for nothing
	if err := s.resolveUpload(u, p, req.Parents && !replaces); err != nil {
		u.close()
		if replaces && errors.Is(err, unix.ENOENT) {
			err = &unmetError{p}
		}
		return nil, err
	}
	if err := meets(u.condition, u.dir, u.name, u.path); err != nil {
		u.close()
		return nil, err
	}
	var old unix.Stat_t
	mode := uint32(0o644)
	switch err := u.mayReplace(&old); {
	case err == nil:
		mode = old.Mode & 0o777
	case errors.Is(err, unix.ENOENT):
		u.created = true
	default:
		u.close()
		return nil, err
	}
	if req.Mode != 0 {
		mode = req.Mode
	}
	if err := u.makeTemp(mode); err != nil {
		u.close()
		return nil, err
	}
	if !u.created && (int(old.Uid) != v.Identity().UID || int(old.Gid) != v.Identity().GID) {
		if unix.Fchown(u.fd, int(old.Uid), int(old.Gid)) == nil {
			_ = unix.Fchmod(u.fd, mode)
		}
	}
	if u.attributes = req.Attributes; u.attributes == nil && !u.created {
		u.attributes = attributesAt(u.dir, u.name)
		_ = setAttributes(u.fd, u.attributes) // of a file system that has them
	} else if err := setAttributes(u.fd, u.attributes); err != nil {
		u.discard()
		u.close()
		return nil, err
	}
	if req.Size > 0 {
		if err := u.reserve(req.Size); err != nil {
			u.discard()
			u.close()
			return nil, err
		}
	}
	return u, nil
}

// maxLinks is how many links at the end of a path are followed, as in the kernel.
const maxLinks = 40

// resolveUpload finds the directory and the name that p finally leads to.
func (s *Service) resolveUpload(u *upload, p string, parents bool) error {
	for range maxLinks {
		if p[len(p)-1] == '/' {
			return unix.EISDIR
		}
		dir, name := split(p)
		if name == "" {
			return unix.EISDIR
		}
		fd, err := s.openDir(dir)
		if errors.Is(err, unix.ENOENT) && parents {
			if err = s.makeParents(dir); err == nil {
				fd, err = s.openDir(dir)
			}
		}
		if err != nil {
			return err
		}
		var b [unix.PathMax]byte
		n, err := unix.Readlinkat(fd, name, b[:])
		if err != nil || n == 0 { // no link, or nothing: mayReplace sees which
			u.dir, u.name, u.path = fd, name, p
			return nil
		}
		_ = unix.Close(fd)
		target := string(b[:n])
		if len(target) >= unix.PathMax || len(dir)+len(target) > 4*unix.PathMax {
			return unix.ENAMETOOLONG
		}
		if target[0] == '/' {
			p = target
		} else {
			p = dir + "/" + target
		}
	}
	return unix.ELOOP
}

// mayReplace asks whether the user may write to the file that is there: who may
// not must not replace it either. ENOENT: there is none.
func (u *upload) mayReplace(st *unix.Stat_t) error {
	if err := unix.Fstatat(u.dir, u.name, st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return unix.EISDIR
	default:
		return fault.InvalidField("path", "%q is %s; only regular files can be written", message.Clip(shown(u.path), 400), kind(st.Mode))
	}
	// Opening it would tell, too; but on an overlay that copies the whole file.
	return unix.Faccessat2(u.dir, u.name, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW)
}

func (u *upload) makeTemp(mode uint32) (err error) {
	u.tmp = tempName()
	u.fd, err = unix.Openat(u.dir, u.tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	// While its mode lets the user read it. What somebody put in its place must not block.
	u.written, err = unix.Openat(u.dir, u.tmp, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Fchmod(u.fd, mode)
	}
	if err != nil {
		u.discard()
		return err
	}
	return nil
}

// reserve makes room for a file whose size is known, so that a full disk is
// told before the bytes are sent.
func (u *upload) reserve(size int64) error {
	err := unix.Fallocate(u.fd, unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG) {
		return err
	}
	return nil // not every file system can; it will be seen when it is written
}

// receive writes what the client sends. It needs no view: the file is open.
func (u *upload) receive(c *call.Conn, size int64) error {
	var got int64
	for {
		b, err := c.Data()
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		got += int64(len(b))
		for len(b) > 0 {
			n, err := unix.Write(u.fd, b)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return err
			}
			b = b[n:]
		}
	}
	if size > 0 && got != size {
		return fault.New(fault.Malformed, "the upload has %d bytes, and was said to have %d", got, size)
	}
	return nil
}

// commit puts the new file in place. It runs within Do.
func (u *upload) commit() (wire.FileInfo, error) {
	lock := u.locks.of(u.name)
	lock.Lock()
	defer lock.Unlock()
	var st unix.Stat_t
	err := unix.Fstat(u.fd, &st)
	if err == nil && u.still != nil {
		err = u.still()
	}
	if err == nil {
		err = meets(u.condition, u.dir, u.name, u.path)
	}
	if err == nil {
		err = u.rename()
	}
	if err != nil {
		u.discard()
		return wire.FileInfo{}, err
	}
	fi := describe(u.name, &st)
	fi.Path, fi.Attributes = shown(u.path), u.attributes
	return fi, nil
}

// rename gives the new file its name, which with a condition that there is none nobody has.
func (u *upload) rename() error {
	if u.condition == nil || !u.condition.Absent {
		return unix.Renameat2(u.dir, u.tmp, u.dir, u.name, 0)
	}
	err := unix.Renameat2(u.dir, u.tmp, u.dir, u.name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) { // a file system that does not know this
		if err = unix.Linkat(u.dir, u.tmp, u.dir, u.name, 0); err == nil {
			_ = unix.Unlinkat(u.dir, u.tmp, 0)
		}
	}
	if errors.Is(err, unix.EEXIST) {
		return &unmetError{u.path}
	}
	return err
}

// version tells the version of the new file.
func (u *upload) version(fi *wire.FileInfo) error {
	var st unix.Stat_t
	look := func(st *unix.Stat_t) error { return unix.Fstat(u.fd, st) }
	err := look(&st)
	if err == nil {
		fi.Version, err = stableVersion(&st, look)
	}
	return err
}

// sync writes the new file, and that it has its name, to the disk.
func (u *upload) sync() error {
	if err := unix.Fsync(u.fd); err != nil {
		return err
	}
	dir, err := unix.Openat(u.dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil { // who may write to a directory need not be able to read it
		return unix.Syncfs(u.fd)
	}
	defer unix.Close(dir)
	return unix.Fsync(dir)
}

// discard removes the new file. It runs within Do.
func (u *upload) discard() { _ = unix.Unlinkat(u.dir, u.tmp, 0) }

// close closes what is open. Twice is fine.
func (u *upload) close() {
	for _, fd := range []*int{&u.dir, &u.fd, &u.written} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
}
