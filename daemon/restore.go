// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/backup"
	"sandpit.dev/fault"
	"sandpit.dev/internal/cleanup"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

// restoringFile marks a data directory that a backup is being restored into: no server uses such
// a directory.
const restoringFile = "restoring"

// restoreSpare is the disk space that has to be free beyond the size of a backup.
const restoreSpare = 256 << 20

// Restored describes what was restored from a backup.
type Restored struct {
	Sandboxes, Snapshots, Volumes int
	Manifest                      *backup.Manifest
}

// Restore makes a data directory, cfg.Data, from a backup. The directory must be empty or
// missing; it is an installation of its own afterwards. see is called with the number of bytes
// done: of the whole file for the check, and again for the unpacking.
//
// The backup is hostile: nothing in it leads out of the directory. It is checked to its end before
// anything is put in place; what fails after that, or ctx's end, is undone, and a crash leaves a
// directory that no server takes.
func Restore(ctx context.Context, cfg Config, f *os.File, see func(what string, done int64)) (_ *Restored, err error) {
	file, err := backup.Open(f, func(done int64) { see("check", done) })
	if err != nil {
		return nil, err
	}
	var need int64
	for _, p := range file.Manifest.Parts {
		if p.LeftOut == "" {
			need += p.Size
		}
	}
	_, missing := os.Lstat(cfg.Data)
	if err := emptyDir(cfg.Data); err != nil {
		return nil, err
	}
	lock, err := lockData(cfg.Data)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }()
	if err := emptyDir(cfg.Data, "lock"); err != nil { // a server started and ended in between
		return nil, err
	}
	root, err := os.OpenRoot(cfg.Data)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	var undo cleanup.Stack
	defer func() {
		undo.Run()
		if err == nil {
			return
		}
		if left := clearDir(root); left != nil {
			err = errors.Join(err, fmt.Errorf("%s cannot be emptied again: %w", cfg.Data, left))
			return
		}
		if errors.Is(missing, fs.ErrNotExist) {
			_ = os.Remove(cfg.Data)
		}
	}()
	if err := os.WriteFile(filepath.Join(cfg.Data, restoringFile), nil, 0o600); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the data directory %s cannot be written", cfg.Data)
	}
	if err := syncFS(root); err != nil {
		return nil, err
	}
	if err := roomToRestore(cfg.Data, need); err != nil {
		return nil, err
	}
	host := cfg.Runtimes.disks()
	found, err := lookAt(ctx, cfg.Data, host)
	if err != nil {
		return nil, err
	}
	self := newIdentity()
	self.Path, self.Device, self.Inode, self.Boot = found.here.Path, found.here.Device, found.here.Inode, found.here.Boot
	self.Records, self.Store = true, true
	x := &restoring{file: file, root: root, see: see, res: &Restored{Manifest: file.Manifest}}
	if err := x.put(ctx, partRecords, dbFile); err != nil {
		return nil, err
	}
	if x.records, err = sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(cfg.Data, dbFile), ID: self.ID, Reserve: 1}); err != nil {
		return nil, err
	}
	recordsClosed := false
	undo.Add(func() {
		if !recordsClosed {
			_ = x.records.Close()
		}
	})
	if x.disks, err = host.OpenDisks(ctx, place(host, cfg.Data, "").Dir, self.ID, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	disksClosed := false
	undo.Add(func() {
		if !disksClosed {
			_ = x.disks.Close(context.WithoutCancel(ctx))
		}
	})
	for _, step := range []func(context.Context) error{x.volumes, x.snapshots, x.sandboxes, x.artifacts, x.keys} {
		if err := step(ctx); err != nil {
			return nil, noRoom(err)
		}
	}
	disksClosed = true
	if err := x.disks.Close(ctx); err != nil {
		return nil, noRoom(err)
	}
	recordsClosed = true
	if err := x.records.Close(); err != nil {
		return nil, noRoom(err)
	}
	if err := self.write(cfg.Data); err != nil {
		return nil, noRoom(err)
	}
	if err := syncFS(root); err != nil {
		return nil, noRoom(err)
	}
	if err := root.Remove(restoringFile); err != nil {
		return nil, err
	}
	return x.res, syncFS(root)
}

// emptyDir refuses a directory that has anything but the named files, and what mkfs makes.
func emptyDir(dir string, but ...string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the data directory %s cannot be read", dir)
	}
	for _, e := range entries {
		if !kept(e.Name(), but...) {
			return fault.New(fault.State, "the directory %s is not empty: it has %q", dir, sandbox.Clip(e.Name(), 80)).
				WithRemedy("restore into a directory that is empty or not there, with --data; nothing was changed")
		}
	}
	return nil
}

func kept(name string, but ...string) bool {
	for _, b := range append(but, "lost+found") {
		if name == b {
			return true
		}
	}
	return false
}

// clearDir removes what a restore made, its mark last.
func clearDir(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !kept(e.Name(), restoringFile) {
			if err := root.RemoveAll(e.Name()); err != nil {
				return err
			}
		}
	}
	if err := root.Remove(restoringFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncFS(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the data directory cannot be brought to the disk (%s)", err)
	}
	return nil
}

func roomToRestore(dir string, need int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the room in %s cannot be told", dir)
	}
	need += need/16 + restoreSpare                        // what files take beside their bytes
	if free := int64(st.Bavail) * st.Bsize; free < need { //nolint:gosec // a disk has fewer bytes
		return fault.NoSpace(fault.HostDisk, nil, "the backup needs about %d MB in %s, and %d MB are free", need>>20, dir, free>>20).
			WithRemedy("restore it into a directory on a larger file system, with --data")
	}
	return nil
}

