// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/entry"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

const (
	// unpackedAtOnce is how many entries are made in one turn of the view's, with at most
	// unpackedArena bytes, of files of at most unpackedSmall.
	unpackedAtOnce = 64
	unpackedArena  = 256 << 10
	unpackedSmall  = 64 << 10
)

// unpacker makes files of a tar archive of which nothing is trusted, below one directory and with
// the rights of the view's user. Each name is resolved beneath that directory by the kernel, so that no
// link leads out of it, whether it was there, came in the archive or is put there meanwhile.
type unpacker struct {
	s      *Service
	ctx    context.Context
	v      view.View
	owners bool
	top    int
	fresh  bool // the top was made for it

	parent int    // open directory; below 0: none
	where  string // its path below the top
	seen   map[uint64]int
	dirs   []madeDir // that the walk is in
	wait   []unpacked
	arena  []byte
	sum    wire.Unpacked

	each     bool // what becomes of each entry is told
	outcomes []wire.Outcome
	told     int // bytes of outcomes, about
}

// unpacked is an entry that waits to be made.
type unpacked struct {
	*tar.Header
	name string // clean, below the top; "." is the top itself
	data []byte // of a small file
}

// madeDir is a directory that was made: it gets its mode and its time when all in it is there.
type madeDir struct {
	name string
	*tar.Header
}

// Unpack takes a tar archive.
func (s *Service) Unpack(ctx context.Context, c *call.Conn, req *wire.Request) error {
	v, err := s.o.View(req.User, req.AsRoot)
	var p string
	if err == nil {
		p, err = s.Absolute("path", req.Path)
	}
	if err != nil {
		return s.refuseUpload(c, err)
	}
	u := &unpacker{
		s: s, ctx: ctx, v: v, owners: req.Owners && v.Identity().UID == 0, top: -1, parent: -1,
		seen: make(map[uint64]int), arena: make([]byte, 0, unpackedArena),
		each: req.Op == wire.OpUnpackEach,
	}
	defer u.close()
	v.Do(func() { err = u.begin(p, req.Parents) })
	if err != nil {
		return s.refuseUpload(c, fileFault(v, "write", p, err))
	}
	body := c.Upload()
	err = u.read(tar.NewReader(body), req.Size)
	if err == nil {
		_, err = io.Copy(io.Discard, body) // what stands behind the archive's end
	}
	if err != nil {
		v.Do(func() { u.leaveDirs("") })
		return s.refuseUpload(c, fileFault(v, "write", p, err))
	}
	if err := u.sync(req.Sync); err != nil {
		return fileFault(v, "write", p, err)
	}
	if u.each {
		return u.tell(c)
	}
	return c.Answer(u.sum)
}

// tell answers with what became of each entry.
func (u *unpacker) tell(c *call.Conn) error {
	if err := c.Send(wire.Reply, u.sum); err != nil {
		return err
	}
	for some := range slices.Chunk(u.outcomes, outcomesAtOnce) {
		if err := c.Send(wire.Item, some); err != nil {
			return err
		}
	}
	_, err := c.Write(wire.Append(nil, wire.Done, nil))
	return err
}

// outcomesAtOnce are much less than a frame may have.
const outcomesAtOnce = 100

// outcome notes what became of an entry, as far as there is room.
func (u *unpacker) outcome(name string, size int64, why string) {
	if !u.each || len(u.outcomes) == wire.MaxOutcomes || u.told > wire.MaxOutcomeBytes {
		return
	}
	o := wire.Outcome{Path: message.Clip(wire.EscapeName(name), maxOutcomePath), Bytes: size, Reason: message.Clip(why, wire.MaxLeftPath)}
	u.told += len(o.Path) + len(o.Reason) + 40
	u.outcomes = append(u.outcomes, o)
}

// maxOutcomePath is the most of a path that an outcome has.
const maxOutcomePath = wire.MaxPath

// begin opens the directory. It runs within Do.
func (u *unpacker) begin(p string, parents bool) (err error) {
	if u.top, err = u.s.openDir(p); !errors.Is(err, unix.ENOENT) || !parents {
		return err
	}
	if err = u.s.makeParents(p); err == nil {
		u.fresh = true
		u.top, err = u.s.openDir(p)
	}
	return err
}

func (u *unpacker) close() {
	descriptor.CloseAll([]int{u.top, u.parent})
	for _, fd := range u.seen {
		_ = unix.Close(fd)
	}
}

