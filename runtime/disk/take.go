// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"sandpit.dev/fault"
)

// Bounds of a layer from outside. The longest path leaves the kernel room for where it is unpacked.
const (
	maxPath   = 3 << 10
	maxName   = 255
	maxID     = 1<<16 - 1 // of users and groups
	entryCost = 512       // what an entry counts for beside its content and its names
)

// Take copies a layer that comes from outside, and leaves nothing in it that could lead anywhere else:
// each parent is a directory of the layer itself, no path is there twice, what deletes comes last, and there are no devices
// and no attributes that give rights. Names and contents are at most maxBytes. It returns how many
// they are. An archive of another form is fault.Invalid, a larger one fault.TooLarge.
func Take(ctx context.Context, r io.Reader, w io.Writer, maxBytes int64) (int64, error) {
	n, _, err := take(ctx, r, w, maxBytes, nil)
	return n, err
}

// TakeBelow is Take for a disk that has some directories alone, which are empty as it begins: what is elsewhere is left out, and
// so is what deletes. It also returns how many entries are.
func TakeBelow(ctx context.Context, r io.Reader, w io.Writer, maxBytes int64, dirs []string) (kept int64, left int, err error) {
	return take(ctx, r, w, maxBytes, dirs)
}

func take(ctx context.Context, r io.Reader, w io.Writer, maxBytes int64, below []string) (kept int64, left int, err error) {
	source := &source{ctx: ctx, r: r}
	t := &taker{below: below, in: tar.NewReader(source), out: tar.NewWriter(w), left: maxBytes, most: maxBytes, kinds: make(map[string]byte), missing: make(map[string]bool), opaque: make(map[string]bool), deleted: make(map[string]bool)}
	for {
		h, err := t.in.Next()
		if err == io.EOF && !source.ended {
			break
		}
		if err == io.EOF {
			err = fault.New(fault.Invalid, "the archive is cut off: it has no end")
		}
		if err == nil {
			err = t.entry(h)
		}
		if source.err != nil {
			return 0, 0, source.err
		}
		if err != nil {
			return 0, 0, invalid(err)
		}
	}
	if below == nil {
		if err := t.marks(); err != nil {
			return 0, 0, err
		}
	}
	return maxBytes - t.left, t.leftOut, t.out.Close()
}

// invalid says that what was read is no archive, unless err says what it is.
func invalid(err error) error {
	var write *writeError
	if errors.As(err, &write) {
		return write.error
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.Wrap(fault.Invalid, err, "the archive cannot be read (%s)", err.Error())
}

// writeError is of where the layer goes, and not the archive's fault.
type writeError struct{ error }

// source tells an error of the reader from one of what is read, and an archive's end from that of its reader.
type source struct {
	ctx   context.Context
	r     io.Reader
	err   error
	ended bool // there was nothing to read
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		s.err = err
		return 0, err
	}
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	s.ended = n == 0 && err == io.EOF
	return n, err
}

type taker struct {
	below      []string // directories that alone are kept; nil: all is
	leftOut    int      // entries that are not
	in         *tar.Reader
	out        *tar.Writer
	left, most int64
	kinds      map[string]byte // of what the layer has
	missing    map[string]bool // directories that are above something, and have had no entry so far
	opaque     map[string]bool
	deleted    map[string]bool
}

func refuse(h *tar.Header, what string) error {
	name := h.Name
	if len(name) > 100 {
		name = name[:100] + "…"
	}
	return fault.New(fault.Invalid, "the archive's entry %q %s", name, what)
}

func (t *taker) spend(n int64) error {
	if n < 0 || n > t.left {
		return fault.New(fault.TooLarge, "the archive holds more than %d bytes", t.most)
	}
	t.left -= n
	return nil
}

// pathOf returns the clean path of an entry; "": the root.
func pathOf(h *tar.Header, name string) (string, error) {
	if len(name) > maxPath {
		return "", refuse(h, "has a path of more than 3 KiB")
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			return "", refuse(h, "leads up, by \"..\"")
		case len(part) > maxName:
			return "", refuse(h, "has a name of more than 255 bytes")
		default:
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/"), nil
}

func (t *taker) entry(h *tar.Header) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if err := t.spend(entryCost + int64(len(h.Name)) + int64(len(h.Linkname))); err != nil {
		return err
	}
	name, err := pathOf(h, h.Name)
	if err != nil {
		return err
	}
	if name == "" {
		if h.Typeflag != tar.TypeDir {
			return refuse(h, "is the root, and no directory")
		}
		return nil
	}
	if slices.Contains([]string{"dev", "proc", "sys"}, name) && h.Typeflag != tar.TypeDir {
		return refuse(h, "is no directory: a sandbox has its own /"+name+" there")
	}
	if err := t.parents(h, path.Dir(name)); err != nil {
		return err
	}
	if base := path.Base(name); strings.HasPrefix(base, whiteoutPrefix) {
		if h.PAXRecords[literalRecord] != "" && t.below != nil {
			return t.make(h, name)
		}
		if h.PAXRecords[literalRecord] != "" {
			return refuse(h, "has a name that an Engine takes for a deletion")
		}
		return t.mark(h, path.Dir(name), base)
	}
	if own(name) {
		// A container has its own there; but what is above it is a directory, see parents.
		if h.Typeflag != tar.TypeLink {
			t.kinds[name] = h.Typeflag
		}
		return nil
	}
	return t.make(h, name)
}

