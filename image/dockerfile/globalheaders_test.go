// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerfile

import (
	"archive/tar"
	"bytes"
	"os"
	"testing"

	"sandpit.dev/fault"
)

// Headers for all that follows are no files, and take their time all the same.
func TestGlobalHeadersAreCounted(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for range 5 {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"comment": "x"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadContext(t.Context(), &b, f, Limits{Files: 3}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("%v", err)
	}
}
