// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/disk"
	"sandpit.dev/fault"
)

func nothing(string) bool { return false }

// place makes directories for a disk, and one beside them.
func place(t *testing.T) (work, outside string) {
	t.Helper()
	dir := t.TempDir()
	work, outside = filepath.Join(dir, "work"), filepath.Join(dir, "outside")
	for _, d := range []string{work, outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "canary"), []byte("alive"), 0o600); err != nil {
		t.Fatal(err)
	}
	return work, outside
}

// pack makes an archive whose names begin with the directory's.
func pack(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		h.Format, h.Uid, h.Gid = tar.FormatPAX, os.Getuid(), os.Getgid()
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestNothingIsMadeElsewhere(t *testing.T) {
	for name, headers := range map[string]func(work, outside string) []tar.Header{
		"UpFromTheDisk": func(work, _ string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeReg, Name: work + "/../outside/canary", Size: 3}}
		},
		"AnotherPath": func(_, outside string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeReg, Name: outside + "/canary", Size: 3}}
		},
		"ThroughALink": func(work, outside string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeSymlink, Name: work + "/l", Linkname: outside}, {Typeflag: tar.TypeReg, Name: work + "/l/canary", Size: 3}}
		},
		"ADirectoryThroughALink": func(work, outside string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeSymlink, Name: work + "/l", Linkname: outside}, {Typeflag: tar.TypeDir, Name: work + "/l", Mode: 0o777}}
		},
		"ALinkToAnother": func(work, outside string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeLink, Name: work + "/h", Linkname: outside + "/canary"}}
		},
		"ALinkThroughALink": func(work, outside string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeSymlink, Name: work + "/l", Linkname: outside}, {Typeflag: tar.TypeLink, Name: work + "/h", Linkname: work + "/l/canary"}}
		},
		"ADevice": func(work, _ string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeBlock, Name: work + "/b", Devmajor: 8}}
		},
		"TheTopAsALink": func(work, outside string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeSymlink, Name: work, Linkname: outside}}
		},
		"PartsThatDoNotFit": func(work, _ string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeReg, Name: work + "/s", Size: 40, PAXRecords: map[string]string{"SANDPIT.sparse": "100"}}}
		},
		"HolesAndNoSize": func(work, _ string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeReg, Name: work + "/s", PAXRecords: map[string]string{"SANDPIT.sparse": "-1"}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			work, outside := place(t)
			if err := disk.Fill(t.Context(), bytes.NewReader(pack(t, headers(work, outside)...)), "", []string{work}); err == nil {
				t.Error("it is taken")
			}
			if b, err := os.ReadFile(filepath.Join(outside, "canary")); err != nil || string(b) != "alive" {
				t.Errorf("outside is %q, %v", b, err)
			}
			if list, err := os.ReadDir(outside); err != nil || len(list) != 1 {
				t.Errorf("outside are %v, %v", list, err)
			}
			if st, err := os.Stat(outside); err != nil || st.Mode().Perm() != 0o755 {
				t.Errorf("outside has %v, %v", st.Mode(), err)
			}
		})
	}
}

func TestAttributesRightsAndDepth(t *testing.T) {
	work, _ := place(t)
	plain := filepath.Join(work, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	attributes := map[string]string{"user.note": "a \x00 note", "user.none": "", "user.a=b": "c"}
	for name, value := range attributes {
		if err := unix.Setxattr(plain, name, []byte(value), 0); err != nil {
			t.Skipf("the file system keeps no attributes: %v", err)
		}
	}
	if err := unix.Chmod(plain, 0o6755); err != nil {
		t.Fatal(err)
	}
	const levels = 2200 // deeper than a path may be long
	at, err := os.Open(work)
	if err != nil {
		t.Fatal(err)
	}
	for range levels {
		if err := unix.Mkdirat(int(at.Fd()), "d", 0o755); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Openat(int(at.Fd()), "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = at.Close()
		at = os.NewFile(uintptr(fd), "d")
	}
	_ = at.Close()
	var archive bytes.Buffer
	if err := disk.Read(t.Context(), &archive, "", []string{work}, nothing); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(work); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := disk.Fill(t.Context(), bytes.NewReader(archive.Bytes()), "", []string{work}); err != nil {
		t.Fatal(err)
	}
	for name, want := range attributes {
		var value [100]byte
		n, err := unix.Getxattr(plain, name, value[:])
		if err != nil || string(value[:n]) != want {
			t.Errorf("%s is %q, %v", name, value[:max(0, n)], err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(plain, &st); err != nil || st.Mode&0o7777 != 0o6755 {
		t.Errorf("the mode is %o, %v", st.Mode, err)
	}
	var again bytes.Buffer
	if err := disk.Read(t.Context(), &again, "", []string{work}, nothing); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(archive.Bytes(), again.Bytes()) {
		t.Errorf("read again it has %d bytes, and had %d", again.Len(), archive.Len())
	}
}

func TestWhatNoArchiveHoldsIsTold(t *testing.T) {
	work, _ := place(t)
	if err := disk.Read(t.Context(), new(bytes.Buffer), "", []string{filepath.Join(work, "none")}, nothing); !fault.Is(err, fault.Internal) {
		t.Errorf("a directory that is not there: %v", err)
	}
	whole := pack(t, tar.Header{Typeflag: tar.TypeReg, Name: strings.Trim(work, "/") + "/f", Size: 5000})
	for _, n := range []int{300, 1000, 2000} {
		if err := disk.Fill(t.Context(), bytes.NewReader(whole[:n]), "", []string{work}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%d bytes of an archive: %v", n, err)
		}
	}
}
