// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandpit.dev/fault"
)

//go:embed entries
var shipped embed.FS

// maxEntries bounds a directory of entries.
const maxEntries = 200

// Shipped returns the entries that are part of the program.
func Shipped() []Entry {
	dir, err := fs.Sub(shipped, "entries")
	if err != nil {
		panic("entry: " + err.Error())
	}
	all, err := readAll(dir, "entries")
	if err != nil {
		panic("entry: " + err.Error())
	}
	return all
}

// Catalogue returns the shipped entries, and those of the operator's directory beside them: one with
// the name of a shipped one takes its place. "" is no directory.
func Catalogue(dir string) ([]Entry, error) {
	all := Shipped()
	if dir == "" {
		return all, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the directory of entries %s cannot be opened", dir).
			WithRemedy("make it, or mend catalogue in the configuration")
	}
	defer root.Close()
	own, err := readAll(root.FS(), dir)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s Entry) bool {
		return slices.ContainsFunc(own, func(o Entry) bool { return o.Name == s.Name })
	})
	return append(all, own...), nil
}

// readAll reads the files of a directory that end in .yaml or .yml, in the order of their names.
func readAll(dir fs.FS, where string) ([]Entry, error) {
	files, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the directory of entries %s cannot be read", where)
	}
	var all []Entry
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); ext != ".yaml" && ext != ".yml" || strings.HasPrefix(f.Name(), ".") {
			continue
		}
		if len(all) == maxEntries {
			return nil, fault.New(fault.Invalid, "the directory of entries %s has more than %d", where, maxEntries)
		}
		path := filepath.Join(where, f.Name())
		text, err := readFile(dir, f.Name())
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the entry %s cannot be read: %v", path, err)
		}
		e, err := Parse(path, text, dir)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(all, func(o Entry) bool { return o.Name == e.Name }); i >= 0 {
			return nil, fault.New(fault.Invalid, "%s: the name %s is that of %s, too", path, e.Name, all[i].Source)
		}
		all = append(all, e)
	}
	return all, nil
}

func readFile(dir fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(dir, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}
