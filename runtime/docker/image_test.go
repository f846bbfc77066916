// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
)

// An image that takes longer than its caller waits is sent on, and is there for the next.
func sendingGoesOn(t *testing.T, p *place) {
	sum := make([]byte, 32)
	_, _ = rand.Read(sum) // never fails
	img := runtime.Image{Name: "large", Digest: "sha256:" + hex.EncodeToString(sum), Root: t.TempDir()}
	f, err := os.Create(filepath.Join(img.Root, "zeros"))
	p.must(err)
	p.must(f.Truncate(256 << 20)) // is read twice before the Engine has it
	p.must(f.Close())
	spec := p.spec()
	spec.Image = img
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.driver.Create(soon, spec); fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "still being sent") || fault.As(err).Remedy == "" {
		t.Errorf("a create that waits 50 ms: %v", err)
	}
	ref := "localhost/sandpit/image:" + hex.EncodeToString(sum)
	for {
		_, err := p.engine.InspectImage(t.Context(), ref)
		if err == nil {
			break
		}
		if !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		p.must(t.Context().Err())
		time.Sleep(20 * time.Millisecond) // there is no event for it that the driver's test could await
	}
	p.must(p.driver.RemoveImage(t.Context(), img.Digest))
	if _, err := p.engine.InspectImage(t.Context(), ref); !fault.Is(err, fault.NotFound) {
		t.Errorf("the image that was removed: %v", err)
	}
}

// What an image has arrives on the Engine as it is, whatever it is. Most tests are lent their image.
func filesArrive(t *testing.T, p *place) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	p.must(errors.Join(
		os.Mkdir(at("dir"), 0o755), os.Chmod(at("dir"), 0o1777), os.WriteFile(at("dir/program"), []byte("of root"), 0o755), os.Chmod(at("dir/program"), 0o6755|os.ModeSetuid|os.ModeSetgid),
		os.Link(at("dir/program"), at("dir/same")), os.Symlink("../dir/program", at("dir/link")), unix.Mkfifo(at("dir/fifo"), 0o600),
		os.WriteFile(at("dir/users"), make([]byte, 3<<20), 0o640), os.Chown(at("dir/users"), 1000, 1001), os.Mkdir(at("dir/empty"), 0o700), os.Chown(at("dir/empty"), 1000, 1000),
		os.WriteFile(at("dir/"+strings.Repeat("long-", 45)), nil, 0o644), os.WriteFile(at("dir/ä b"), nil, 0o644),
	))
	sum := make([]byte, 32)
	_, _ = rand.Read(sum) // never fails
	spec := p.spec()
	spec.Image = runtime.Image{Name: "small", Digest: "sha256:" + hex.EncodeToString(sum), Root: root}
	i, err := p.driver.Create(t.Context(), spec)
	p.must(err)
	r, err := p.engine.ExportContainer(t.Context(), p.container(spec.ID))
	p.must(err)
	defer func() { _ = r.Close() }()
	got := map[string]string{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		p.must(err)
		if strings.HasPrefix(h.Name, "dir/") && h.Name != "dir/" {
			got[h.Name] = fmt.Sprintf("%c %o %d:%d %d %s", h.Typeflag, h.Mode&0o7777, h.Uid, h.Gid, h.Size, h.Linkname)
		}
	}
	want := map[string]string{
		"dir/program": "0 6755 0:0 7 ", "dir/same": "1 6755 0:0 0 dir/program", "dir/link": "2 777 0:0 0 ../dir/program", "dir/fifo": "6 600 0:0 0 ",
		"dir/users": "0 640 1000:1001 3145728 ", "dir/empty/": "5 700 1000:1000 0 ", "dir/" + strings.Repeat("long-", 45): "0 644 0:0 0 ", "dir/ä b": "0 644 0:0 0 ",
	}
	if !maps.Equal(got, want) {
		t.Errorf("the Engine has %v, want %v", got, want)
	}
	p.must(i.Remove(t.Context()))
	p.must(p.driver.RemoveImage(t.Context(), spec.Image.Digest))
}
