// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"io"

	"sandpit.dev/fault"
)

// Bounded returns w as what takes an export of a disk that holds so many bytes; zero: of any. Files that
// share what they hold (cp --reflink) are written each by itself: where that comes to much more than the
// disk holds it is fault.TooLarge, so that one sandbox does not fill what exports are written to.
func Bounded(w io.Writer, holds int64) io.Writer {
	if holds <= 0 {
		return w
	}
	most := 2*holds + 1<<30
	return &boundedWriter{w, most, most}
}

type boundedWriter struct {
	w          io.Writer
	left, most int64
}

func (b *boundedWriter) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, fault.New(fault.TooLarge, "its files come to more than %d MB, twice what the disk may hold: many of them share what they hold", b.most>>20)
	}
	return b.w.Write(p)
}
