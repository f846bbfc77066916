// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package archive is the form of a snapshot's archive, and the order in which archives are
// unpacked. It knows neither what becomes of a layer nor whose snapshot it is.
//
// An archive is a tar archive, compressed by gzip. Its first entry is sandpit.json (type Meta),
// padded by spaces to whole blocks of tar; what follows is an OCI image layer as the driver wrote
// it: what the snapshot changed of its image, with whiteouts. So the layer goes through untouched,
// and tar reads the whole. Neither the sandbox's variables nor its labels are in it, since both may
// hold secrets.
package archive

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

	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

const (
	entryName = "sandpit.json"
	format    = 1
	maxEntry  = 64 << 10 // bytes of that entry
	maxText   = 255      // bytes of one text in it
	tarBlock  = 512
)

// Meta is the first entry of an archive.
type Meta struct {
	Format      int            `json:"format"` // Write fills it in
	Image       string         `json:"image"`
	ImageDigest string         `json:"image_digest"`
	Limits      sandbox.Limits `json:"limits"`
	Name        string         `json:"name,omitempty"`
	CreatedAt   time.Time      `json:"created_at"`
}

// Write writes an archive to w, whose layer the function writes. What w got before an error is
// no archive: its end is missing.
func Write(w io.Writer, m Meta, layer func(io.Writer) error) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := m.write(z); err != nil {
		return err
	}
	if err := layer(z); err != nil {
		return err
	}
	return z.Close()
}

func (m Meta) write(w io.Writer) error {
	m.Format, m.CreatedAt = format, m.CreatedAt.UTC()
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if rest := len(text) % tarBlock; rest != 0 {
		text = append(text, bytes.Repeat([]byte{' '}, tarBlock-rest)...)
	}
	t := tar.NewWriter(w)
	err = t.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: entryName, Mode: 0o644, Size: int64(len(text)), ModTime: m.CreatedAt.Truncate(time.Second), Format: tar.FormatUSTAR,
	})
	if err != nil {
		return err
	}
	if _, err := t.Write(text); err != nil {
		return err
	}
	return t.Flush() // and no Close: the layer goes on
}

// Reader reads the layer of an archive, of which nothing is trusted. It is for one goroutine.
type Reader struct{ in *bounded }

// Open reads the beginning of an archive, and returns what it says and the reader of its layer.
// More than most bytes of archive are not read: names and attributes take room beside what is
// kept, and without any bound a small archive could keep the server busy for ever. What
// is not an archive, or one that this server cannot read, is fault.Invalid, one too large fault.TooLarge.
func Open(r io.Reader, most int64) (Meta, *Reader, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return Meta{}, nil, notArchive(err)
	}
	in := &bounded{r: z, left: most}
	m, err := readMeta(in)
	return m, &Reader{in}, err
}

// Read reads the layer.
func (r *Reader) Read(p []byte) (int, error) { return r.in.Read(p) }

// End returns how the reading of the layer ended, which was with err: as fault.TooLarge where the
// archive has too much, as fault.Invalid where err is nil and the rest of the archive is broken.
func (r *Reader) End(err error) error {
	if err == nil && !r.in.over {
		if _, err = io.Copy(io.Discard, r.in); err != nil { // what gzip says of the whole comes at its end
			err = notArchive(err)
		}
	}
	if r.in.over {
		return tooLarge()
	}
	return err
}

// readMeta reads the first entry, and leaves r where the layer begins.
func readMeta(r io.Reader) (Meta, error) {
	var meta Meta
	t := tar.NewReader(r) // it reads no further than it is asked to
	h, err := t.Next()
	if err != nil {
		return meta, notArchive(err)
	}
	if h.Name != entryName || h.Typeflag != tar.TypeReg {
		return meta, notArchive(fmt.Errorf("the first entry is %q of type %q", h.Name, h.Typeflag))
	}
	if h.Size > maxEntry {
		return meta, fault.New(fault.TooLarge, "the archive's %s has %d bytes, more than %d", entryName, h.Size, maxEntry)
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
		return meta, fault.Wrap(fault.Invalid, err, "the archive's %s cannot be read: %s", entryName, sandbox.Clip(err.Error(), 200)).
			WithRemedy("export the snapshot again; an archive of a newer server may need a newer server")
	}
	if _, err := dec.Token(); err != io.EOF {
		return meta, fault.New(fault.Invalid, "the archive's %s holds more than one value", entryName)
	}
	if meta.Format != format {
		return meta, fault.New(fault.Invalid, "the archive has the format %d, and this server reads %d", meta.Format, format).
			WithRemedy("import it on a server of the version that wrote it, or export the snapshot again")
	}
	return meta, meta.check()
}

func (m *Meta) check() error {
	var k check.Fields
	if m.Image == "" || len(m.Image) > maxText || !check.Plain(m.Image) {
		k.Bad("image", "%q is not a valid image name", sandbox.Clip(m.Image, 80))
	}
	if m.ImageDigest == "" || len(m.ImageDigest) > maxText || !check.Plain(m.ImageDigest) {
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

func notArchive(err error) error {
	if fault.Is(err, fault.TooLarge) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Wrap(fault.Invalid, err, "this is not an archive of a snapshot, or it was cut off").
		WithRemedy("import what an export wrote, whole")
}

// bounded is a reader that gives so many bytes, and an error where there are more.
type bounded struct {
	r    io.Reader
	left int64
	over bool
}

func (x *bounded) Read(p []byte) (int, error) {
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
		return 0, tooLarge()
	}
	n, err := x.r.Read(p[:min(int64(len(p)), x.left)])
	x.left -= int64(n)
	return n, err
}

func tooLarge() error {
	return fault.New(fault.TooLarge, "the archive holds more than this server takes of one").
		WithRemedy("raise the default disk limit of the server, which bounds what it takes")
}
