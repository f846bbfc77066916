// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/boot/plain"
)

func TestPlacesForVolumes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving directories to another user takes root")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(path string) string { return filepath.Join(dir, path) }
	for _, d := range []string{"disk", "home", "new/lost+found", "old/d", "closed", "outside", "image/etc", "root" + dir + "/image/gone"} {
		if err := os.MkdirAll(in(d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(in("outside"), in("disk/link")), os.Symlink(in("outside"), in("old/link")), os.Symlink("etc", in("image/link")), os.Symlink("/", in("root"+dir+"/image/moved")), unix.Mknod(in("root"+dir+"/image/removed"), unix.S_IFCHR, 0),
		os.WriteFile(in("disk/file"), nil, 0o600), os.WriteFile(in("old/d/file"), nil, 0o600), os.Chown(in("closed"), 77, 77), os.Chown(in("old/d"), 88, 88)); err != nil {
		t.Fatal(err)
	}
	try := func(all ...plain.Place) error {
		t.Helper()
		b, err := json.Marshal(plain.Places{UID: 1000, GID: 1000, Home: in("home/sandbox"), Disk: []string{in("disk"), in("home")}, Root: in("root"), All: all})
		if err != nil {
			t.Fatal(err)
		}
		return plain.MakePlaces(string(b))
	}
	if err := try(
		plain.Place{Path: in("disk/a/b"), Whole: in("new")}, plain.Place{Path: in("image/removed/x"), Whole: in("new")}, plain.Place{Path: in("image/missing/x"), Whole: in("closed"), Sub: "p/q"},
		plain.Place{Path: in("home/sandbox/x"), Whole: in("old"), Sub: "d/e"},
	); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"disk": 0, "disk/a": 0, "disk/a/b": 0, "home": 0, "home/sandbox": 1000, "home/sandbox/x": 1000, "new": 1000, "old": 0,
		"old/d/e": 88, "closed": 77, "closed/p": 77, "closed/p/q": 77, "image/missing": -1,
	} {
		st, err := os.Lstat(in(path))
		if want < 0 {
			if !os.IsNotExist(err) {
				t.Errorf("%s was made", path)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if got := int(st.Sys().(*syscall.Stat_t).Uid); got != want {
			t.Errorf("%s is user %d's, want %d", path, got, want)
		}
	}
	for what, p := range map[string]plain.Place{
		"a link on the disk":        {Path: in("disk/link"), Whole: in("new")},
		"below a link on the disk":  {Path: in("disk/link/x"), Whole: in("new")},
		"a file on the disk":        {Path: in("disk/file"), Whole: in("new")},
		"below a file":              {Path: in("disk/file/x"), Whole: in("new")},
		"a link in the image":       {Path: in("image/link/x"), Whole: in("new")},
		"a link in the overlay":     {Path: in("image/moved/x"), Whole: in("new")},
		"a link on a volume":        {Path: in("disk/v"), Whole: in("old"), Sub: "link/x"},
		"a file on a volume":        {Path: in("disk/v"), Whole: in("old"), Sub: "d/file"},
		"a volume that is no place": {Path: in("disk/v"), Whole: in("disk/link")},
	} {
		if err := try(p); !errors.Is(err, plain.ErrBlocked) && what != "a volume that is no place" || err == nil || !strings.Contains(err.Error(), p.Path) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if list, err := os.ReadDir(in("outside")); err != nil || len(list) != 0 {
		t.Errorf("outside are %v, %v", list, err)
	}
}
