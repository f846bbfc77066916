// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package terminal reads the user's terminal: whether there is one, its size, the keys that leave it, and what
// is typed without an echo.
package terminal

import (
	"os"

	"golang.org/x/term"
)

// Size is a terminal's, within what the server takes.
func Size(f *os.File) (cols, rows int) {
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || cols == 0 || rows == 0 {
		return 80, 24
	}
	return min(cols, 1000), min(rows, 1000)
}

// Of returns the file behind w, and reports whether it is a terminal.
func Of(w any) (*os.File, bool) {
	f, ok := w.(*os.File)
	if !ok || f == nil || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}
