// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"time"
)

// newFile is a file that is being written, and gets its name when it is whole. Where the system can, it has
// none before, so that nothing is left of it where this process is killed.
type newFile struct {
	*os.File
	in  *openDir
	tmp string // its name meanwhile; "": it has none
}

// errNamed is the error where files have to have a name from the first.
var errNamed = errors.New("files without a name are not possible here")

// create begins a file in a directory.
func (m *maker) create(in *openDir) (*newFile, error) {
	if !m.named {
		if f, err := unnamed(in.root); err == nil {
			return &newFile{File: f, in: in}, nil
		}
		m.named = true // or there is another reason, which the next error is of
	}
	tmp := temporary()
	f, err := in.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &newFile{f, in, tmp}, nil
}

// setTime sets when the file was changed last.
func (w *newFile) setTime(at time.Time) error {
	if w.tmp == "" {
		return os.Chtimes(pathOf(w.File), time.Time{}, at)
	}
	return w.in.root.Chtimes(w.tmp, time.Time{}, at)
}

// keep gives the file its name. What has that is replaced, and not followed.
func (w *newFile) keep(name string) error {
	if w.tmp == "" {
		dir, err := w.in.handle()
		if err != nil {
			return err
		}
		err = place(w.in.root, name, func(as string) error { return nameIn(dir, as, w.File) })
		if err != nil {
			return err
		}
		return w.Close()
	}
	err := w.Close()
	if err == nil {
		err = w.in.root.Rename(w.tmp, name)
	}
	if err == nil {
		w.tmp = ""
	}
	return err
}

// discard removes a file that was not kept.
func (w *newFile) discard() {
	_ = w.Close() // it may be closed
	if w.tmp != "" {
		_ = w.in.root.Remove(w.tmp)
	}
}

// handle returns the directory for calls that need its descriptor.
func (d *openDir) handle() (*os.File, error) {
	var err error
	if d.file == nil {
		d.file, err = d.root.Open(".")
	}
	return d.file, err
}

func (d *openDir) close() {
	if d.file != nil {
		_ = d.file.Close()
	}
	_ = d.root.Close()
}

// temporary is a name that nobody can have foreseen.
func temporary() string { return ".sandpit-" + rand.Text() }

// place makes something in the place of what has its name, which is not followed.
func place(in *os.Root, name string, do func(as string) error) error {
	err := do(name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	tmp := temporary()
	if err := do(tmp); err != nil {
		return err
	}
	err = in.Rename(tmp, name)
	_ = in.Remove(tmp) // a rename leaves two names of one file
	return err
}
