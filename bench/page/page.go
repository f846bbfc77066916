// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package page turns a measured run into what people read: a page, its plots, and the
// run itself as JSON, from which all of it can be made again.
//
// The bytes depend on the report alone, so that a page that is kept can be held against
// its report, and cannot be edited into a claim. What was not measured, what failed and
// what misses its mark is on the page before what is good.
package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"sandpit.dev/bench"
	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
)

// Names below the directory that a report is written to.
const (
	Page  = "benchmarks.md"
	Data  = "benchmarks/report.json"
	plots = "benchmarks"
)

// mostJSON bounds a report that is read: real ones have some tens of kilobytes.
const mostJSON = 16 << 20

// File is one that belongs to a report. Its name is relative, with slashes.
type File struct {
	Name string
	Data []byte
}

// Render returns the files of a report: the page, the report, and the plots that there is
// something to draw for.
func Render(r *bench.Report) ([]File, error) {
	var data bytes.Buffer
	if err := r.WriteJSON(&data); err != nil {
		return nil, err
	}
	drawn := draw(r)
	files := []File{{Page, text(r, drawn)}, {Data, data.Bytes()}}
	for _, f := range drawn {
		files = append(files, File{plots + "/" + f.name + ".svg", f.svg()})
	}
	return files, nil
}

// Prepare makes what Write needs, so that a run that takes an hour does not end with a
// directory that cannot be written to.
func Prepare(dir string) error {
	path := filepath.Join(dir, plots)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return unwritable(dir, err)
	}
	probe, err := os.CreateTemp(path, ".sandpit-bench-*")
	if err != nil {
		return unwritable(dir, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func unwritable(dir string, err error) error {
	return fault.New(fault.Invalid, "the report cannot be written to %s: %v", dir, err).WithRemedy("name a directory that may be written to by --report")
}

// Write writes the files of a report below a directory, each whole or not at all. Plots of an
// earlier report that this one has not are removed; other files are left alone.
func Write(dir string, r *bench.Report) error {
	files, err := Render(r)
	if err != nil {
		return err
	}
	if err := Prepare(dir); err != nil {
		return err
	}
	for _, name := range plotNames {
		if err := os.Remove(filepath.Join(dir, plots, name+".svg")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unwritable(dir, err)
		}
	}
	for _, f := range files {
		if err := atomicfile.Write(filepath.Join(dir, filepath.FromSlash(f.Name)), f.Data, 0o644); err != nil {
			return unwritable(dir, err)
		}
	}
	return nil
}

// Read reads a report that was written as JSON. A field that is not known is an error: it
// was measured by another version, and a page without it would leave something out.
func Read(path string) (*bench.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, mostJSON+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if len(b) > mostJSON {
		return nil, unreadable(path, fmt.Errorf("it has more than %d bytes", mostJSON))
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	r := new(bench.Report)
	if err := d.Decode(r); err != nil {
		return nil, unreadable(path, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, unreadable(path, errors.New("something follows the report"))
	}
	return r, nil
}

func unreadable(path string, err error) error {
	return fault.New(fault.Invalid, "%s is no report of this version: %v", path, err).WithRemedy("give a report.json that `sandpit bench --report DIR` of this version wrote")
}
