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

	"sandpit.dev/blob/chunks"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// A snapshot is an agent's archive of a disk, as chunks, and a file in the server's directory, which is their index. It has its name when it
// is whole, and all that it names is kept. Files that say that chunks may be kept which no index has are there from before that is so until after.

const (
	snapshotsDir = "snapshots"
	suffixNew    = ".new"  // of an index that is being made
	suffixGone   = ".gone" // of one that is being removed, or that is read
)

// diskFile is, in a sandbox's directory, the index of what its disk is to hold from its next start on. It may be another name of a snapshot's.
const diskFile = "disk"

func snapshotFile(id sandbox.ID) string { return snapshotsDir + "/" + string(id) }

func pendingFile(id sandbox.ID) string { return instancesDir + "/" + string(id) + "/" + diskFile }

func (i *Instance) pendingFile() string { return pendingFile(i.id) }

// newName is of a file that no other has.
func newName(suffix string) string { return snapshotsDir + "/" + strings.ToLower(rand.Text()) + suffix }

// spooled is an index that is removed unless it gets another name.
type spooled struct {
	d         *Driver
	name      string
	index     chunks.Index
	published bool
}

func (s *spooled) remove() {
	if !s.published {
		s.d.drop(s.index, s.name)
	}
}

// spool keeps what write writes, and makes a file of its index.
func (d *Driver) spool(ctx context.Context, write func(io.Writer) error) (*spooled, error) {
	s := &spooled{d: d, name: newName(suffixNew)}
	f, err := d.files.OpenFile(s.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, storeError(err)
	}
	defer func() { _ = f.Close() }()
	if err = d.syncDir(snapshotsDir); err == nil {
		s.index, err = d.chunks.Write(ctx, write)
	}
	if errors.Is(err, chunks.ErrLeft) {
		d.log.Warn("parts of a snapshot that was not made are left; the next start removes them", "store", d.chunks.Place(), "error", err)
		return nil, storeError(err)
	}
	if err == nil {
		_, err = f.Write(s.index.Append(nil))
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		s.remove()
		return nil, storeError(err)
	}
	return s, nil
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

// publish gives a spooled index the name of a snapshot that it is the first to have.
func (d *Driver) publish(s *spooled, id sandbox.ID) (size int64, err error) {
	err = d.files.Rename(s.name, snapshotFile(id))
	if err == nil {
		s.published = true
		err = d.syncDir(snapshotsDir)
	}
	if err != nil {
		return 0, fault.Wrap(fault.Internal, err, "the snapshot %s cannot be kept", id)
	}
	return s.index.StoredBytes(), nil
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

// discard removes an index, and the chunks that no other has.
func (d *Driver) discard(name string) error {
	gone := newName(suffixGone)
	x, unreadable := d.index(name)
	if errors.Is(unreadable, fs.ErrNotExist) {
		return nil
	}
	err := d.files.Rename(name, gone)
	if err == nil {
		err = errors.Join(d.syncDir(snapshotsDir), d.syncDir(name[:strings.LastIndexByte(name, '/')]))
	}
	if err != nil {
		return err
	}
	if unreadable != nil {
		d.log.Warn("what a snapshot that is removed held is not known; the next start looks for it", "error", unreadable)
		return nil
	}
	d.drop(x, gone)
	return nil
}

// drop removes chunks that have been counted, where nothing else has them, and then the file that says that they may be there.
func (d *Driver) drop(x chunks.Index, file string) {
	ctx, cancel := d.finishing(context.Background(), undoPatience)
	defer cancel()
	err := d.chunks.Drop(ctx, x)
	if err == nil {
		err = d.files.Remove(file)
	}
	if err != nil {
		d.log.Warn("what no snapshot holds any more cannot be removed; the next start tries again", "store", d.chunks.Place(), "error", err)
	}
}

// promise has the disk be filled from what an index says at the next start, and before anything else looks at it. It is on the disk then.
func (i *Instance) promise(file string) error {
	d := i.d
	x, err := d.index(file)
	if err != nil {
		return err
	}
	ctx, cancel := d.finishing(context.Background(), undoPatience)
	defer cancel()
	if err := d.chunks.Share(ctx, x); err != nil {
		return err
	}
	before, unreadable := d.index(i.pendingFile())
	gone := newName(suffixGone)
	if errors.Is(unreadable, fs.ErrNotExist) {
		gone, err = "", nil
	} else { // also one that is damaged is replaced; the next start removes what it had
		err = d.files.Link(i.pendingFile(), gone)
	}
	if err == nil {
		err = i.mkdir()
	}
	fresh := i.pendingFile() + suffixNew
	if err == nil {
		err = d.files.RemoveAll(fresh)
	}
	if err == nil {
		err = d.files.Link(file, fresh)
	}
	if err == nil {
		err = d.files.Rename(fresh, i.pendingFile())
	}
	if err != nil {
		_ = d.chunks.Drop(ctx, x) // whose name it is has them
		return fault.Wrap(fault.Internal, err, "what the disk of sandbox %s is to hold cannot be kept", i.id)
	}
	// Where both were names of one file, the rename did nothing.
	err = errors.Join(d.files.RemoveAll(fresh), d.syncDir(instancesDir+"/"+string(i.id)), d.syncDir(instancesDir))
	if gone != "" && unreadable == nil {
		d.drop(before, gone)
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
	if err := i.d.discard(i.pendingFile()); err != nil {
		return fault.Wrap(fault.Internal, err, "that the disk of sandbox %s was filled cannot be kept", i.id)
	}
	return nil
}