// read takes the archive, with at most most bytes of content; 0 or less: any.
func (u *unpacker) read(tr *tar.Reader, most int64) error {
	var size int64
	for {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		h, err := tr.Next()
		if err == io.EOF {
			return u.flush(true)
		}
		if err != nil {
			return notArchive(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		u.sum.Entries++
		name, why := entry.Check(h)
		if why != "" {
			if u.each { // outcomes are told in the order of the entries
				if err := u.flush(false); err != nil {
					return err
				}
			}
			u.leave(h.Name, why)
			continue
		}
		if size += h.Size; size < 0 || most > 0 && size > most {
			return fault.New(fault.TooLarge, "the archive's files have more than %d bytes", most).WithRemedy("copy it in parts")
		}
		if h.Size > unpackedSmall {
			if err := u.flush(false); err != nil {
				return err
			}
			if err := u.large(tr, h, name); err != nil {
				return err
			}
			continue
		}
		if len(u.wait) == unpackedAtOnce || cap(u.arena)-len(u.arena) < int(h.Size) {
			if err := u.flush(false); err != nil {
				return err
			}
		}
		at := len(u.arena)
		u.arena = u.arena[:at+int(h.Size)]
		data := u.arena[at:]
		if _, err := io.ReadFull(tr, data); err != nil {
			return notArchive(err)
		}
		u.wait = append(u.wait, unpacked{h, name, data})
	}
}

// notArchive is the error of bytes that are no tar archive; others are passed on.
func notArchive(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New(fault.Invalid, "the body is not a tar archive, or not a whole one: %s", message.Clip(err.Error(), 200)).
			WithRemedy("send what tar c writes, not compressed")
	}
	return err
}

func (u *unpacker) leave(name, why string) {
	leftOut(&u.sum, name, why)
	u.outcome(name, 0, why)
}

// flush makes what waits. At the last all directories are finished, too.
func (u *unpacker) flush(last bool) (err error) {
	u.s.writing.RLock()
	defer u.s.writing.RUnlock()
	u.v.Do(func() {
		for i := range u.wait {
			w := &u.wait[i]
			if err = u.made(w.Header, u.make(w)); err != nil {
				return
			}
		}
		if last {
			u.leaveDirs("")
		}
	})
	clear(u.wait)
	u.wait, u.arena = u.wait[:0], u.arena[:0]
	return err
}

// made notes what became of an entry, and returns errors that end all.
func (u *unpacker) made(h *tar.Header, err error) error {
	if err == nil {
		u.outcome(h.Name, h.Size, "")
		return nil
	}
	return u.note(h.Name, err)
}

// note notes an entry that cannot be made, and returns errors that end all.
func (u *unpacker) note(name string, err error) error {
	if err == nil {
		return nil
	}
	for _, one := range []error{
		unix.EACCES, unix.EPERM, unix.ENOTDIR, unix.EISDIR, unix.ELOOP, unix.EXDEV, unix.ENAMETOOLONG, unix.EEXIST, unix.ENOENT, unix.ENOTEMPTY,
		unix.EINVAL, unix.EROFS, unix.EMLINK, unix.ETXTBSY, unix.EBUSY, unix.EFBIG, dirs.ErrPseudo,
	} {
		if errors.Is(err, one) {
			u.leave(name, leftWord(err))
			return nil
		}
	}
	if _, told := errors.AsType[*fault.Error](err); told {
		u.leave(name, leftWord(err))
		return nil
	}
	return err
}

// make makes an entry. It runs within Do.
func (u *unpacker) make(w *unpacked) error {
	u.leaveDirs(w.name)
	if w.name == "." {
		if u.fresh && w.Typeflag == tar.TypeDir {
			u.fresh = false
			u.dirs = append(u.dirs, madeDir{".", w.Header})
		}
		return nil
	}
	dir, name := path.Split(w.name)
	parent, err := u.open(path.Clean(dir))
	if err != nil {
		return err
	}
	switch w.Typeflag {
	case tar.TypeDir:
		return u.dir(parent, name, w)
	case tar.TypeSymlink:
		return u.symlink(parent, name, w.Header)
	case tar.TypeLink:
		return u.link(parent, name, w.Linkname)
	}
	fd, tmp, err := u.create(parent, name, u.each)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for b := w.data; len(b) > 0; {
		n, werr := unix.Write(fd, b)
		if werr == unix.EINTR {
			continue
		}
		if werr != nil {
			_ = unix.Unlinkat(parent, tmp, 0)
			return werr
		}
		b = b[n:]
	}
	return u.finish(parent, fd, tmp, name, w.Header)
}

// Open opens a directory below the top, and keeps it until the next: most entries stand in the
// directory of the one before. One that no entry named is made. It runs within Do.
func (u *unpacker) open(dir string) (int, error) {
	if u.parent >= 0 && u.where == dir {
		return u.parent, nil
	}
	fd, err := beneath(u.top, dir)
	if errors.Is(err, unix.ENOENT) {
		if err = u.makeMissing(dir); err == nil {
			fd, err = beneath(u.top, dir)
		}
	}
	if err != nil {
		return -1, err
	}
	descriptor.CloseAll([]int{u.parent})
	u.parent, u.where = fd, dir
	u.remember(fd)
	return fd, nil
}

// remember keeps the file system of a directory that is written to.
func (u *unpacker) remember(fd int) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || len(u.seen) == syncDevices {
		return
	}
	if _, known := u.seen[st.Dev]; known {
		return
	}
	if d, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		u.seen[st.Dev] = d
	}
}

// beneath opens a directory below another for use with the *at calls: behind no link that leads
// out of that, and on no file system of the kernel's.
func beneath(top int, dir string) (int, error) {
	fd, err := dirs.Openat2(top, dir, unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
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

// makeMissing makes every directory of a path that is missing.
func (u *unpacker) makeMissing(dir string) error {
	at := "."
	for part := range strings.SplitSeq(dir, "/") {
		fd, err := beneath(u.top, at)
		if err != nil {
			return err
		}
		err = unix.Mkdirat(fd, part, 0o755)
		_ = unix.Close(fd)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		at = path.Join(at, part)
	}
	return nil
}

// sync brings what was made to the disk: now, or within the second.
func (u *unpacker) sync(now bool) error {
	for dev, fd := range u.seen {
		if now {
			if err := unix.Syncfs(fd); err != nil {
				return err
			}
			continue
		}
		u.s.syncer.addAll(dev, fd)
		delete(u.seen, dev)
	}
	return nil
}
