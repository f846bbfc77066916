// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package told

import (
	"bytes"
	"strings"
	"testing"
)

func TestAResultIsReadAsItWasWritten(t *testing.T) {
	want := Result{Check: "cli", Seconds: 1.5, Detail: "line one\nline \"two\"\r\n\x1b[0m"}
	line := bytes.TrimSpace(want.Line())
	if bytes.ContainsAny(line, "\r\n\x1b") {
		t.Errorf("got %q, want one line of plain text", line)
	}
	got, ok := Read(append([]byte("[   12.3] a word of the kernel's "), append(line, '\r')...))
	if !ok || got != want {
		t.Errorf("got %+v, %v, want %+v", got, ok, want)
	}
}

func TestALongDetailKeepsItsEnd(t *testing.T) {
	got, ok := Read(Result{Detail: strings.Repeat("x", 3*maxDetail) + "the end"}.Line())
	if !ok || len(got.Detail) > maxDetail+8 || !strings.HasSuffix(got.Detail, "the end") {
		t.Errorf("got %d bytes, %v", len(got.Detail), ok)
	}
}

func TestWhatIsNoResultIsNone(t *testing.T) {
	for _, line := range []string{"", "Debian GNU/Linux", "@@kernels ", "@@kernels {\"check\":", "@@kernels []"} {
		if r, ok := Read([]byte(line)); ok {
			t.Errorf("%q: got %+v", line, r)
		}
	}
}
