// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/backup"
	"sandpit.dev/engine"
	backupdisks "sandpit.dev/engine/backups"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

// Names of the parts of a backup. Those of disks have the id of what they are of after them.
const (
	partRecords   = "records"
	partArtifacts = "artifacts"
	partSandbox   = "sandboxes/"
	partSnapshot  = "snapshots/"
	partVolume    = "volumes/"
	partKey       = "keys/"
)

// keyFiles are the files of the data directory that a backup has in its parts keys/….
var keyFiles = [...]string{SecretsKeyFile, PreviewKeyFile, AdminTokenFile, AuditKeyFile}

// maxKeyFile bounds each of them.
const maxKeyFile = 1 << 20

// copyFile is the copy of the records in the data directory while a backup is made.
const copyFile = "backup.db"

// backups makes backups of the server, one at a time.
//
// The records are copied first, and each disk is kept after that: so everything in the records
// has happened on the disk. What was deleted during the backup is taken out of the copy, which is
// written last.
type backups struct {
	engine  *engine.Engine
	db      *sqlstore.Store
	data    string
	files   string // the directory of artifacts
	version string
	log     *slog.Logger
	turn    chan struct{}
}

func newBackups(eng *engine.Engine, db *sqlstore.Store, cfg Config, version string, log *slog.Logger) *backups {
	return &backups{engine: eng, db: db, data: cfg.Data, files: cfg.artifactsDir(), version: version, log: log, turn: make(chan struct{}, 1)}
}

// Allowed reports whether a caller may make a backup.
func (b *backups) Allowed(c access.Caller) error { return b.engine.MayBackUp(c) }

// Write writes a backup to w; see package backup for its form. After an error, w has an
// incomplete backup: its end is missing.
func (b *backups) Write(ctx context.Context, c access.Caller, w io.Writer) (err error) {
	if err := b.Allowed(c); err != nil {
		return err
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	default:
		return fault.New(fault.Conflict, "another backup is being made").WithRemedy("ask again when it is done")
	}
	path := filepath.Join(b.data, copyFile)
	if err := sqlstore.RemoveCopy(path); err != nil { // of a server that was killed
		return err
	}
	began := time.Now()
	if err := b.db.Copy(ctx, path); err != nil {
		return err
	}
	defer func() { report(b.log, "remove the copy of the records", sqlstore.RemoveCopy(path)) }()
	records, err := sqlstore.Open(ctx, sqlstore.Options{Path: path, Logger: b.log, Reserve: 1})
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			_ = records.Close()
		}
	}()
	keys, err := readKeys(b.data)
	if err != nil {
		return err
	}
	out, err := backup.NewWriter(w, backup.Head{Version: b.version, Time: began})
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := out.Part(partKey+k.name, writeBytes(k.data), nil); err != nil {
			return err
		}
	}
	t := &taking{backups: b, records: records, out: out, images: make(map[backup.Image]bool)}
	if err := t.all(ctx); err != nil {
		return err
	}
	closed = true
	if err := records.Close(); err != nil {
		return err
	}
	err = out.Part(partRecords, func(w io.Writer) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		_, err = io.Copy(w, f)
		return err
	}, nil)
	if err != nil {
		return err
	}
	images := make([]backup.Image, 0, len(t.images))
	for i := range t.images {
		images = append(images, i)
	}
	slices.SortFunc(images, func(a, b backup.Image) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest))
	})
	if err := out.Close(images); err != nil {
		return err
	}
	b.log.Info("a backup was made", "took", time.Since(began), "left_out", len(out.LeftOut()))
	return nil
}

type keyFile struct {
	name string
	data []byte
}

// readKeys reads the key files that exist.
func readKeys(data string) ([]keyFile, error) {
	var out []keyFile
	for _, name := range keyFiles {
		b, err := os.ReadFile(filepath.Join(data, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "the file %s cannot be read", filepath.Join(data, name))
		}
		out = append(out, keyFile{name, b})
	}
	return out, nil
}

