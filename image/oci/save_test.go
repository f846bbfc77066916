// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func saveOf(t *testing.T, img Image) (*Saving, []byte) {
	t.Helper()
	s, err := Save(t.Context(), Rootfs{Dir: img.Root, Architecture: img.Architecture, Config: img.Config, Reference: "x/saved:1", Undated: Added()})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := s.Write(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if int64(out.Len()) != s.Size {
		t.Errorf("the archive has %d bytes, said were %d", out.Len(), s.Size)
	}
	return s, out.Bytes()
}

// rich is an archive of an image of two layers with all that a root can have.
func rich(t *testing.T) []byte {
	t.Helper()
	base := tarOf(t, file{name: "b/"}, file{name: "b/file", body: "base"}, file{name: "b/again", kind: '1', to: "b/file"}, file{name: "a", kind: '2', to: "/etc/passwd"},
		file{name: "set", body: "x", mode: 0o4755}, file{name: "noted", body: "x", xattr: map[string]string{"user.note": "hello"}}, file{name: strings.Repeat("long/", 40) + "é", body: "deep"},
		file{name: "hers", body: "x", uid: 4242, mode: 0o640}, file{name: "pipe", kind: '6'}, file{name: "evil", kind: '2', to: "../../../../etc/shadow"})
	return savedOf(t, "a/a:1", configOf(t, object{"config": object{"Env": []string{"A=1"}, "Cmd": []string{"run"}, "WorkingDir": "/b", "User": "4242"}}, base), base)
}

func TestASavedImageIsTheSameBytesOnEveryMachine(t *testing.T) {
	one := imported(t, opened(t), rich(t), "")
	time.Sleep(1100 * time.Millisecond) // the files that are added have another time
	s := opened(t)
	two := imported(t, s, rich(t), "")
	first, a := saveOf(t, one)
	second, b := saveOf(t, two)
	if first.Digest != second.Digest || !bytes.Equal(a, b) {
		t.Errorf("two archives of one image have the digests %s and %s", first.Digest, second.Digest)
	}
	back := imported(t, s, a, "")
	if back.Digest != first.Digest || back.Name() != "x/saved:1" || !reflect.DeepEqual(back.Config, two.Config) {
		t.Errorf("imported again it is %+v, want %s with %+v", back, first.Digest, two.Config)
	}
	for _, name := range []string{"b/file", "b/again", strings.Repeat("long/", 40) + "é", "etc/passwd"} {
		if got := read(t, back, name); got != read(t, two, name) {
			t.Errorf("%s is %q", name, got)
		}
	}
	for _, name := range []string{"set", "hers", "pipe", "a", "evil", "b"} {
		was, err := os.Lstat(filepath.Join(two.Root, name))
		if err != nil {
			t.Fatal(err)
		}
		is, err := os.Lstat(filepath.Join(back.Root, name))
		if err != nil || is.Mode() != was.Mode() {
			t.Errorf("%s is %v, was %v (%v)", name, is, was, err)
		}
	}
	value := make([]byte, 64)
	if n, err := unix.Lgetxattr(filepath.Join(back.Root, "noted"), "user.note", value); !errors.Is(err, unix.EOPNOTSUPP) && (err != nil || string(value[:n]) != "hello") {
		t.Errorf("user.note is %q (%v)", value[:max(n, 0)], err)
	}
	// What is saved of that is the same again.
	if third, c := saveOf(t, back); third.Digest != first.Digest || !bytes.Equal(a, c) {
		t.Errorf("saved again it has the digest %s, want %s", third.Digest, first.Digest)
	}
}

func TestASaveReadsNothingOutsideOfTheRoot(t *testing.T) {
	_, data := saveOf(t, imported(t, opened(t), rich(t), ""))
	host, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, host) {
		t.Error("the archive has a file of the host")
	}
}

func TestARootThatChangesIsNoArchive(t *testing.T) {
	img := imported(t, opened(t), rich(t), "")
	s, err := Save(t.Context(), Rootfs{Dir: img.Root})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(img.Root, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), new(bytes.Buffer)); err == nil {
		t.Error("an archive of a root that changed is written as if it were whole")
	}
}