// noRoom distinguishes a full disk from other failures.
func noRoom(err error) error {
	if fault.Is(err, fault.Full) || !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return err
	}
	return fault.NoSpace(fault.HostDisk, err, "the disk is full: %s", err).WithRemedy("restore it into a directory on a larger file system, with --data")
}

// restoring is the state of the restoring of one backup.
type restoring struct {
	file    *backup.File
	root    *os.Root
	records *sqlstore.Store
	disks   runtime.Disks
	see     func(string, int64)
	done    int64
	res     *Restored
}

// read calls fn with a part, and checks that it was what the manifest says.
func (x *restoring) read(ctx context.Context, part string, fn func(r io.Reader) error) error {
	r, err := x.file.Part(part)
	if err != nil {
		return err
	}
	told := &toldReader{ctx: ctx, r: r, x: x}
	if err := fn(told); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, told)
	return err
}

type toldReader struct {
	ctx context.Context
	r   io.Reader
	x   *restoring
}

func (t *toldReader) Read(p []byte) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := t.r.Read(p)
	t.x.done += int64(n)
	t.x.see("restore", t.x.done)
	return n, err
}

// put writes a part as a file.
func (x *restoring) put(ctx context.Context, part, name string) error {
	return x.read(ctx, part, func(r io.Reader) error { return x.create(name, r) })
}

func (x *restoring) create(name string, r io.Reader) error {
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return noRoom(err)
	}
	_, err = io.Copy(f, r)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return noRoom(err)
}

// disk imports a part; most bounds its size on disk.
func (x *restoring) disk(ctx context.Context, part string, imp func(r io.Reader, most int64) error) error {
	size, _ := x.file.Size(part)
	return x.read(ctx, part, func(r io.Reader) error { return imp(r, 2*size+1<<20) })
}

func (x *restoring) volumes(ctx context.Context) error {
	var all []*sandbox.Volume
	err := x.records.View(ctx, func(tx store.Tx) (err error) {
		all, err = tx.Volumes().List("")
		return err
	})
	if err != nil {
		return err
	}
	for _, v := range all {
		err := x.disk(ctx, partVolume+string(v.ID), func(r io.Reader, most int64) error {
			return x.disks.ImportVolume(ctx, v.ID, r, most, v.SizeMB)
		})
		if err != nil {
			return err
		}
		x.res.Volumes++
	}
	return nil
}

func (x *restoring) snapshots(ctx context.Context) error {
	q := store.SnapshotQuery{Limit: store.MaxPage, Oldest: true}
	for {
		var page []*sandbox.Snapshot
		err := x.records.View(ctx, func(tx store.Tx) (err error) {
			page, q.Cursor, err = tx.Snapshots().List(q)
			return err
		})
		if err != nil {
			return err
		}
		for _, s := range page {
			err := x.disk(ctx, partSnapshot+string(s.ID), func(r io.Reader, most int64) error {
				return x.disks.ImportSnapshot(ctx, s.ID, r, most)
			})
			if err != nil {
				return err
			}
			x.res.Snapshots++
		}
		if q.Cursor == "" {
			return nil
		}
	}
}

func (x *restoring) sandboxes(ctx context.Context) error {
	q := store.SandboxQuery{Limit: store.MaxPage, Oldest: true}
	for {
		var page []*sandbox.Sandbox
		err := x.records.View(ctx, func(tx store.Tx) (err error) {
			page, q.Cursor, err = tx.Sandboxes().List(q)
			return err
		})
		if err != nil {
			return err
		}
		for _, s := range page {
			err := x.disk(ctx, partSandbox+string(s.ID), func(r io.Reader, most int64) error {
				return x.disks.ImportSandbox(ctx, s.ID, r, most, s.Limits.DiskMB)
			})
			if err != nil {
				return err
			}
			x.res.Sandboxes++
		}
		if q.Cursor == "" {
			return nil
		}
	}
}

// artifacts unpacks the artifacts: plain files in directories of runs.
func (x *restoring) artifacts(ctx context.Context) error {
	if _, ok := x.file.Size(partArtifacts); !ok {
		return nil
	}
	return x.read(ctx, partArtifacts, func(r io.Reader) error {
		in := tar.NewReader(r)
		for {
			h, err := in.Next()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return fault.Wrap(fault.Invalid, err, "the artifacts of the backup cannot be read")
			}
			run, rest, _ := strings.Cut(h.Name, "/")
			if h.Typeflag != tar.TypeReg || !sandbox.ValidRunID(run) || !fs.ValidPath(rest) || rest == "." {
				return fault.New(fault.Invalid, "the backup has an artifact %q, which is no file of a run", sandbox.Clip(h.Name, 100))
			}
			name := filepath.Join(artifactsDir, filepath.FromSlash(h.Name))
			err = x.root.MkdirAll(path.Dir(name), 0o700)
			if err == nil {
				err = x.create(name, in)
			}
			if errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.EISDIR) {
				err = fault.Wrap(fault.Invalid, err, "the backup has an artifact %q, which cannot be beside the others", sandbox.Clip(h.Name, 100))
			}
			if err != nil {
				return err
			}
			if err := x.root.Chtimes(name, h.ModTime, h.ModTime); err != nil {
				return err
			}
		}
	})
}

func (x *restoring) keys(ctx context.Context) error {
	for _, name := range keyFiles {
		size, ok := x.file.Size(partKey + name)
		if !ok {
			continue
		}
		if size > maxKeyFile {
			return fault.New(fault.Invalid, "the file %s of the backup has %d bytes", name, size)
		}
		if err := x.put(ctx, partKey+name, name); err != nil {
			return err
		}
	}
	return nil
}
