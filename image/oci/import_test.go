// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
)

func TestAnImageOfLayersIsOneRoot(t *testing.T) {
	base := tarOf(t,
		file{name: "./"}, file{name: "etc/"}, file{name: "etc/passwd", body: "root:x:0:0:root:/root:/bin/sh\n", mode: 0o640},
		file{name: "usr/bin/"}, file{name: "usr/bin/sh", body: "shell", mode: 0o755}, file{name: "bin", kind: tar.TypeSymlink, to: "usr/bin"},
		file{name: "usr/bin/ash", kind: tar.TypeLink, to: "usr/bin/sh"},
		file{name: "old/a", body: "a"}, file{name: "old/b", body: "b"}, file{name: "gone", body: "x"}, file{name: "dir/was/here", body: "x"},
		file{name: "abs", kind: tar.TypeSymlink, to: "/usr"})
	upper := tarOf(t,
		file{name: ".wh.gone"}, file{name: "dir/.wh.was"}, file{name: "old/.wh..wh..opq"}, file{name: "old/c", body: "c"},
		file{name: "bin/tool", body: "tool", mode: 0o4755}, file{name: "abs/share/doc", body: "doc"}, file{name: ".wh..wh.plnk/1.2", body: "aufs"})
	config := configOf(t, object{"config": object{
		"User": "app", "WorkingDir": "/srv", "Entrypoint": []string{"/bin/tool"}, "Cmd": []string{"-x"}, "Env": []string{"PATH=/opt/bin:/bin", "A=b=c"},
		"Labels": object{"who": "test"}, "ExposedPorts": object{"8080/tcp": object{}, "53/udp": object{}},
	}}, base, upper)
	for form, archive := range map[string][]byte{
		"a layout, gzip":    layoutOf(t, "example.com/some/app:1", config, gzipped, base, upper),
		"a layout, zstd":    layoutOf(t, "example.com/some/app:1", config, zstandard, base, upper),
		"a layout, plain":   layoutOf(t, "example.com/some/app:1", config, plainly, base, upper),
		"docker save":       savedOf(t, "example.com/some/app:1", config, base, upper),
		"docker save, gzip": gzipped(t, savedOf(t, "example.com/some/app:1", config, base, upper)),
	} {
		t.Run(form, func(t *testing.T) {
			s := opened(t)
			img := imported(t, s, archive, "")
			if got := img.Name(); got != "example.com/some/app:1" {
				t.Errorf("its name is %s", got)
			}
			for name, want := range map[string]string{"usr/bin/tool": "tool", "usr/bin/ash": "shell", "old/c": "c", "usr/share/doc": "doc"} {
				if got := read(t, img, name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			for _, name := range []string{"gone", "dir/was", "old/a", "old/b", "old/.wh..wh..opq", ".wh.gone", ".wh..wh.plnk"} {
				absent(t, img, name)
			}
			if to, err := os.Readlink(filepath.Join(img.Root, "bin")); err != nil || to != "usr/bin" {
				t.Errorf("bin leads to %q (%v): a layer's bin/tool means where bin leads", to, err)
			}
			info, err := os.Lstat(filepath.Join(img.Root, "usr/bin/tool"))
			if err != nil || info.Mode()&os.ModeSetuid == 0 {
				t.Errorf("tool has the mode %v (%v), want set-user-id", info.Mode(), err)
			}
			want := Config{User: "app", WorkingDir: "/srv", Entrypoint: []string{"/bin/tool"}, Cmd: []string{"-x"}, Env: []string{"PATH=/opt/bin:/bin", "A=b=c"}, Labels: map[string]string{"who": "test"}, Ports: []string{"53/udp", "8080/tcp"}}
			if !reflect.DeepEqual(img.Config, want) {
				t.Errorf("config\n%+v, want\n%+v", img.Config, want)
			}
			if left := leftovers(t, s); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			again, err := Open(Options{Dir: s.dir})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"example.com/some/app:1", img.Digest, img.Digest[:7+digestDir]} {
				if found, err := again.Find(name); err != nil || found.Digest != img.Digest || !slices.Equal(found.References, []string{"example.com/some/app:1"}) {
					t.Errorf("found by %s: %v %v (%v)", name, found.Digest, found.References, err)
				}
			}
		})
	}
}

func TestWhatSandboxesNeedIsAddedWithoutChangingALayer(t *testing.T) {
	passwd := "root:x:0:0:root:/root:/bin/sh\nsandbox:x:7:7::/:/bin/sh"
	base := tarOf(t, file{name: "etc/passwd", body: passwd}, file{name: "etc/group", body: "root:x:0:\n"}, file{name: "etc/hosts", body: "10.1.2.3 build-host\n"},
		file{name: "tmp", kind: tar.TypeSymlink, to: "/etc"}, file{name: "workspace/mine", body: "kept"})
	s := opened(t)
	img := imported(t, s, layoutOf(t, "a/b:c", configOf(t, nil, base), gzipped, base), "")
	if got, want := read(t, img, "etc/passwd"), passwd+"\nsandbox1000:x:1000:1000::/home/sandbox:/bin/sh\n"; got != want {
		t.Errorf("passwd %q, want %q", got, want)
	}
	if got := read(t, img, "etc/group"); !strings.HasSuffix(got, ":x:1000:\n") {
		t.Errorf("group %q has no group 1000", got)
	}
	if got := read(t, img, "etc/hosts"); strings.Contains(got, "build-host") {
		t.Errorf("hosts %q is the builder's", got)
	}
	if got := read(t, img, "workspace/mine"); got != "kept" {
		t.Errorf("what the image has in /workspace is %q", got)
	}
	for _, dir := range []string{"workspace", "artifacts", "home", "home/sandbox", "tmp", "var/tmp", "dev", "proc", "sys", "run"} {
		info, err := os.Lstat(filepath.Join(img.Root, dir))
		if err != nil || !info.IsDir() {
			t.Errorf("/%s is no directory (%v)", dir, err)
		}
	}
	if info, err := os.Stat(filepath.Join(img.Root, "tmp")); err != nil || info.Mode().Perm() != 0o777 || info.Mode()&os.ModeSticky == 0 {
		t.Errorf("/tmp is %v (%v)", info.Mode(), err)
	}
	layer := filepath.Join(s.dir, layersName, strings.TrimPrefix(digestOf(base), digestPrefix), filesName)
	if got, err := os.ReadFile(filepath.Join(layer, "etc/passwd")); err != nil || string(got) != passwd {
		t.Errorf("the layer's passwd became %q (%v)", got, err)
	}
}

func TestAnAccountOfTheImagesOwnIsTheUser(t *testing.T) {
	base := tarOf(t, file{name: "etc/passwd", body: "root:x:0:0::/:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n"}, file{name: "etc/group", body: "node:x:1000:\n"})
	img := imported(t, opened(t), savedOf(t, "node:22", configOf(t, nil, base), base), "")
	if got := read(t, img, "etc/passwd"); strings.Contains(got, "sandbox") {
		t.Errorf("passwd became %q", got)
	}
}

func TestAnImageOfNothingIsCompletedToo(t *testing.T) {
	img := imported(t, opened(t), savedOf(t, "scratch-like:1", configOf(t, nil)), "")
	if got := read(t, img, "etc/passwd"); !strings.HasPrefix(got, "root:x:0:0:") || !strings.Contains(got, "\nsandbox:x:1000:") {
		t.Errorf("passwd %q", got)
	}
}

func TestLayersAreOnDiskOnce(t *testing.T) {
	s := opened(t)
	base := tarOf(t, file{name: "big", body: strings.Repeat("x", 1<<20)})
	one, two := tarOf(t, file{name: "one", body: "1"}), tarOf(t, file{name: "two", body: "2"})
	a := imported(t, s, layoutOf(t, "a/a:1", configOf(t, nil, base, one), gzipped, base, one), "")
	b := imported(t, s, savedOf(t, "b/b:1", configOf(t, nil, base, two), base, two), "")
	ino := func(img Image) uint64 {
		var st syscall.Stat_t
		if err := syscall.Lstat(filepath.Join(img.Root, "big"), &st); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	if ino(a) != ino(b) {
		t.Error("the file of a layer that two images have is there twice")
	}
	if _, err := s.Collect(false); err != nil {
		t.Fatal(err)
	}
	if got := s.Sharing(a); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("its layers are shared by %v images, want 1 and 0", got)
	}
	want, err := s.Freed(a)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Remove(t.Context(), a.Digest); err != nil || got != want || got >= 1<<20 {
		t.Errorf("freed %d, said were %d (%v); the layer that stays has %d", got, want, err, 1<<20)
	}
	if _, err := s.Find("a/a:1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a removed image is found: %v", err)
	}
	layers, err := os.ReadDir(filepath.Join(s.dir, layersName))
	if err != nil || len(layers) != 2 {
		t.Errorf("%d layers are kept, want the 2 of the other image (%v)", len(layers), err)
	}
	if got := read(t, b, "two"); got != "2" {
		t.Errorf("the other image has %q", got)
	}
}