func writeBytes(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(b))
		return err
	}
}

// taking is the work on the disks of one backup.
type taking struct {
	*backups
	records *sqlstore.Store // the copy
	out     *backup.Writer
	images  map[backup.Image]bool
}

func (t *taking) all(ctx context.Context) error {
	for _, step := range []func(context.Context) error{t.volumes, t.snapshots, t.sandboxes, t.archives, t.artifacts} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// disk backs up one disk, and calls drop to take its record out of the copy if the disk is
// incomplete.
func (t *taking) disk(ctx context.Context, part string, id sandbox.ID, keep func(context.Context, sandbox.ID) (*backupdisks.Disk, error), drop func(store.Tx) error) (whole bool, err error) {
	kept, err := keep(ctx, id)
	if fault.Is(err, fault.NotFound) { // it was deleted in between
		return false, t.records.Update(ctx, drop)
	}
	if err == nil {
		defer kept.Release()
	}
	failed := err
	whole = true
	err = t.out.Part(part+string(id), func(w io.Writer) error {
		if failed != nil {
			return failed
		}
		return kept.Export(ctx, w)
	}, func(err error) string {
		if !itsOwn(ctx, err) {
			return ""
		}
		whole = false
		t.log.Warn("a disk is left out of the backup", "disk", part+string(id), "error", err)
		return fault.As(err).Message
	})
	if err == nil && !whole {
		err = t.records.Update(ctx, drop)
	}
	return whole, err
}

// itsOwn reports whether an error concerns one disk alone, and so does not end the backup of all
// others.
func itsOwn(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	switch fault.As(err).Code {
	case fault.State, fault.NotFound, fault.Unsupported, fault.TooLarge, fault.Timeout, fault.Exhausted, fault.Conflict:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

func (t *taking) volumes(ctx context.Context) error {
	var all []*sandbox.Volume
	err := t.records.View(ctx, func(tx store.Tx) (err error) {
		all, err = tx.Volumes().List("")
		return err
	})
	if err != nil {
		return err
	}
	for _, v := range all {
		drop := func(tx store.Tx) error { return dropVolume(tx, v.ID) }
		if v.State != sandbox.VolumeReady {
			err = t.records.Update(ctx, drop)
		} else {
			_, err = t.disk(ctx, partVolume, v.ID, t.engine.Backups().Volume, drop)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropVolume deletes the record of a volume, and that it is mounted.
func dropVolume(tx store.Tx, id sandbox.ID) error {
	users, err := tx.Volumes().Users(id)
	if err != nil {
		return err
	}
	for _, u := range users {
		s, err := tx.Sandboxes().Get(u)
		if err != nil {
			return err
		}
		s.Mounts = slices.DeleteFunc(s.Mounts, func(m sandbox.Mount) bool { return m.Volume == id })
		if err := tx.Sandboxes().Update(s); err != nil {
			return err
		}
	}
	return tx.Volumes().Delete(id)
}

func (t *taking) snapshots(ctx context.Context) error {
	q := store.SnapshotQuery{Limit: store.MaxPage, Oldest: true}
	for {
		var page []*sandbox.Snapshot
		err := t.records.View(ctx, func(tx store.Tx) (err error) {
			page, q.Cursor, err = tx.Snapshots().List(q)
			return err
		})
		if err != nil {
			return err
		}
		for _, s := range page {
			drop := func(tx store.Tx) error { return tx.Snapshots().Delete(s.ID) }
			whole := false
			if s.State != sandbox.SnapshotReady {
				err = t.records.Update(ctx, drop)
			} else {
				whole, err = t.disk(ctx, partSnapshot, s.ID, t.engine.Backups().Snapshot, drop)
				if err == nil && whole && s.Archive.ID != "" { // it is in the backup with its disk
					err = t.records.Update(ctx, func(tx store.Tx) error {
						s.Archive = sandbox.Archive{}
						return tx.Snapshots().Update(s)
					})
				}
			}
			if err != nil {
				return err
			}
			if whole {
				t.images[backup.Image{Name: s.Image, Digest: s.ImageDigest}] = true
			}
		}
		if q.Cursor == "" {
			return nil
		}
	}
}

func (t *taking) sandboxes(ctx context.Context) error {
	q := store.SandboxQuery{Limit: store.MaxPage, Oldest: true}
	for {
		var page []*sandbox.Sandbox
		err := t.records.View(ctx, func(tx store.Tx) (err error) {
			page, q.Cursor, err = tx.Sandboxes().List(q)
			return err
		})
		if err != nil {
			return err
		}
		for _, s := range page {
			if err := t.sandbox(ctx, s); err != nil {
				return err
			}
		}
		if q.Cursor == "" {
			return nil
		}
	}
}

func (t *taking) sandbox(ctx context.Context, s *sandbox.Sandbox) error {
	drop := func(tx store.Tx) error { return tx.Sandboxes().Delete(s.ID) }
	if s.State == sandbox.Creating || s.State == sandbox.Deleting {
		return t.records.Update(ctx, drop)
	}
	whole, err := t.disk(ctx, partSandbox, s.ID, t.engine.Backups().Sandbox, drop)
	if err != nil || !whole {
		return err
	}
	t.images[backup.Image{Name: s.Image, Digest: s.ImageDigest}] = true
	if s.State != sandbox.Restoring && s.Archive == (sandbox.Archive{}) {
		return nil
	}
	// Its disk was kept in its turn: the exchange is done, or undone. One that is archived is in the backup
	// with its disk, and so is stopped there.
	return t.records.Update(ctx, func(tx store.Tx) error {
		s, err := tx.Sandboxes().Get(s.ID)
		if err != nil {
			return err
		}
		if s.State != sandbox.Restoring {
			s.State, s.Archive = sandbox.Stopped, sandbox.Archive{}
		} else {
			s.State, s.Restore = sandbox.Running, ""
		}
		return tx.Sandboxes().Update(s)
	})
}

// archives takes those that nobody owns out of the copy: a server that is made of the backup may keep its
// archives in the same place, where another one's are not its own to remove.
func (t *taking) archives(ctx context.Context) error {
	return t.records.Update(ctx, func(tx store.Tx) error {
		all, err := tx.UnownedArchives().All()
		for _, a := range all {
			if err == nil {
				err = tx.UnownedArchives().Delete(a.ID)
			}
		}
		return err
	})
}

// artifacts takes the files of the runs that the records have artifacts of. Those that were
// collected since are skipped.
func (t *taking) artifacts(ctx context.Context) error {
	root, err := os.OpenRoot(t.files)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the artifacts cannot be read")
	}
	defer func() { _ = root.Close() }()
	return t.out.Part(partArtifacts, func(w io.Writer) error {
		out := tar.NewWriter(w)
		q := store.RunQuery{Kept: true, Oldest: true, Limit: store.MaxPage}
		for {
			var page []*sandbox.Run
			err := t.records.View(ctx, func(tx store.Tx) (err error) {
				page, q.Cursor, err = tx.Runs().List(q)
				return err
			})
			if err != nil {
				return err
			}
			for _, r := range page {
				for _, a := range r.Artifacts {
					if err := artifact(ctx, out, root, r.ID+"/"+a.Path); err != nil {
						return err
					}
				}
			}
			if q.Cursor == "" {
				return out.Close()
			}
		}
	}, nil)
}

func artifact(ctx context.Context, out *tar.Writer, root *os.Root, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := root.Open(filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "an artifact cannot be read")
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	err = out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime().Truncate(time.Second), Format: tar.FormatPAX})
	if err != nil {
		return err
	}
	if n, err := io.CopyN(out, f, info.Size()); err != nil {
		return fmt.Errorf("an artifact was read to byte %d of %d: %w", n, info.Size(), err)
	}
	return nil
}
