// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"io"
	"slices"
	"strings"
	"sync"
)

const (
	tailLines    = 40
	tailLineSize = 400
)

// tail keeps the last lines of a program's output, and calls each with each line when it is
// complete. It is an [io.Writer] for any number of goroutines.
type tail struct {
	each func(line string) // may be nil
	copy io.Writer         // gets all of the output, and never fails; may be nil

	mu   sync.Mutex
	part []byte
	kept []string
}

// Write never fails and never keeps more than the bounds.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.copy != nil {
		_, _ = t.copy.Write(p)
	}
	for _, c := range p {
		if c == '\n' || c == '\r' {
			t.endLocked()
			continue
		}
		if len(t.part) < tailLineSize {
			t.part = append(t.part, c)
		}
	}
	return len(p), nil
}

func (t *tail) endLocked() {
	line := strings.Map(printable, strings.ToValidUTF8(string(t.part), "?"))
	t.part = t.part[:0]
	if strings.TrimSpace(line) == "" {
		return
	}
	if len(t.kept) == tailLines {
		t.kept = slices.Delete(t.kept, 0, 1)
	}
	t.kept = append(t.kept, line)
	if t.each != nil {
		t.each(line)
	}
}

// printable drops what could move a terminal's cursor: the lines are shown there.
func printable(r rune) rune {
	if r == '\t' {
		return ' '
	}
	if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
		return -1
	}
	return r
}

// lines returns the kept lines, the unfinished one included.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.part) > 0 {
		t.endLocked()
	}
	return slices.Clone(t.kept)
}