func TestOwnersAttributesAndCapabilitiesAreKept(t *testing.T) {
	skiptest.WithoutRoot(t, "only root gives files to others")
	v3 := string([]byte{1, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe8, 3, 0, 0})
	base := tarOf(t,
		file{name: "mine/", uid: 33, mode: 0o2750}, file{name: "mine/f", uid: 33, body: "x", xattr: map[string]string{"user.note": "hello", "trusted.overlay.opaque": "y", "user.overlay.opaque": "y"}},
		file{name: "ping", body: "x", mode: 0o755, xattr: map[string]string{capability: v3}},
		file{name: "far", body: "x", uid: 1 << 20}, file{name: "disk", kind: tar.TypeBlock}, file{name: "pipe", kind: tar.TypeFifo, mode: 0o622})
	img := imported(t, opened(t), layoutOf(t, "x/y:z", configOf(t, nil, base), gzipped, base), "")
	stat := func(name string) (st unix.Stat_t) {
		if err := unix.Lstat(filepath.Join(img.Root, name), &st); err != nil {
			t.Fatal(err)
		}
		return st
	}
	if st := stat("mine"); st.Uid != 33 || st.Gid != 33 || st.Mode&0o7777 != 0o2750 {
		t.Errorf("mine is of %d:%d with %o", st.Uid, st.Gid, st.Mode)
	}
	if st := stat("far"); st.Uid != nobody || img.Foreign != 1 {
		t.Errorf("a file of nobody in a sandbox is of %d, and %d are told", st.Uid, img.Foreign)
	}
	if st := stat("pipe"); st.Mode != unix.S_IFIFO|0o622 {
		t.Errorf("the pipe has the mode %o", st.Mode)
	}
	absent(t, img, "disk")
	if img.Devices != 1 {
		t.Errorf("%d devices are told, want 1", img.Devices)
	}
	value := make([]byte, 256)
	if n, err := unix.Lgetxattr(filepath.Join(img.Root, "mine/f"), "user.note", value); err != nil || string(value[:n]) != "hello" {
		t.Errorf("user.note is %q (%v)", value[:max(n, 0)], err)
	}
	for _, name := range []string{"trusted.overlay.opaque", "user.overlay.opaque"} {
		if _, err := unix.Lgetxattr(filepath.Join(img.Root, "mine/f"), name, value); !errors.Is(err, unix.ENODATA) {
			t.Errorf("the attribute %s came in: %v", name, err)
		}
	}
	n, err := unix.Lgetxattr(filepath.Join(img.Root, "ping"), capability, value)
	if err != nil || !bytes.Equal(value[:n], append([]byte{1, 0, 0, 2}, v3[4:20]...)) {
		t.Errorf("the capabilities are % x (%v)", value[:max(n, 0)], err)
	}
}

