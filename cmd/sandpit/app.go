// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/term"
)

// app is what commands get of the process that they run in.
type app struct {
	stdin          *os.File
	stdout, stderr io.Writer
	getenv         func(string) string
	version        string
	raw            atomic.Bool // the terminal hands every key on
}

// terminal gives the file behind w if a person looks at it.
func terminal(w any) (*os.File, bool) {
	f, ok := w.(*os.File)
	if !ok || f == nil || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}
