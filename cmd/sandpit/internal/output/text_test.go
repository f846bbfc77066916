// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"testing"
	"time"
)

func TestTextSteersNoTerminal(t *testing.T) {
	const hostile = "a\x1b[2J\r\n\tb\u009b\u202e\x7f√"
	if got, want := Printable(hostile), `a\u001b[2J\u000d  b\u009b\u202e\u007f√`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var b bytes.Buffer
	if err := Table(&b, []string{"NAME", "ID"}, [][]string{{"\x1b[31mred", "1"}, {"", "22"}}); err != nil {
		t.Fatal(err)
	}
	if want := "NAME            ID\n\\u001b[31mred   1\n-               22\n"; b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTimesAreRelative(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "now", 30 * time.Second: "30 seconds ago", 90 * time.Second: "90 seconds ago", 3 * time.Minute: "3 minutes ago",
		time.Hour: "1 hour ago", 26 * time.Hour: "1 day ago", -2 * time.Hour: "in 2 hours",
	} {
		at := now.Add(-d)
		if got := Ago(now, &at); got != want {
			t.Errorf("%v ago is %q, want %q", d, got, want)
		}
	}
	if got := Ago(now, nil); got != "" {
		t.Errorf("never is %q, want nothing", got)
	}
}
