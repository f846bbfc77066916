// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package points

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Bounds of a comparison of texts. The work grows with n log n of the lines.
const (
	MaxText      = 2 << 20 // bytes of each text
	MaxTextLines = 100_000 // of each text
	MaxHunks     = 2 << 20 // bytes of what differs
)

// TextKind says what a comparison could tell.
type TextKind string

const (
	SameText   TextKind = "same"      // nothing differs: of files of any kind the bytes, else that there is the same
	DiffersAs  TextKind = "text"      // see the hunks
	Binary     TextKind = "binary"    // they differ, and one has a NUL or is not UTF-8
	TooLarge   TextKind = "too_large" // one has more than MaxText bytes, or MaxTextLines lines, and was not looked at
	NotRegular TextKind = "no_file"   // one is a directory, a link or something else without text
)

// TextDiff is what differs in a file between two points in time.
type TextDiff struct {
	Path     string
	From, To *sandbox.FileInfo // nil: there is none
	Kind     TextKind
	Hunks    []Hunk

	Added, Removed int // lines, also of hunks that are left out
	Truncated      bool
}

// Hunk is lines that differ, with up to three around them that do not.
type Hunk struct {
	FromLine, FromLines int // the first is 1; of no lines the one before
	ToLine, ToLines     int
	// Lines begin with a space, "-" or "+", and have no line end. One that begins with "\" says that the line before it
	// has none in its file.
	Lines []string
}

// DiffText compares the texts that a file has at two points in time of a sandbox. One that is there at neither is
// fault.NotFound.
func (s *Service) DiffText(ctx context.Context, c access.Caller, ref, from, to, p string) (TextDiff, error) {
	d := TextDiff{Path: p}
	p, err := inside("path", p)
	if err != nil {
		return d, err
	}
	select {
	case s.diffs <- struct{}{}:
		defer func() { <-s.diffs }()
	case <-ctx.Done():
		return d, ctx.Err()
	}
	var texts [2][]byte
	var kinds [2]TextKind
	for i, at := range [2]string{from, to} {
		info, text, kind, err := s.text(ctx, c, ref, at, p)
		if err != nil {
			return d, err
		}
		texts[i], kinds[i] = text, kind
		if i == 0 {
			d.From = info
		} else {
			d.To = info
		}
	}
	switch {
	case d.From == nil && d.To == nil:
		return d, fault.New(fault.NotFound, "there is no %q at either point", cut(d.Path)).WithRemedy("compare the disks to see what differs")
	case kinds[0] == NotRegular || kinds[1] == NotRegular:
		d.Kind = NotRegular
	case kinds[0] == TooLarge || kinds[1] == TooLarge:
		d.Kind = TooLarge
	case (d.From == nil) == (d.To == nil) && bytes.Equal(texts[0], texts[1]):
		d.Kind = SameText
	case kinds[0] == Binary || kinds[1] == Binary:
		d.Kind = Binary
	default:
		d.Kind = DiffersAs
		d.hunks(diff.Diff("a", texts[0], "b", texts[1]))
	}
	return d, nil
}

// text reads a file at a point. It is nil where there is none.
func (s *Service) text(ctx context.Context, c access.Caller, ref, at, p string) (*sandbox.FileInfo, []byte, TextKind, error) {
	ctx, v, done, err := s.view(ctx, c, ref, at)
	if err != nil {
		return nil, nil, "", err
	}
	defer done()
	info, err := v.Stat(ctx, p)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil, "", nil
	case err != nil:
		return nil, nil, "", err
	}
	info = escaped(info)
	if info.Type != sandbox.RegularFile {
		return &info, nil, NotRegular, nil
	}
	text, kind, err := content(ctx, v, p)
	return &info, text, kind, err
}

func content(ctx context.Context, v runtime.View, p string) ([]byte, TextKind, error) {
	info, r, err := v.Open(ctx, p)
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	if info.Size > MaxText {
		return nil, TooLarge, nil
	}
	text, err := io.ReadAll(io.LimitReader(r, MaxText+1))
	switch {
	case err != nil:
		return nil, "", fault.Wrap(fault.Unavailable, err, "the file cannot be read")
	case len(text) > MaxText || bytes.Count(text, []byte("\n")) > MaxTextLines:
		return nil, TooLarge, nil
	case bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text):
		return text, Binary, nil
	}
	return text, "", nil
}

// hunks reads a unified diff, of which the first three lines name the files.
func (d *TextDiff) hunks(unified []byte) {
	rest := string(unified)
	held, names := 0, 3
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		rest = after
		if names > 0 || line == "" { // none of the others is empty
			names--
			continue
		}
		switch line[0] {
		case '@':
			var h Hunk
			if h.read(line) {
				d.Hunks = append(d.Hunks, h)
			}
			continue
		case '+':
			d.Added++
		case '-':
			d.Removed++
		}
		if held += len(line) + 8; held > MaxHunks {
			d.Truncated = true
			continue
		}
		if n := len(d.Hunks); n > 0 {
			d.Hunks[n-1].Lines = append(d.Hunks[n-1].Lines, line)
		}
	}
	// What begins beyond the bound has no lines.
	for n := len(d.Hunks); n > 0 && len(d.Hunks[n-1].Lines) == 0; n-- {
		d.Hunks = d.Hunks[:n-1]
	}
}

// read reads "@@ -1,2 +3,4 @@".
func (h *Hunk) read(line string) bool {
	f := strings.Fields(line)
	if len(f) != 4 {
		return false
	}
	for i, at := range [...]struct{ line, lines *int }{{&h.FromLine, &h.FromLines}, {&h.ToLine, &h.ToLines}} {
		first, count, both := strings.Cut(f[1+i][1:], ",")
		*at.line, _ = strconv.Atoi(first)
		if *at.lines = 1; both {
			*at.lines, _ = strconv.Atoi(count)
		}
	}
	return true
}
