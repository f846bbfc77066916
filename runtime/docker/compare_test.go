// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/disk"
	"sandpit.dev/sandbox"
)

// shell makes an image that has a shell and nothing else: its disk is read at once.
func (p *place) shell() runtime.Image {
	p.t.Helper()
	root := p.t.TempDir()
	p.must(os.Chmod(root, 0o755)) //nolint:gosec // a root of a file system
	for _, pattern := range []string{"bin/sh", "lib/*/libc.so.6", "lib/*/ld-linux*.so.*", "lib64/ld-linux*.so.*", "lib/ld-linux*.so.*"} {
		files, err := filepath.Glob(filepath.Join(p.image.Root, pattern))
		p.must(err)
		for _, file := range files {
			b, err := os.ReadFile(file)
			p.must(err)
			rel, err := filepath.Rel(p.image.Root, file)
			p.must(err)
			to := filepath.Join(root, rel)
			p.must(errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, b, 0o755))) //nolint:gosec // programs
		}
	}
	for _, dir := range []string{"workspace", "artifacts"} {
		dir = filepath.Join(root, dir)
		p.must(errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, 1000, 1000)))
	}
	sum := make([]byte, 32)
	_, _ = rand.Read(sum) // never fails
	return runtime.Image{Name: "shell", Digest: "sha256:" + hex.EncodeToString(sum), Root: root}
}

// shrink has files that are long until they are short, again and again: whoever reads them gets less than was said.
const shrink = `echo kept > still
x=0123456789abcdef; for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do x=$x$x; done
for n in 1 2 3 4 5 6 7 8; do echo "$x" > f$n; done
echo begun
while :; do for n in 1 2 3 4 5 6 7 8; do : > f$n; echo "$x" > f$n; done; done`

// What changes a running sandbox is told also where its files change so fast that no archive of them is whole.
func readWhileWritten(t *testing.T, p *place) {
	ctx := t.Context()
	spec := p.spec()
	spec.Image = p.shell()
	i, err := p.driver.Create(ctx, spec)
	p.must(err)
	w, err := agent.NewClient(i.Dial).Start(ctx, agent.Command{ID: sandbox.NewProcessID(), Argv: []string{"/bin/sh", "-c", shrink}})
	p.must(err)
	defer w.Close()
	if f, err := w.Next(ctx); err != nil || !strings.HasPrefix(string(f.Data), "begun") {
		t.Fatalf("got %q, %v", f.Data, err)
	}
	for torn := 0; torn < 3; { // half of all archives break off
		r, err := p.engine.ExportContainer(ctx, p.container(spec.ID))
		p.must(err)
		_, err = disk.Read(ctx, r)
		_ = r.Close()
		if disk.IsTorn(err) {
			torn++
			err = nil
		}
		p.must(errors.Join(err, ctx.Err()))
	}
	for range 8 {
		got, err := p.driver.Diff(ctx, spec.Image, runtime.Point{}, runtime.Point{Instance: spec.ID}, 100)
		p.must(err)
		actions := map[string]string{}
		for _, f := range got.Files {
			actions[f.Path] = f.Action
		}
		for _, path := range []string{"/workspace/still", "/workspace/f1", "/workspace/f8"} {
			if actions[path] != "created" {
				t.Errorf("%s is told as %q, of %v", path, actions[path], actions)
			}
		}
	}
	if list := p.images(); len(list) != 0 {
		t.Errorf("left are the images %v", list)
	}
	p.must(i.Remove(ctx))
	p.nothingLeft()
	p.must(p.driver.RemoveImage(ctx, spec.Image.Digest))
}
