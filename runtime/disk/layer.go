// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"archive/tar"
	"context"
	"encoding/hex"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// Names of a layer's entries that say what is deleted of what is below.
const (
	whiteoutPrefix = ".wh."
	opaqueMarker   = ".wh..wh..opq"
	reservedPrefix = ".wh..wh." // of other programs
	// literalRecord: the name is what it says, in spite of the whiteoutPrefix. Archives of other
	// drivers have it.
	literalRecord = "SANDPIT.literal"
)

// Difference is what a layer has to hold that makes one tree of another.
type Difference struct {
	written map[string]bool
	deleted []string // sorted; of a directory that is gone, that alone
}

// Between compares two trees. Of a file with several names either all are written, or none.
func Between(below, disk *Tree) *Difference {
	d := &Difference{written: make(map[string]bool)}
	groups := map[string]bool{}
	for name, is := range disk.entries {
		was := below.entries[name]
		if was != nil && was.same(is) && was.time == is.time && was.group == is.group {
			continue
		}
		d.written[name] = true
		if is.group != "" {
			groups[is.group] = true
		}
	}
	for name, is := range disk.entries {
		if is.group != "" && groups[is.group] {
			d.written[name] = true
		}
	}
	for name, was := range below.entries {
		if was == nil || disk.entries[name] != nil {
			continue
		}
		// Below what is gone or is no directory any more there is nothing to delete.
		if parent := path.Dir(name); parent == "." || disk.entries[parent] != nil && disk.entries[parent].kind == tar.TypeDir {
			d.deleted = append(d.deleted, name)
		}
	}
	slices.Sort(d.deleted)
	for _, name := range slices.AppendSeq(slices.Clone(d.deleted), maps.Keys(d.written)) {
		d.above(name)
	}
	return d
}

// above has the directories above a path written: who unpacks a layer makes those up that it lacks.
func (d *Difference) above(name string) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		d.written[dir] = true
	}
}

// Write writes the layer. r is the archive of the tree that it makes, once more.
func (d *Difference) Write(ctx context.Context, r io.Reader, w io.Writer) error {
	archive, out := tar.NewReader(r), tar.NewWriter(w)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return broken(err)
		}
		if err := d.copy(h, archive, out); err != nil {
			return err
		}
	}
	for _, name := range d.deleted {
		dir, base := path.Split(name)
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dir + whiteoutPrefix + base, Mode: 0o600, Format: tar.FormatPAX}); err != nil {
			return err
		}
	}
	return out.Close()
}

func (d *Difference) copy(h *tar.Header, content io.Reader, out *tar.Writer) error {
	name := clean(h.Name)
	if !d.written[name] {
		return nil
	}
	to := &tar.Header{
		Typeflag: h.Typeflag, Name: name, Linkname: h.Linkname, Mode: h.Mode & 0o7777, Uid: h.Uid, Gid: h.Gid, ModTime: h.ModTime, Size: h.Size, Format: tar.FormatPAX,
	}
	switch h.Typeflag {
	case tar.TypeDir:
		to.Name += "/"
	case tar.TypeLink:
		to.Linkname = clean(h.Linkname)
	}
	for record, value := range h.PAXRecords {
		if taken(record, value) {
			to.PAXRecords = with(to.PAXRecords, record, value)
		}
	}
	if h.Typeflag == tar.TypeReg {
		var err error
		if to.Size, content, err = plain(h, content); err != nil {
			return broken(err)
		}
	}
	if strings.HasPrefix(path.Base(name), whiteoutPrefix) {
		to.PAXRecords = with(to.PAXRecords, literalRecord, "1")
	}
	if err := out.WriteHeader(to); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(out, content)
	return err
}

func with(records map[string]string, name, value string) map[string]string {
	if records == nil {
		records = make(map[string]string)
	}
	records[name] = value
	return records
}

// taken reports whether a record is of an attribute that is taken elsewhere.
func taken(record, value string) bool {
	if attribute, ok := strings.CutPrefix(record, attributeRecord); ok {
		return portable(attribute) && !strings.Contains(attribute, "=") && value != ""
	}
	if attribute, ok := strings.CutPrefix(record, bareRecord); ok {
		name, err := hex.DecodeString(attribute)
		return err == nil && portable(string(name)) && strings.HasPrefix(value, "=")
	}
	return false
}

// portable reports whether an attribute is taken elsewhere: those of programs inside are, and those
// that give rights or are the overlay's are not.
func portable(attribute string) bool {
	return strings.HasPrefix(attribute, "user.") && !strings.HasPrefix(attribute, "user.overlay.")
}