func TestTheRightArchitectureIsTaken(t *testing.T) {
	layer := tarOf(t, file{name: "which", body: "here"})
	data := gzipped(t, layer)
	config := configOf(t, nil, layer)
	other := configOf(t, object{"architecture": "pdp11"}, layer)
	var files []file
	put := func(data []byte, media string) object {
		files = append(files, file{name: blobsFolder + strings.TrimPrefix(digestOf(data), digestPrefix), body: string(data)})
		return object{"mediaType": media, "digest": digestOf(data), "size": len(data)}
	}
	l := put(data, "application/vnd.oci.image.layer.v1.tar+gzip")
	manifest := func(config []byte, arch string) object {
		m := put(jsonOf(t, object{"schemaVersion": 2, "config": put(config, "application/vnd.oci.image.config.v1+json"), "layers": []object{l}}), ociManifest)
		m["platform"] = object{"os": "linux", "architecture": arch}
		return m
	}
	foreign := manifest(other, "pdp11")
	index := put(jsonOf(t, object{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []object{foreign, manifest(config, hostArch())}}), ociIndex)
	layout := func(m object) []byte {
		return tarOf(t, append([]file{{name: "index.json", body: string(jsonOf(t, object{"schemaVersion": 2, "manifests": []object{m}}))}}, files...)...)
	}
	s := opened(t)
	img := imported(t, s, layout(index), "multi:1")
	if got := read(t, img, "which"); got != "here" || img.Architecture != hostArch() {
		t.Errorf("took %q of %s", got, img.Architecture)
	}
	_, err := s.Import(t.Context(), bytes.NewReader(layout(foreign)), "")
	if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "pdp11") {
		t.Errorf("an image for another machine: %v", err)
	}
}

