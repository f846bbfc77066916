// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

const (
	maxEntries = 1000 // of an archive, directories and what is passed over counted
	maxPath    = 512  // bytes
	maxPart    = 200  // bytes of one name in a path
	maxLevels  = 16
)

// A ZIP archive begins with the first and lists its entries each with the second.
const (
	zipMagic = "PK\x03\x04"
	zipEntry = "PK\x01\x02"
	zipNone  = "PK\x05\x06" // of one without entries
)

// Read reads a skill: a ZIP archive with a SKILL.md at its root, or in its only directory, or the text of
// a SKILL.md.
func Read(data []byte) (*Package, error) {
	if len(data) > MaxBytes {
		return nil, fault.New(fault.TooLarge, "the skill has %d bytes, and at most %d are allowed", len(data), MaxBytes).
			WithRemedy("leave out what an agent can fetch or make by itself")
	}
	if len(data) == 0 {
		return nil, wrong("is empty")
	}
	var files []Content
	if bytes.HasPrefix(data, []byte(zipMagic)) || bytes.HasPrefix(data, []byte(zipNone)) {
		var err error
		if files, err = readZip(data); err != nil {
			return nil, err
		}
	} else {
		files = []Content{{Path: File, Data: slices.Clone(data)}}
	}
	slices.SortFunc(files, func(a, b Content) int { return strings.Compare(a.Path, b.Path) })
	p := &Package{Files: files}
	text, _ := p.Read(File)
	var err error
	if p.Meta, err = readText(text); err != nil {
		return nil, err
	}
	return p, nil
}

// readZip reads the files of an archive, whose names it makes those below the skill's directory.
func readZip(data []byte) ([]Content, error) {
	// The archive's reader makes a record of each entry before anything can be asked of them.
	if n := bytes.Count(data, []byte(zipEntry)); n > maxEntries {
		return nil, wrong("the archive has more than %d entries", maxEntries)
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are checked below
		return nil, wrong("the archive is not a ZIP archive, or not a whole one")
	}
	var out []Content
	seen := make(names)
	left := int64(MaxBytes)
	for _, f := range r.File {
		path, skip, err := check(f)
		if err != nil {
			return nil, err
		}
		if skip {
			continue
		}
		if err := seen.add(path, f.Mode().IsDir()); err != nil {
			return nil, err
		}
		if f.Mode().IsDir() {
			continue
		}
		if len(out) == MaxFiles {
			return nil, wrong("the archive has more than %d files", MaxFiles)
		}
		c, err := extract(f, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(c.Data))
		c.Path = path
		out = append(out, c)
	}
	return below(out)
}

