// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"testing"
)

func TestDetachKeysAreFoundHoweverTheyAreRead(t *testing.T) {
	for _, c := range []struct {
		reads []string
		given string
		left  bool
	}{
		{[]string{"abc"}, "abc", false},
		{[]string{"abc\x10\x11def"}, "abc", true},
		{[]string{"abc\x10", "\x11def"}, "abc", true},
		{[]string{"\x10", "\x11"}, "", true},
		{[]string{"\x10", "x"}, "\x10x", false},
		{[]string{"\x10\x10\x11"}, "\x10", true},
		{[]string{"\x10", "\x10", "\x11"}, "\x10", true},
		{[]string{"\x11\x10"}, "\x11", false},
		{[]string{"", "\x10", ""}, "", false},
	} {
		var d Detacher
		var given strings.Builder
		left := false
		for _, r := range c.reads {
			data, over := d.Filter([]byte(r))
			given.Write(data)
			if left = over; left {
				break
			}
		}
		if given.String() != c.given || left != c.left {
			t.Errorf("%q: got %q and %v, want %q and %v", c.reads, given.String(), left, c.given, c.left)
		}
	}
}

func TestDetachKeysAreChosen(t *testing.T) {
	for text, want := range map[string]string{"": "", "ctrl-p,ctrl-q": detachKeys, "ctrl-a,d": "\x01d", "Ctrl-]": "\x1d", "x": "x"} {
		if got, err := ParseDetachKeys(text); err != nil || got == nil || string(got) != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"ctrl-", "ctrl-pp", "pp", "ctrl-p,", "ctrl-ä", "\x7f"} {
		if got, err := ParseDetachKeys(text); err == nil {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
	none := Detacher{Keys: []byte{}}
	if data, left := none.Filter([]byte(detachKeys)); left || string(data) != detachKeys {
		t.Errorf("without keys: %q, %v", data, left)
	}
	long := Detacher{Keys: []byte("aab")}
	if data, left := long.Filter([]byte("xaaab")); !left || string(data) != "xa" {
		t.Errorf("overlapping keys: %q, %v", data, left)
	}
}
