// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package progress

import "io"

// Reader tells how far reading is.
type Reader struct {
	R    io.Reader
	See  func(done int64)
	Done int64
}

func (w *Reader) Read(p []byte) (int, error) {
	n, err := w.R.Read(p)
	w.Done += int64(n)
	w.See(w.Done)
	return n, err
}
