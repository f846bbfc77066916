// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestImagesOfOtherTools imports one image as umoci 0.4.7 made it and as skopeo 1.9.3 copied it. Its
// upper layer takes a directory and a file away, changes a file and makes a second name for that.
func TestImagesOfOtherTools(t *testing.T) {
	for archive, name := range map[string]string{"umoci-layout": "a.example/umoci:1", "skopeo-oci": "", "skopeo-docker": ""} {
		t.Run(archive, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", archive+".tar.gz"))
			if err != nil {
				t.Fatal(err)
			}
			s := opened(t)
			s.arch = "amd64" // on which it was made
			img := imported(t, s, data, name)
			if name == "" {
				name = "example.com/try/app:1"
			}
			if img.Name() != name || len(img.Layers) != 2 || img.Config.Labels["who"] != "umoci" || img.Config.Ports[0] != "80/tcp" {
				t.Errorf("imported %s: %+v", img.Name(), img)
			}
			for name, want := range map[string]string{"etc/layer": "two\n", "etc/again": "two\n", "dir/a": "kept\n", "dir/link": "two\n"} {
				if got := read(t, img, name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			absent(t, img, "old")
			absent(t, img, "dir/b")
			var one, two unix.Stat_t
			if err := unix.Lstat(filepath.Join(img.Root, "etc/layer"), &one); err != nil {
				t.Fatal(err)
			}
			if err := unix.Lstat(filepath.Join(img.Root, "etc/again"), &two); err != nil || one.Ino != two.Ino {
				t.Errorf("a hard link became a file of its own (%v)", err)
			}
			if info, err := os.Lstat(filepath.Join(img.Root, "suid")); err != nil || info.Mode()&os.ModeSetuid == 0 {
				t.Errorf("suid is %v (%v)", info.Mode(), err)
			}
			if info, err := os.Lstat(filepath.Join(img.Root, "pipe")); err != nil || info.Mode().Type() != os.ModeNamedPipe {
				t.Errorf("pipe is %v (%v)", info.Mode(), err)
			}
			value := make([]byte, 64)
			if n, err := unix.Lgetxattr(filepath.Join(img.Root, "capped"), "user.note", value); !errors.Is(err, unix.EOPNOTSUPP) && (err != nil || string(value[:n]) != "hello") {
				t.Errorf("user.note is %q (%v)", value[:max(n, 0)], err)
			}
			if os.Geteuid() == 0 {
				if n, err := unix.Lgetxattr(filepath.Join(img.Root, "capped"), capability, value); err != nil || n != capBytes2 {
					t.Errorf("its capabilities have %d bytes (%v)", n, err)
				}
			}
		})
	}
}
