// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandpit.dev/internal/skiptest"
)

func TestTheUserOfAnImageRunsItsCommands(t *testing.T) {
	skiptest.WithoutRoot(t, "only root gives files to others")
	base := tarOf(t, file{name: "etc/"},
		file{name: "etc/passwd", body: "root:x:0:0::/root:/bin/sh\nfirst:x:1000:1000::/:/bin/sh\napp:x:4242:4243:App:/srv:/bin/sh\n"},
		file{name: "etc/group", body: "root:x:0:\nfirst:x:1000:\nteam:x:4243:app\n"},
		file{name: "srv/", uid: 4242}, file{name: "srv/own", body: "hers", uid: 4242, mode: 0o4750}, file{name: "srv/link", kind: '2', to: "/etc/shadow", uid: 4242},
		file{name: "srv/again", kind: '1', to: "srv/own"}, file{name: "srv/pipe", kind: '6', uid: 4242}, file{name: "other", body: "x", uid: 4244})
	s := opened(t)
	build := func(name, user string) Image {
		return imported(t, s, savedOf(t, name, configOf(t, object{"config": object{"User": user}}, base), base), "")
	}
	stat := func(img Image, name string) *syscall.Stat_t {
		var st syscall.Stat_t
		if err := syscall.Lstat(filepath.Join(img.Root, name), &st); err != nil {
			t.Fatal(err)
		}
		return &st
	}
	none := build("none:1", "")
	for name, user := range map[string]string{"a:1": "app", "a:2": "app:team", "a:3": "4242", "a:4": "4242:0"} {
		img := build(name, user)
		if got := read(t, img, "etc/passwd"); !strings.HasPrefix(got, "app:x:1000:1000:App:/srv:/bin/sh\nroot:x:0:0") || strings.Contains(got, "4242") {
			t.Errorf("%s: the accounts are %q", user, got)
		}
		if got := read(t, img, "etc/group"); !strings.HasPrefix(got, "team:x:1000:app\n") || strings.Contains(got, "4243") {
			t.Errorf("%s: the groups are %q", user, got)
		}
		for _, of := range []string{"srv", "srv/own", "srv/link", "srv/again"} {
			if st := stat(img, of); st.Uid != userID {
				t.Errorf("%s: %s belongs to %d", user, of, st.Uid)
			}
		}
		if st := stat(img, "srv/own"); st.Mode&0o7777 != 0o750 || read(t, img, "srv/own") != "hers" {
			t.Errorf("%s: srv/own has the mode %o", user, st.Mode)
		}
		if st := stat(img, "other"); st.Uid != 4244 || st.Ino != stat(none, "other").Ino {
			t.Errorf("%s: another account's file belongs to %d, or is a copy", user, st.Uid)
		}
	}
	// The layer, and an image of it that names no account, are as they were.
	if st := stat(none, "srv/own"); st.Uid != 4242 || st.Mode&0o7777 != 0o4750 {
		t.Errorf("the layer's file belongs to %d with the mode %o", st.Uid, st.Mode)
	}
	for name, user := range map[string]string{"b:1": "root", "b:2": "0:0", "b:3": "nobody-knows", "b:4": "first", "b:5": "99999999", "b:6": "-1"} {
		img := build(name, user)
		if st := stat(img, "srv/own"); st.Uid != 4242 || st.Ino != stat(none, "srv/own").Ino || !strings.HasPrefix(read(t, img, "etc/passwd"), "root:") {
			t.Errorf("%s: srv/own belongs to %d", user, st.Uid)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(none.Root, "srv")); err != nil || len(entries) != 4 {
		t.Errorf("%v, %v", entries, err)
	}
}

// An image that lies about its accounts gets nothing of the host's.
func TestHostileAccountsStayInside(t *testing.T) {
	skiptest.WithoutRoot(t, "only root gives files to others")
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("host"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(outside, 4242, 4242); err != nil {
		t.Fatal(err)
	}
	base := tarOf(t, file{name: "etc/"}, file{name: "etc/passwd", kind: '2', to: strings.Repeat("../", 30) + outside[1:]}, file{name: "out", kind: '2', to: filepath.Dir(outside), uid: 4242}, file{name: "up", kind: '2', to: "../../../..", uid: 4242})
	s := opened(t)
	imported(t, s, savedOf(t, "a:1", configOf(t, object{"config": object{"User": "4242"}}, base), base), "")
	var st syscall.Stat_t
	if err := syscall.Lstat(outside, &st); err != nil || st.Uid != 4242 {
		t.Errorf("a file of the host belongs to %d (%v)", st.Uid, err)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "host" {
		t.Errorf("a file of the host is %q (%v)", data, err)
	}
}
