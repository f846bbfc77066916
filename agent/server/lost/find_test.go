// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package lost_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"sandpit.dev/agent/server/lost"
	"sandpit.dev/agent/wire"
)

// tree makes files by their paths, and gives all of it times that are long ago; changes of inodes are not: these are what is told by them.
func tree(t *testing.T, paths ...string) string {
	t.Helper()
	top := t.TempDir()
	for _, path := range paths {
		path = filepath.Join(top, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return top
}

// later is a time after that of every file until now, and before that of those which come.
func later(t *testing.T) time.Time {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "f")
	since := time.Now()
	for {
		if err := os.WriteFile(probe, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(probe); err != nil || st.ModTime().After(since) {
			return since
		}
	}
}

func TestWhatWasChangedIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		change func(top string) error
		want   wire.Lost
	}{
		"Nothing": {func(string) error { return nil }, wire.Lost{}},
		"AFileThatIsMade": {func(top string) error { return os.WriteFile(top+"/usr/bin/tool", nil, 0o755) },
			wire.Lost{Entries: 1, Some: []string{"/usr/bin/tool"}}},
		"AFileThatIsRemoved": {func(top string) error { return os.Remove(top + "/usr/bin/old") },
			wire.Lost{Entries: 1, Some: []string{"/usr/bin/"}}},
		"AFileThatIsEdited": {func(top string) error { return os.WriteFile(top+"/etc/conf.d/file", []byte("x"), 0o600) },
			wire.Lost{Entries: 1, Some: []string{"/etc/conf.d/file"}}},
		"ALink": {func(top string) error { return os.Symlink("/etc", top+"/usr/link") },
			wire.Lost{Entries: 1, Some: []string{"/usr/link"}}},
		"WhatIsTemporary": {func(top string) error { return os.WriteFile(top+"/tmp/file", nil, 0o600) }, wire.Lost{}},
		"Many": {func(top string) error {
			for n := range 20 {
				if err := os.WriteFile(fmt.Sprintf("%s/usr/new%02d", top, n), nil, 0o600); err != nil {
					return err
				}
			}
			return nil
		}, wire.Lost{Entries: 20, Some: []string{"/usr/new00", "/usr/new01", "/usr/new02"}}},
	} {
		t.Run(name, func(t *testing.T) {
			top := tree(t, "usr/bin/old", "usr/bin/other", "etc/conf.d/file", "tmp/old", "usr/lib/deep/er/file")
			since := later(t)
			if err := test.change(top); err != nil {
				t.Fatal(err)
			}
			if got := lost.FindBelow(top, since, 1000); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// Trees may be anything: it looks no deeper than it can, and at no more than it may.
func TestWhatIsNotLookedAtIsTold(t *testing.T) {
	top := tree(t, "usr/bin/old")
	deep := top
	for range 100 {
		deep += "/d"
	}
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := lost.FindBelow(top, time.Now(), 1000); !got.More {
		t.Errorf("of a deep tree: %+v", got)
	}
	if err := os.RemoveAll(top + "/d"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(top, top+"/usr/round"); err != nil {
		t.Fatal(err)
	}
	if got := lost.FindBelow(top, later(t), 1000); got.More || got.Entries != 0 {
		t.Errorf("of a link round: %+v", got)
	}
	for n := range 300 {
		if err := os.MkdirAll(fmt.Sprintf("%s/usr/%05d/d", top, n), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(top+"/etc", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := lost.FindBelow(top, time.Unix(0, 0), 1000); !got.More || got.Entries < 50 || got.Entries > 250 {
		t.Errorf("of many directories: %+v", got)
	}
}
