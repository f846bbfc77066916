// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// An archive of a snapshot is a tar archive, compressed by gzip. Its first entry is
// sandpit.json (type archived), padded by spaces to whole blocks of tar; what follows
// is an OCI image layer as the driver wrote it: what the snapshot changed of its image,
// with whiteouts. So the layer goes through untouched, and tar reads the whole. Neither
// the sandbox's variables nor its labels are in it, since both may hold secrets.
const (
	archiveEntry  = "sandpit.json"
	archiveFormat = 1
	maxArchived   = 64 << 10 // bytes of that entry
	tarBlock      = 512
)

// archived is the first entry of an archive.
type archived struct {
	Format      int            `json:"format"`
	Image       string         `json:"image"`
	ImageDigest string         `json:"image_digest"`
	Limits      sandbox.Limits `json:"limits"`
	Name        string         `json:"name,omitempty"`
	CreatedAt   time.Time      `json:"created_at"`
}

// ExportSnapshot writes a snapshot, named as for Snapshot, to w as an archive that
// ImportSnapshot reads, on this server or another. It is not deleted meanwhile. What
// w got before an error is no archive: its end is missing.
func (e *Engine) ExportSnapshot(ctx context.Context, c access.Caller, of, snap string, w io.Writer) error {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return err
	}
	defer e.group.leave()
	bound, cancel := e.group.bind(ctx)
	defer cancel()
	kept, release, err := e.holdSnapshot(bound, c.Project, of, snap)
	if err != nil {
		return err
	}
	defer release()
	d, err := e.snapshotter(kept.Runtime)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := writeArchived(z, kept); err != nil {
		return err
	}
	if err := d.Export(bound, kept.ID, z); err != nil {
		if bound.Err() != nil && ctx.Err() == nil {
			return shuttingDown()
		}
		return err
	}
	return z.Close()
}

func writeArchived(w io.Writer, snap *sandbox.Snapshot) error {
	text, err := json.Marshal(archived{
		Format: archiveFormat, Image: snap.Image, ImageDigest: snap.ImageDigest,
		Limits: snap.Limits, Name: snap.Name, CreatedAt: snap.CreatedAt.UTC(),
	})
	if err != nil {
		return err
	}
	if rest := len(text) % tarBlock; rest != 0 {
		text = append(text, bytes.Repeat([]byte{' '}, tarBlock-rest)...)
	}
	t := tar.NewWriter(w)
	err = t.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: archiveEntry, Mode: 0o644, Size: int64(len(text)), ModTime: snap.CreatedAt.Truncate(time.Second), Format: tar.FormatUSTAR,
	})
	if err != nil {
		return err
	}
	if _, err := t.Write(text); err != nil {
		return err
	}
	return t.Flush() // and no Close: the layer goes on
}

// ImportRequest is how an imported snapshot shall be known.
type ImportRequest struct {
	Name string // unique among the project's imported ones; empty: none
}

// ImportSnapshot makes a snapshot of an archive, which may come from anywhere: nothing
// in it is trusted. It belongs to no sandbox. The image that it was made of has to be
// known here, in exactly that build, else it is fault.NotFound. As much is kept of it as
// a sandbox's disk holds by default, more is fault.TooLarge. More than [MaxImports] of a
// project at a time are fault.Exhausted.
func (e *Engine) ImportSnapshot(ctx context.Context, c access.Caller, r io.Reader, q ImportRequest) (*sandbox.Snapshot, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	if q.Name != "" {
		if err := sandbox.CheckSnapshotName("name", q.Name); err != nil {
			return nil, err
		}
	}
	if err := e.enterWork(c, access.SandboxesWrite); err != nil {
		return nil, err
	}
	defer e.group.leave()
	if err := e.refuseValues(ctx, c.Project, "", onRecord{"name": {q.Name}}); err != nil {
		return nil, err
	}
	turn, err := e.imports.begin(c.Project)
	if err != nil {
		return nil, err
	}
	defer turn.end()
	bound, cancel := e.group.bind(ctx)
	defer cancel()
	snap, err := e.importSnapshot(bound, askerOf(c), c.Project, turn.reader(bound, r), q)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		err = shuttingDown()
	}
	return snap, err
}

