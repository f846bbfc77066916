// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"sandpit.dev/fault"
)

// maker makes what an archive holds, below one directory. It is for one goroutine at a time.
type maker struct {
	to    string
	in    []openDir // the directories that the archive is in, beginning with the top
	left  []leftOut
	named bool // files cannot be without a name here
	buf   []byte
}

// leftOut is what is not made, and why.
type leftOut struct{ name, why string }

// openDir is a directory of the copy. One that was made gets its mode and time when all in it is there.
type openDir struct {
	rel  string // below the top, which is ""
	root *os.Root
	file *os.File // the same; nil: not asked for yet
	made bool
	mode fs.FileMode
	time time.Time
}

// begin makes the first entry, which is the copy's top.
func (m *maker) begin(e *entry, content *counted) error {
	if e.rel != "" || e.kind != tar.TypeDir && e.kind != tar.TypeReg {
		return fault.New(fault.Unavailable, "the archive begins with %q, which is no file or directory that was asked for", e.name)
	}
	if e.kind == tar.TypeDir {
		return m.beginTree(e)
	}
	root, err := os.OpenRoot(filepath.Dir(m.to))
	if err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot be written", m.to)
	}
	in := openDir{root: root}
	defer in.close()
	err = m.file(&in, filepath.Base(m.to), e, content)
	if _, told := errors.AsType[*fault.Error](err); err == nil || told {
		return err
	}
	return fault.Wrap(fault.Denied, err, "%s cannot be written", m.to)
}

func (m *maker) beginTree(e *entry) error {
	top := openDir{mode: e.mode, time: e.time}
	err := os.Mkdir(m.to, 0o700)
	if top.made = err == nil; errors.Is(err, fs.ErrExist) {
		info, serr := os.Stat(m.to) // a link that the user named may lead to it
		if serr == nil && !info.IsDir() {
			return fault.New(fault.Exists, "%s is a file, and %s a directory", m.to, e.name)
		}
		err = serr
	}
	if err == nil {
		top.root, err = os.OpenRoot(m.to)
	}
	if err != nil {
		return fault.Wrap(fault.Denied, err, "the directory %s cannot be made or written to", m.to)
	}
	m.in = append(m.in, top)
	return nil
}

// makeAll makes entries in their order. After an error the rest is not made.
func (m *maker) makeAll(all []entry) error {
	for i := range all {
		if err := m.note(&all[i], m.make(&all[i], nil)); err != nil {
			return err
		}
	}
	return nil
}

// note notes an entry that cannot be made, and returns errors that end all.
func (m *maker) note(e *entry, err error) error {
	if err == nil {
		return nil
	}
	if _, told := errors.AsType[*fault.Error](err); told || endsAll(err) {
		return err
	}
	m.left = append(m.left, leftOut{e.name, reason(err)})
	return nil
}

// make makes an entry in the directory that the archive is in. The content of a large file is read.
func (m *maker) make(e *entry, content *counted) error {
	if e.rel == "" {
		if e.kind != tar.TypeDir || len(m.in) == 0 {
			return errors.New("there is one such already")
		}
		return nil
	}
	m.leave(e.rel)
	if len(m.in) == 0 || m.in[len(m.in)-1].rel != parentOf(e.rel) {
		return errors.New("its directory is not in the archive")
	}
	last, name := &m.in[len(m.in)-1], path.Base(e.rel)
	in := last.root
	switch e.kind {
	case tar.TypeDir:
		return m.dir(in, name, e)
	case tar.TypeReg:
		return m.file(last, name, e, content)
	case tar.TypeSymlink:
		if !staysBelow(len(m.in)-1, e.target) {
			return errors.New("a link to " + e.target)
		}
		return place(in, name, func(as string) error { return in.Symlink(e.target, as) })
	case tar.TypeLink:
		return m.link(in, name, e)
	}
	return errors.New("neither a file nor a directory")
}

func parentOf(rel string) string {
	if dir := path.Dir(rel); dir != "." {
		return dir
	}
	return ""
}

// dir makes a directory, or goes into one that is there. A link to a directory counts as none.
func (m *maker) dir(in *os.Root, name string, e *entry) error {
	if len(m.in) >= maxDepth {
		return errors.New("it is too deep in the tree")
	}
	d := openDir{rel: e.rel, mode: e.mode, time: e.time}
	err := in.Mkdir(name, 0o700)
	if d.made = err == nil; errors.Is(err, fs.ErrExist) {
		var info fs.FileInfo
		if info, err = in.Lstat(name); err == nil && !info.IsDir() {
			return fault.New(fault.Exists, "%s is there already, and is no directory", filepath.Join(m.to, e.rel))
		}
	}
	if err == nil {
		d.root, err = in.OpenRoot(name)
	}
	if err != nil {
		return err
	}
	m.in = append(m.in, d)
	return nil
}

// leave finishes the directories that a path is not in.
func (m *maker) leave(rel string) {
	for len(m.in) > 1 {
		d := m.in[len(m.in)-1]
		if len(rel) > len(d.rel) && rel[:len(d.rel)] == d.rel && rel[len(d.rel)] == '/' {
			return
		}
		m.finish()
	}
}

func (m *maker) leaveAll() {
	for len(m.in) > 0 {
		m.finish()
	}
}

// finish sets the mode and time of the last directory, and closes it.
func (m *maker) finish() {
	d := m.in[len(m.in)-1]
	m.in = m.in[:len(m.in)-1]
	defer d.close()
	if !d.made {
		return
	}
	err := d.root.Chmod(".", d.mode|0o700) // its owner may always go on to write to it, and remove it
	if err == nil {
		err = d.root.Chtimes(".", time.Time{}, d.time)
	}
	if err != nil {
		m.left = append(m.left, leftOut{filepath.Join(m.to, d.rel), "its mode and time: " + reason(err)})
	}
}

// link adds a name to a file of the copy.
func (m *maker) link(in *os.Root, name string, e *entry) error {
	of, why := below(e.target)
	top := m.in[0].root
	if why == "" {
		if info, err := top.Lstat(of); err != nil || !info.Mode().IsRegular() {
			why = "no file"
		}
	}
	if why != "" {
		return errors.New("another name of " + e.target + ": " + why)
	}
	return place(in, name, func(as string) error { return top.Link(of, path.Join(path.Dir(e.rel), as)) })
}

// file writes one file, and puts it in the place of what has its name.
func (m *maker) file(in *openDir, name string, e *entry, content *counted) error {
	if content == nil && !m.named {
		if err := m.small(in, name, e); err != errNamed {
			return err
		}
	}
	w, err := m.create(in)
	if err != nil {
		return err
	}
	defer w.discard()
	switch {
	case content == nil && len(e.data) > 0:
		_, err = w.Write(e.data)
	case content != nil:
		if m.buf == nil {
			m.buf = make([]byte, copyBuffer)
		}
		_, err = io.CopyBuffer(struct{ io.Writer }{w}, content, m.buf)
		if content.err != nil {
			return cut(e, content.done, content.err)
		}
	}
	if err == nil {
		err = w.Chmod(e.mode)
	}
	if err != nil {
		return fault.Wrap(fault.Exhausted, err, "%s cannot be written", e.name)
	}
	if err := w.setTime(e.time); err != nil {
		m.left = append(m.left, leftOut{e.name, "its time: " + reason(err)})
	}
	return w.keep(name)
}
