// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "io"

// DataWriter sends what is written to it as Data frames.
type DataWriter struct {
	w   io.Writer
	buf []byte // a header and the bytes that wait
	n   int
}

// NewDataWriter returns a DataWriter that sends to w. Flush it at the end.
func NewDataWriter(w io.Writer) *DataWriter {
	return &DataWriter{w: w, buf: make([]byte, HeaderLen+MaxData)}
}

func (d *DataWriter) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		n := copy(d.buf[HeaderLen+d.n:], p)
		d.n += n
		p = p[n:]
		if HeaderLen+d.n == len(d.buf) {
			if err := d.Flush(); err != nil {
				return all - len(p), err
			}
		}
	}
	return all, nil
}

// Flush sends what waits.
func (d *DataWriter) Flush() error {
	if d.n == 0 {
		return nil
	}
	PutHeader(d.buf, Data, d.n)
	_, err := d.w.Write(d.buf[:HeaderLen+d.n])
	d.n = 0
	return err
}
