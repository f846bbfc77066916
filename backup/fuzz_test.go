// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"bytes"
	"io"
	"testing"

	"sandpit.dev/backup"
)

// FuzzVerify holds that a file that is found whole has in it what it says.
func FuzzVerify(f *testing.F) {
	var b bytes.Buffer
	w, err := backup.NewWriter(&b, backup.Head{})
	if err == nil {
		err = w.Part("records", func(w io.Writer) error { _, err := w.Write([]byte("all that is kept")); return err }, nil)
	}
	if err == nil {
		err = w.Close(nil)
	}
	if err != nil {
		f.Fatal(err)
	}
	whole := b.Bytes()
	f.Add(whole)
	f.Add(whole[:len(whole)-1024])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := backup.Verify(bytes.NewReader(data))
		if err != nil {
			return
		}
		if m == nil {
			t.Fatal("there is neither a manifest nor an error")
		}
		size := int64(0)
		for _, p := range m.Parts {
			size += p.Size
		}
		if size > int64(len(data)) {
			t.Errorf("%d bytes hold parts of %d", len(data), size)
		}
	})
}
