// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/progress"
	"sandpit.dev/fault"
)

// Receive writes what comes to a file, whole or not at all, or with "-" to standard output.
func Receive(ctx context.Context, a *app.App, r io.Reader, what, file string) (err error) {
	bar := progress.New(a.Stderr)
	defer bar.Clear()
	from := &progress.Reader{R: r, See: func(n int64) { bar.Count(what, n) }}
	if file == "-" {
		_, err := io.Copy(a.Stdout, from)
		return err
	}
	// Its name is taken at the end: one that broke off is nobody's archive.
	w, err := os.CreateTemp(filepath.Dir(file), ".sandpit-*")
	if err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot be written", file)
	}
	defer func() {
		if err != nil {
			_ = w.Close()
			_ = os.Remove(w.Name())
		}
	}()
	if _, err := io.Copy(w, from); err != nil {
		if fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
			return err
		}
		return fault.Wrap(fault.Exhausted, err, "%s cannot be written", file)
	}
	if err := w.Sync(); err != nil {
		return fault.Wrap(fault.Exhausted, err, "%s cannot be written", file)
	}
	if err := w.Close(); err != nil {
		return fault.Wrap(fault.Exhausted, err, "%s cannot be written", file)
	}
	if err := os.Rename(w.Name(), file); err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot be put in place", file)
	}
	bar.Clear()
	fmt.Fprintf(a.Stderr, "%s: %s\n", output.Printable(file), output.Bytes(from.Done))
	return nil
}

// Open opens a file to import, or standard input for "-", whose size is 0: unknown. Reading it
// moves the bar; done closes it.
func Open(a *app.App, file string, bar *progress.Bar) (from io.Reader, size int64, done func(), err error) {
	if file == "-" {
		return &progress.Reader{R: a.Stdin, See: func(n int64) { bar.Count("import", n) }}, 0, func() {}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, nil, fault.Wrap(fault.NotFound, err, "%s cannot be read", file)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, 0, nil, fault.New(fault.Invalid, "%s is not a file (%s)", file, info.Mode().Type())
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, nil, fault.Wrap(fault.NotFound, err, "%s cannot be read", file)
	}
	size = info.Size()
	return &progress.Reader{R: f, See: func(n int64) { bar.Bytes("import "+filepath.Base(file), n, size) }}, size, func() { _ = f.Close() }, nil
}
