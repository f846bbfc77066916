// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// A snapshot is a file in the server's directory: an agent's archive of a disk, compressed. It has its name when it is whole and on the disk.

const (
	snapshotsDir = "snapshots"
	suffixNew    = ".new" // of files that are not whole
)

// diskFile is, in a sandbox's directory, what its disk is to hold from its next start on. It is another name of a snapshot's file.
const diskFile = "disk"

func snapshotFile(id sandbox.ID) string { return snapshotsDir + "/" + string(id) }

func (i *Instance) pendingFile() string { return instancesDir + "/" + string(i.id) + "/" + diskFile }

// spooled is a file that is removed unless it gets another name.
type spooled struct {
	*os.File
	name string
	in   *os.Root
}

func (s *spooled) remove() {
	_ = s.Close()
	_ = s.in.Remove(s.name) // it has another name, or the next server removes it
}

// spool makes a file of what write writes, and has it on the disk.
func (d *Driver) spool(write func(io.Writer) error) (_ *spooled, err error) {
	name := snapshotsDir + "/" + strings.ToLower(rand.Text()) + suffixNew
	f, err := d.files.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, storeError(err)
	}
	s := &spooled{f, name, d.files}
	defer func() {
		if err != nil {
			s.remove()
		}
	}()
	z, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, storeError(err)
	}
	err = write(z)
	if closed := z.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = f.Sync()
	}
	return s, storeError(err)
}

// storeError says what is wrong with the server's own files, where it is not said yet.
func storeError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.NoSpace(fault.StoreDisk, err, "the server's disk is full, where the kubernetes runtime keeps snapshots").WithRemedy("make room in the server's data directory")
	}
	return err
}

// publish gives a spooled file the name of a snapshot that it is the first to have.
func (d *Driver) publish(f *spooled, id sandbox.ID) (size int64, err error) {
	st, err := f.Stat()
	if err == nil {
		err = d.files.Rename(f.name, snapshotFile(id))
	}
	if err == nil {
		err = d.syncDir(snapshotsDir)
	}
	if err != nil {
		return 0, fault.Wrap(fault.Internal, err, "the snapshot %s cannot be kept", id)
	}
	return st.Size(), nil
}

func (d *Driver) syncDir(name string) error {
	dir, err := d.files.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// reserve has nobody else make a snapshot with an id until done.
func (d *Driver) reserve(id sandbox.ID) (done func(), err error) {
	if !sandbox.ValidID(string(id)) {
		return nil, fault.InvalidField("id", "%q is not a valid snapshot id", sandbox.Clip(string(id), 40))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keeping[id] || d.hasSnapshot(id) {
		return nil, fault.New(fault.Exists, "snapshot %s exists", id)
	}
	d.keeping[id] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.keeping, id)
	}, nil
}

func (d *Driver) hasSnapshot(id sandbox.ID) bool {
	_, err := d.files.Lstat(snapshotFile(id))
	return err == nil
}

func noSnapshot(id sandbox.ID) error {
	return fault.New(fault.NotFound, "there is no snapshot %s", sandbox.Clip(string(id), 40))
}

// archive reads the archive of a compressed file.
type archive struct {
	*zstd.Decoder
	f *os.File
}

func (a *archive) Close() error {
	a.Decoder.Close()
	return a.f.Close()
}

// openArchive opens a file of this kind.
func (d *Driver) openArchive(name string) (*archive, error) {
	f, err := d.files.Open(name)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &archive{z, f}, nil
}

// openSnapshot opens the archive of a snapshot.
func (d *Driver) openSnapshot(id sandbox.ID) (*archive, error) {
	if !sandbox.ValidID(string(id)) {
		return nil, noSnapshot(id)
	}
	a, err := d.openArchive(snapshotFile(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noSnapshot(id)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the snapshot %s cannot be read", id)
	}
	return a, nil
}

// sweepFiles removes what an earlier server left half made.
func (d *Driver) sweepFiles() error {
	entries, err := fs.ReadDir(d.files.FS(), snapshotsDir)
	for _, e := range entries {
		if err == nil && strings.HasSuffix(e.Name(), suffixNew) {
			err = d.files.Remove(snapshotsDir + "/" + e.Name())
		}
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "what is left of a snapshot cannot be removed")
	}
	return nil
}

// promise has the disk be filled from a file at the next start, and before anything else looks at it. It is on the disk then.
func (i *Instance) promise(file string) error {
	err := i.mkdir()
	fresh := i.pendingFile() + suffixNew
	if err == nil {
		err = i.d.files.RemoveAll(fresh)
	}
	if err == nil {
		err = i.d.files.Link(file, fresh)
	}
	if err == nil {
		err = i.d.files.Rename(fresh, i.pendingFile())
	}
	if err == nil {
		err = i.d.files.RemoveAll(fresh) // where both were names of one file, the rename did nothing
	}
	if err == nil {
		err = errors.Join(i.d.syncDir(instancesDir+"/"+string(i.id)), i.d.syncDir(instancesDir))
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "what the disk of sandbox %s is to hold cannot be kept", i.id)
	}
	return nil
}

// promiseSnapshot is promise with a snapshot's file.
func (i *Instance) promiseSnapshot(id sandbox.ID) error {
	err := i.promise(snapshotFile(id))
	if err != nil && !i.d.hasSnapshot(id) {
		return noSnapshot(id)
	}
	return err
}

// kept forgets what the disk was to hold: it holds it.
func (i *Instance) kept() error {
	err := i.d.files.Remove(i.pendingFile())
	if err == nil {
		err = i.d.syncDir(instancesDir + "/" + string(i.id))
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "that the disk of sandbox %s was filled cannot be kept", i.id)
	}
	return nil
}
