// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"io"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// FuzzOpen holds that no archive of another's is more than it may be, and that what is wrong with one is its sender's fault.
func FuzzOpen(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, Meta{Image: "python", ImageDigest: "sha256:x", Limits: sandbox.DefaultLimits()}, func(w io.Writer) error {
		_, err := w.Write(bytes.Repeat([]byte("layer"), 4000))
		return err
	}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()/2])
	f.Add([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 16 << 10
		m, r, err := Open(bytes.NewReader(data), most)
		if err != nil {
			if fault.Of(err) != fault.Invalid && fault.Of(err) != fault.TooLarge {
				t.Fatalf("it is not its sender's fault that %v", err)
			}
			return
		}
		if err := m.check(); err != nil {
			t.Fatalf("it opened with %+v, which is %v", m, err)
		}
		n, err := io.Copy(io.Discard, r)
		if n > most {
			t.Fatalf("%d bytes were read, of %d", n, most)
		}
		if err == nil && r.End(nil) != nil && fault.Of(r.End(nil)) != fault.Invalid {
			t.Fatalf("at its end: %v", r.End(nil))
		}
	})
}