// TestABrokenImportLeavesNothing breaks an import off at each of many places: of its archive, and of a layer.
func TestABrokenImportLeavesNothing(t *testing.T) {
	s := opened(t)
	base := tarOf(t, file{name: "a", body: strings.Repeat("a", 5000)}, file{name: "b/", mode: 0o500}, file{name: "b/c", body: "c"})
	archive := layoutOf(t, "x/y:1", configOf(t, nil, base), gzipped, base)
	for at := 0; at < len(archive)-1024; at += 997 {
		if _, err := s.Import(t.Context(), io.MultiReader(bytes.NewReader(archive[:at]), broken{}), ""); !errors.Is(err, errBroken) {
			t.Fatalf("at byte %d: %v", at, err)
		}
		if left := leftovers(t, s); len(left) > 0 {
			t.Fatalf("at byte %d it left %v", at, left)
		}
	}
	for _, at := range []int64{1, 512, 3000, 5632} {
		_, err := s.layer(t.Context(), blob{diffID: digestOf(base), size: -1, open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(base[:at]), broken{})), nil
		}}, newBudget(Limits{}, s.dir), func(int64) {})
		if !errors.Is(err, errBroken) {
			t.Fatalf("a layer at byte %d: %v", at, err)
		}
	}
	if left := leftovers(t, s); len(left) > 0 || len(s.List()) > 0 {
		t.Errorf("left behind: %v, %v", left, s.List())
	}
	imported(t, s, archive, "")
}

var errBroken = errors.New("the line broke")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

// TestWhatAKilledProcessLeftIsSwept lays out what a kill leaves, while nobody works there and while somebody does.
func TestWhatAKilledProcessLeftIsSwept(t *testing.T) {
	s := opened(t)
	left := filepath.Join(s.dir, workName, "layer-1", filesName, "deep")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	orphan := filepath.Join(s.dir, layersName, strings.Repeat("a", 64))
	if err := os.MkdirAll(orphan, 0o700); err != nil {
		t.Fatal(err)
	}
	working, err := s.begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: s.dir}); err != nil {
		t.Fatal(err)
	}
	if len(leftovers(t, s)) == 0 {
		t.Error("what another process works at was swept")
	}
	if _, err := s.Collect(false); !fault.Is(err, fault.Conflict) {
		t.Errorf("layers are collected while images are made: %v", err)
	}
	working.release()
	if _, err := Open(Options{Dir: s.dir}); err != nil {
		t.Fatal(err)
	}
	if names := leftovers(t, s); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	if _, err := os.Stat(orphan); err != nil {
		t.Errorf("a layer for the next try is gone: %v", err)
	}
	old := time.Now().Add(-2 * orphanAge)
	if err := os.Chtimes(orphan, old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: s.dir}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(orphan); !os.IsNotExist(err) {
		t.Errorf("an old layer of no image stays: %v", err)
	}
}

func TestTheSameImageTwiceAtOnce(t *testing.T) {
	s := opened(t)
	base := tarOf(t, file{name: "a", body: strings.Repeat("a", 100_000)})
	archive := layoutOf(t, "x/y:1", configOf(t, nil, base), gzipped, base)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.Import(context.Background(), bytes.NewReader(archive), ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all := s.List(); len(all) != 1 || len(leftovers(t, s)) > 0 {
		t.Errorf("%d images, left %v", len(all), leftovers(t, s))
	}
}

func TestAReferenceMovesToWhatWasImportedLast(t *testing.T) {
	s := opened(t)
	one, two := tarOf(t, file{name: "v", body: "1"}), tarOf(t, file{name: "v", body: "2"})
	first := imported(t, s, savedOf(t, "app:1", configOf(t, nil, one), one), "")
	second := imported(t, s, savedOf(t, "elsewhere:1", configOf(t, nil, two), two), "docker.io/library/app:1")
	found, err := s.Find("app:1")
	if err != nil || found.Digest != second.Digest {
		t.Errorf("app:1 is %s (%v)", found.Digest, err)
	}
	if kept, err := s.Find(first.Digest); err != nil || read(t, kept, "v") != "1" || len(kept.References) != 0 {
		t.Errorf("the first one: %v (%v)", kept, err)
	}
}

func TestAFullDiskIsSaid(t *testing.T) {
	s := opened(t)
	s.limits.Spared = 1 << 60
	base := tarOf(t, file{name: "a", body: "a"})
	_, err := s.Import(t.Context(), bytes.NewReader(savedOf(t, "app:1", configOf(t, nil, base), base)), "")
	if !fault.Is(err, fault.Full) || len(leftovers(t, s)) > 0 {
		t.Errorf("%v, left %v", err, leftovers(t, s))
	}
}