// parents sees that all above an entry are directories.
func (t *taker) parents(h *tar.Header, dir string) error {
	if dir == "." || t.kinds[dir] == tar.TypeDir {
		return nil
	}
	if _, exists := t.kinds[dir]; exists {
		return refuse(h, "is below what is no directory")
	}
	if err := t.parents(h, path.Dir(dir)); err != nil {
		return err
	}
	if err := t.spend(entryCost); err != nil {
		return err
	}
	t.kinds[dir] = tar.TypeDir
	if !own(dir) {
		t.missing[dir] = true
	}
	return nil
}

// mark notes what is deleted of what is below.
func (t *taker) mark(h *tar.Header, dir, base string) error {
	switch {
	case base == opaqueMarker && dir == ".":
		return refuse(h, "hides the whole image, which a layer cannot")
	case base == opaqueMarker:
		if !own(dir) {
			t.opaque[dir] = true
		}
		return nil
	case strings.HasPrefix(base, reservedPrefix):
		return nil
	}
	base = strings.TrimPrefix(base, whiteoutPrefix)
	if base == "" || base == "." || base == ".." {
		return refuse(h, "deletes nothing that can be")
	}
	if name := path.Join(dir, base); !own(name) {
		t.deleted[name] = true
	}
	return nil
}

func (t *taker) make(h *tar.Header, name string) error {
	switch was, exists := t.kinds[name]; {
	case exists && was == tar.TypeDir && h.Typeflag != tar.TypeDir:
		return refuse(h, "was a directory before")
	case exists && was != tar.TypeDir && h.Typeflag == tar.TypeDir:
		return refuse(h, "was no directory before")
	case exists && !t.missing[name]:
		return refuse(h, "is there twice, which an Engine does not take")
	}
	delete(t.missing, name)
	if h.Mode < 0 || h.Uid < 0 || h.Uid > maxID || h.Gid < 0 || h.Gid > maxID {
		return refuse(h, "has an owner or a mode that is none")
	}
	to := &tar.Header{Typeflag: h.Typeflag, Name: name, Mode: h.Mode & 0o7777, Uid: h.Uid, Gid: h.Gid, ModTime: h.ModTime}
	kind := h.Typeflag
	switch h.Typeflag {
	case tar.TypeDir:
		to.Name += "/"
	case tar.TypeReg, tar.TypeGNUSparse:
		if err := t.spend(h.Size); err != nil {
			return err
		}
		kind, to.Typeflag, to.Size = tar.TypeReg, tar.TypeReg, h.Size
	case tar.TypeSymlink:
		to.Linkname = h.Linkname
		if h.Linkname == "" || len(h.Linkname) > maxPath {
			return refuse(h, "leads nowhere, or is too long")
		}
	case tar.TypeLink:
		target, err := pathOf(h, h.Linkname)
		if err != nil {
			return err
		}
		was, exists := t.kinds[target]
		if !exists || was == tar.TypeDir || own(target) {
			return refuse(h, "is a link to what is no file of the archive before it")
		}
		if target == name {
			return nil
		}
		if t.keeps(name) && !t.keeps(target) {
			return refuse(h, "is a link to a file that the disk does not have")
		}
		kind, to.Linkname = was, target
	case tar.TypeFifo:
	case tar.TypeChar, tar.TypeBlock:
		return refuse(h, "is a device")
	default:
		return refuse(h, "is of a kind that is unknown")
	}
	for record, value := range h.PAXRecords {
		if taken(record, value) && h.Typeflag != tar.TypeLink {
			if err := t.spend(int64(len(record) + len(value))); err != nil {
				return err
			}
			to.PAXRecords = with(to.PAXRecords, record, value)
		}
	}
	t.kinds[name] = kind
	if !t.keeps(name) {
		t.leftOut++
		return nil
	}
	if err := t.write(to); err != nil {
		return err
	}
	if to.Size == 0 {
		return nil
	}
	_, err := io.Copy(writer{t.out}, t.in)
	return err
}

// keeps reports whether a path is on the disk.
func (t *taker) keeps(name string) bool {
	return t.below == nil || slices.ContainsFunc(t.below, func(dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") })
}

func (t *taker) write(h *tar.Header) error {
	h.Format = tar.FormatPAX
	if err := t.out.WriteHeader(h); err != nil {
		return refuseWrite(err)
	}
	return nil
}

// refuseWrite tells a header that no archive can have from what cannot be written.
func refuseWrite(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) {
		return fault.Wrap(fault.Invalid, err, "the archive has an entry that cannot be kept (%s)", err.Error())
	}
	return &writeError{err}
}

type writer struct{ to *tar.Writer }

func (w writer) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if err != nil {
		err = &writeError{err}
	}
	return n, err
}

// marks writes directories without an entry, and what is deleted. What the layer itself has is not: of a directory, what is below.
func (t *taker) marks() error {
	for _, dir := range slices.Sorted(maps.Keys(t.missing)) {
		if err := t.write(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.deleted)) {
		if kind, exists := t.kinds[name]; !exists {
			dir, base := path.Split(name)
			if err := t.blank(dir + whiteoutPrefix + base); err != nil {
				return err
			}
		} else if kind == tar.TypeDir {
			t.opaque[name] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(t.opaque)) {
		if err := t.blank(dir + "/" + opaqueMarker); err != nil {
			return err
		}
	}
	return nil
}

func (t *taker) blank(name string) error {
	return t.write(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600})
}
