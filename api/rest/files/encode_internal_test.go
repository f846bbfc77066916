// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/json"
	"io/fs"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

func TestEntriesAreWrittenAsByPackageJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 2, 3, 4, 120_000_000, time.FixedZone("", 3600))
	for _, name := range []string{"plain", "with space", `a"b`, `a\b`, "tab\t", "ünï", "\x7f", "<&>", "\u2028", ""} {
		for _, f := range []sandbox.FileInfo{
			{Name: name, Path: "/workspace/" + name, Type: sandbox.RegularFile, Size: 1 << 40, Mode: 0o640 | fs.ModeSetuid, ModTime: at, UID: 1000, GID: 7, Owner: name, Group: "g"},
			{Name: name, Path: "/" + name, Type: sandbox.Symlink, ModTime: at.UTC(), Target: name, TargetType: sandbox.Directory},
			{Name: name, Type: sandbox.Directory, Attributes: map[string]string{name + "k": name}},
		} {
			want, err := json.Marshal(fileOf(f))
			if err != nil {
				t.Fatal(err)
			}
			same(t, want, appendInfo(nil, &f))
			want, err = json.Marshal(v1.FileEntry{Name: f.Name, Type: string(f.Type), Size: f.Size})
			if err != nil {
				t.Fatal(err)
			}
			same(t, want, appendEntry([]byte{}, f.Name, string(f.Type), f.Size))
		}
	}
}

// same compares two texts by what they say: the encoder may write a character by its number.
func same(t *testing.T, want, got []byte) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(want, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &b); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