// check checks an entry, and reports whether it is one of those that systems add by themselves.
func check(f *zip.File) (path string, skip bool, err error) {
	path = strings.TrimSuffix(f.Name, "/")
	first, _, _ := strings.Cut(path, "/")
	if first == "__MACOSX" || strings.HasSuffix("/"+path, "/.DS_Store") {
		return "", true, nil
	}
	shown := sandbox.Clip(f.Name, 80)
	switch {
	case !utf8.ValidString(path):
		return "", false, wrong("the archive has a name that is not UTF-8, %q", shown)
	case strings.ContainsAny(path, `\`):
		return "", false, wrong("%q is not a valid path in a skill: write / between names", shown)
	case path == "" || strings.HasPrefix(path, "/") || !fs.ValidPath(path) || path == ".":
		return "", false, wrong("%q is not a valid path in a skill: it is absolute, or leads out of the skill", shown)
	case strings.ContainsFunc(path, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
		return "", false, wrong("%q is not a valid path in a skill: it has a character that cannot be seen", shown)
	case len(path) > maxPath || strings.Count(path, "/") >= maxLevels:
		return "", false, wrong("%q is not a valid path in a skill: it is longer than %d bytes, or deeper than %d directories", shown, maxPath, maxLevels)
	}
	for part := range strings.SplitSeq(path, "/") {
		if len(part) > maxPart {
			return "", false, wrong("%q is not a valid path in a skill: a name in it is longer than %d bytes", shown, maxPart)
		}
	}
	switch mode := f.Mode(); {
	case f.Flags&1 != 0:
		return "", false, wrong("%q is encrypted", shown)
	case mode.Type()&fs.ModeSymlink != 0:
		return "", false, wrong("%q is a symbolic link; a skill has files and directories", shown)
	case !mode.IsRegular() && !mode.IsDir():
		return "", false, wrong("%q is neither a file nor a directory", shown)
	case strings.HasSuffix(f.Name, "/") != mode.IsDir():
		return "", false, wrong("%q is a file by its name and a directory by its mode, or the other way round", shown)
	}
	return path, false, nil
}

// names are the paths of an archive by how they are spelled where letter case does not count.
type names map[string]entry

type entry struct {
	path string
	dir  bool
	told bool // the archive has an entry of its own for it
}

// add adds a path and the directories above it.
func (n names) add(path string, dir bool) error {
	for i, c := range path {
		if c == '/' {
			if err := n.one(path[:i], true, false); err != nil {
				return err
			}
		}
	}
	return n.one(path, dir, true)
}

func (n names) one(path string, dir, told bool) error {
	key := strings.ToLower(strings.ToUpper(path))
	is, ok := n[key]
	switch {
	case !ok:
		n[key] = entry{path, dir, told}
	case is.path != path:
		return wrong("%q and %q differ in letter case alone, and are one file on some systems", sandbox.Clip(is.path, 80), sandbox.Clip(path, 80))
	case is.dir != dir:
		return wrong("%q is a file and a directory", sandbox.Clip(path, 80))
	case told && is.told:
		return wrong("the archive has %q twice", sandbox.Clip(path, 80))
	default:
		n[key] = entry{path, dir, is.told || told}
	}
	return nil
}

// extract reads a file of at most so many bytes, whatever its header says.
func extract(f *zip.File, most int64) (Content, error) {
	tooLarge := fault.New(fault.TooLarge, "the files of the skill have more than %d bytes together", MaxBytes).
		WithRemedy("leave out what an agent can fetch or make by itself")
	if f.UncompressedSize64 > uint64(most) {
		return Content{}, tooLarge
	}
	r, err := f.Open()
	if err != nil {
		return Content{}, wrong("%q cannot be unpacked: it is compressed in an unusual way, or broken", sandbox.Clip(f.Name, 80))
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case int64(len(data)) > most:
		return Content{}, tooLarge
	case err != nil:
		return Content{}, wrong("%q cannot be unpacked: it is broken", sandbox.Clip(f.Name, 80))
	}
	// An archive that was not written on Unix says of no file that it can be run.
	exec := f.Mode()&0o111 != 0 || bytes.HasPrefix(data, []byte("#!"))
	return Content{Exec: exec, Data: data}, nil
}

// below returns the files with paths below the directory that SKILL.md is in.
func below(files []Content) ([]Content, error) {
	at := func(path string) bool {
		return slices.ContainsFunc(files, func(f Content) bool { return f.Path == path })
	}
	if at(File) {
		return files, nil
	}
	if len(files) == 0 {
		return nil, wrong("the archive has no files; a skill has a %s", File).WithReason(ReasonNoFile)
	}
	top, _, ok := strings.Cut(files[0].Path, "/")
	if !ok || !at(top+"/"+File) {
		return nil, wrong("the archive has no %s at its root or in its only directory", File).WithReason(misplaced(files))
	}
	why := misplaced(files)
	for i := range files {
		rest, ok := strings.CutPrefix(files[i].Path, top+"/")
		if !ok {
			return nil, wrong("%q is not in the directory %q, in which %s is", sandbox.Clip(files[i].Path, 80), sandbox.Clip(top, 80), File).WithReason(why)
		}
		files[i].Path = rest
	}
	return files, nil
}

// misplaced returns the reason of an archive whose SKILL.md is not where it has to be.
func misplaced(files []Content) string {
	n := 0
	for _, f := range files {
		if _, name, ok := strings.Cut(f.Path, "/"); ok && name == File {
			n++
		}
	}
	if n > 1 {
		return ReasonManyFiles
	}
	return ReasonNoFile
}
