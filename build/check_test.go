// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/image"
)

func zipFiles(t *testing.T, to string, files map[string]string) {
	t.Helper()
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, text := range files {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// check looks at what a hostile build left in an image, and at its base.
func check(t *testing.T, base, img image.Image) {
	t.Helper()
	at := func(name string) string { return filepath.Join(img.Root, name) }
	stat := func(name string) (st unix.Stat_t) {
		if err := unix.Lstat(at(name), &st); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return st
	}
	suid, hard := stat("opt/suid"), stat("opt/hard")
	if suid.Mode&0o7777 != 0o6755 || suid.Uid != 1000 || suid.Ino != hard.Ino || suid.Nlink != 2 {
		t.Errorf("suid: mode %o, owner %d, links %d", suid.Mode, suid.Uid, suid.Nlink)
	}
	note := make([]byte, 8)
	if n, err := unix.Lgetxattr(at("opt/suid"), "user.note", note); err != nil || string(note[:n]) != "yes" {
		t.Errorf("the attribute: %q, %v", note[:max(n, 0)], err)
	}
	if to, err := os.Readlink(at("opt/link")); err != nil || to != "/etc/shadow" {
		t.Errorf("link: %s, %v", to, err)
	}
	if to, err := os.Readlink(at("usr/share/zoneinfo")); err != nil || to != "/" {
		t.Errorf("zoneinfo: %s, %v", to, err)
	}
	for _, gone := range []string{"opt/disk", "opt/fifo", "tmp/t", "var/tmp/v", "workspace/w", "artifacts/a", "run/r", "run/sandpit-build", "root/.cache/c", "etc-away"} {
		if _, err := os.Lstat(at(gone)); err == nil {
			t.Errorf("%s is in the image", gone)
		}
	}
	if text, err := os.ReadFile(at("opt/other-name")); err != nil || string(text) != "x\n" {
		t.Errorf("other-name: %q, %v", text, err)
	}
	if text, err := os.ReadFile(at("etc/hostname")); err != nil || string(text) != "sandbox\n" {
		t.Errorf("hostname: %q, %v", text, err)
	}
	if text, err := os.ReadFile(at("etc/machine-id")); err != nil || len(text) > 0 {
		t.Errorf("machine-id: %q, %v", text, err)
	}
	if info, err := os.Lstat(at("etc")); err != nil || !info.IsDir() {
		t.Errorf("etc: %v, %v", info, err)
	}
	if img.Env["MADE"] != "yes" || img.Env["PATH"] == "" || img.Versions["python"] == "" {
		t.Errorf("%v, %v, %v", img.Env, img.Versions, img.Absent)
	}
	if info, err := os.Stat(filepath.Join(filepath.Dir(img.Root), "build.log")); err != nil || info.Size() < 1<<20 || info.Size() > 17<<20 {
		t.Errorf("the log: %v, %v", info, err)
	}
	// The base is as it was, and what was not changed is shared with it.
	if text, err := os.ReadFile(filepath.Join(base.Root, "etc/hostname")); err != nil || string(text) != "sandbox\n" {
		t.Errorf("the base's hostname: %q, %v", text, err)
	}
	var ours, bases unix.Stat_t
	if unix.Lstat(at("usr/bin/git"), &ours) != nil || unix.Lstat(filepath.Join(base.Root, "usr/bin/git"), &bases) != nil || ours.Ino != bases.Ino {
		t.Errorf("git is not shared")
	}
	for _, dir := range []string{"workspace", "tmp", "etc", "usr", "home/sandbox"} {
		was, err := os.Lstat(filepath.Join(base.Root, dir))
		now, nerr := os.Lstat(at(dir))
		if err != nil || nerr != nil || was.Mode() != now.Mode() {
			t.Errorf("%s: %v, %v", dir, was, now)
		}
	}
	left, err := os.ReadDir(filepath.Dir(filepath.Dir(img.Root)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if e.Name() != "build.log" && e.Name() != filepath.Base(filepath.Dir(img.Root)) {
			t.Errorf("%s is left in the directory of images", e.Name())
		}
	}
}