func (e *Engine) importSnapshot(ctx context.Context, who asker, project string, r io.Reader, q ImportRequest) (*sandbox.Snapshot, error) {
	d, err := e.snapshotter(e.fallback)
	if err != nil {
		return nil, err
	}
	most := int64(e.defaults.Limits.DiskMB) << 20
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, notArchive(err)
	}
	// Names and attributes take room beside what is kept; without any bound a small
	// archive could keep the server busy for ever.
	in := &rationed{r: z, left: 2*most + 64<<20}
	meta, err := readArchived(in)
	if err != nil {
		return nil, err
	}
	if _, err := e.images.FindDigest(meta.Image, meta.ImageDigest); err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "the archive was made of the image %s in the build %s, which this server does not have", meta.Image, meta.ImageDigest).
			WithRemedy("build the image %s here, or take over the server's images from where the archive was written; another build of it has another digest and does not fit", meta.Image)
	}
	snap := &sandbox.Snapshot{
		ID: sandbox.NewID(), Project: project, Name: q.Name,
		Image: meta.Image, ImageDigest: meta.ImageDigest, Runtime: e.fallback, Limits: meta.Limits,
		State: sandbox.SnapshotCreating, SizeBytes: -1, CreatedAt: e.now(), CreatedBy: who.actor,
		Detail: "imported; taken at " + meta.CreatedAt.UTC().Format(time.RFC3339),
	}
	if meta.Name != "" {
		snap.Detail += fmt.Sprintf(" as %q", meta.Name)
	}
	give, err := e.holds.own(ctx, snap.ID)
	if err != nil {
		return nil, err
	}
	defer give()
	err = e.store.Update(ctx, func(tx store.Tx) error { return tx.Snapshots().Insert(snap) })
	if fault.Is(err, fault.Exists) {
		return nil, fault.Wrap(fault.Exists, err, "the project has an imported snapshot named %q already", q.Name).
			WithRemedy("choose another name, or delete that one")
	}
	if err != nil {
		return nil, err
	}
	e.checkpoint("import.intent")
	got, err := d.Import(ctx, snap.ID, in, most)
	if err == nil && in.over {
		err = in.tooLarge()
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in) // what gzip says of the whole comes at its end
		if err != nil {
			err = notArchive(err)
		}
	}
	e.checkpoint("import.done")
	if err != nil {
		if in.over {
			err = in.tooLarge()
		}
		return nil, e.undoSnapshot(ctx, snap, who, err)
	}
	ready := *snap
	ready.State, ready.SizeBytes = sandbox.SnapshotReady, got.SizeBytes
	ev := who.snapshotEvent(sandbox.EventSnapshot, &ready, e.now(), snap.Detail)
	err = e.store.Update(ctx, func(tx store.Tx) error {
		if err := tx.Snapshots().Update(&ready); err != nil {
			return err
		}
		return tx.Events().Append(ev)
	})
	if err != nil {
		return nil, e.undoSnapshot(ctx, snap, who, err)
	}
	e.metrics.happened([]*sandbox.Event{ev})
	e.checkpoint("import.outcome")
	return &ready, nil
}

// readArchived reads the first entry, and leaves r where the layer begins.
func readArchived(r io.Reader) (archived, error) {
	var meta archived
	t := tar.NewReader(r) // it reads no further than it is asked to
	h, err := t.Next()
	if err != nil {
		return meta, notArchive(err)
	}
	if h.Name != archiveEntry || h.Typeflag != tar.TypeReg {
		return meta, notArchive(fmt.Errorf("the first entry is %q of type %q", h.Name, h.Typeflag))
	}
	if h.Size > maxArchived {
		return meta, fault.New(fault.TooLarge, "the archive's %s has %d bytes, more than %d", archiveEntry, h.Size, maxArchived)
	}
	text, err := io.ReadAll(t)
	if err != nil {
		return meta, notArchive(err)
	}
	if rest := len(text) % tarBlock; rest != 0 {
		if _, err := io.CopyN(io.Discard, r, int64(tarBlock-rest)); err != nil {
			return meta, notArchive(err)
		}
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&meta); err != nil {
		return meta, fault.Wrap(fault.Invalid, err, "the archive's %s cannot be read: %s", archiveEntry, sandbox.Clip(err.Error(), 200)).
			WithRemedy("export the snapshot again; an archive of a newer server may need a newer server")
	}
	if _, err := dec.Token(); err != io.EOF {
		return meta, fault.New(fault.Invalid, "the archive's %s holds more than one value", archiveEntry)
	}
	if meta.Format != archiveFormat {
		return meta, fault.New(fault.Invalid, "the archive has the format %d, and this server reads %d", meta.Format, archiveFormat).
			WithRemedy("import it on a server of the version that wrote it, or export the snapshot again")
	}
	return meta, meta.check()
}

func (m *archived) check() error {
	var k check.Fields
	if m.Image == "" || len(m.Image) > maxArchivedText || !check.Plain(m.Image) {
		k.Bad("image", "%q is not a valid image name", sandbox.Clip(m.Image, 80))
	}
	if m.ImageDigest == "" || len(m.ImageDigest) > maxArchivedText || !check.Plain(m.ImageDigest) {
		k.Bad("image_digest", "%q is not a valid digest", sandbox.Clip(m.ImageDigest, 80))
	}
	if m.Name != "" {
		k.Add(sandbox.CheckSnapshotName("name", m.Name))
	}
	k.Limits(m.Limits, sandbox.MaxLimits())
	if y := m.CreatedAt.Year(); y < 1970 || y > 9999 {
		k.Bad("created_at", "is no time of this age")
	}
	return k.Err()
}

// maxArchivedText is the most bytes of one text in an archive's first entry.
const maxArchivedText = 255

func notArchive(err error) error {
	if fault.Is(err, fault.TooLarge) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Wrap(fault.Invalid, err, "this is not an archive of a snapshot, or it was cut off").
		WithRemedy("import what an export wrote, whole")
}

// rationed is a reader that gives so many bytes, and an error where there are more.
type rationed struct {
	r    io.Reader
	left int64
	over bool
}

func (x *rationed) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if x.left <= 0 {
		var one [1]byte
		n, err := x.r.Read(one[:])
		if n == 0 {
			return 0, err
		}
		x.over = true
		return 0, x.tooLarge()
	}
	n, err := x.r.Read(p[:min(int64(len(p)), x.left)])
	x.left -= int64(n)
	return n, err
}

func (x *rationed) tooLarge() error {
	return fault.New(fault.TooLarge, "the archive holds more than this server takes of one").
		WithRemedy("raise the default disk limit of the server, which bounds what it takes")
}
