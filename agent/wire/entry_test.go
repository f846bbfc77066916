// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/agent/wire"
)

func entries(p []byte) (all []wire.FileInfo, err error) {
	var e wire.Entries
	e.Reset(p)
	var fi wire.FileInfo
	for e.Next(&fi) {
		all = append(all, fi)
	}
	return all, e.Err()
}

func TestEntriesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 1, 2, 3, 4, time.UTC)
	want := []wire.FileInfo{
		{Name: "a", Path: "d/a", Type: wire.File, Size: math.MaxInt64, Mode: 0o7777, Mod: at, UID: math.MaxUint32, GID: 1, Owner: "sandbox", Group: "g"},
		{Name: "l", Type: wire.Symlink, Mod: time.Unix(-5, 0).UTC(), Target: "a", TargetType: wire.File, Owner: "sandbox", Group: "g"},
		{Name: strings.Repeat("n", 255), Type: wire.Dir, Mod: at},
		{Type: wire.Other, Mod: at, TargetType: wire.Dir},
	}
	var b []byte
	for i := range want {
		before := len(b)
		if b = wire.AppendEntry(b, &want[i]); len(b)-before > wire.MaxEntry {
			t.Errorf("an entry has %d bytes", len(b)-before)
		}
	}
	got, err := entries(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := entries(nil); err != nil || got != nil {
		t.Errorf("of nothing: %v %v", got, err)
	}
	whole := wire.AppendEntry(nil, &want[0])
	for n := 1; n < len(whole); n++ { // one that breaks off is none, wherever it does
		if got, err := entries(whole[:n]); err == nil || len(got) != 0 {
			t.Errorf("of %d bytes of %d it makes %v", n, len(whole), got)
		}
	}
}

// Whatever an agent sends, it is entries or an error, and takes no more memory than it has bytes.
func FuzzEntries(f *testing.F) {
	f.Add(wire.AppendEntry(nil, &wire.FileInfo{Name: "a", Type: wire.File, Mod: time.Unix(1, 2)}))
	f.Add([]byte("f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte{'d', 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, p []byte) {
		got, _ := entries(p) // an error is an answer, too
		size := 0
		for _, fi := range got {
			size += len(fi.Name) + len(fi.Path) + len(fi.Target)
			if fi.Type == "" || fi.Size < 0 {
				t.Errorf("an entry is %+v", fi)
			}
		}
		if size > len(p) {
			t.Errorf("of %d bytes it makes names of %d", len(p), size)
		}
	})
}
