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
	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Where the disk of an Engine is full each verb says so, leaves nothing behind, and works again when there is room.
func TestAFullDiskOfTheEngine(t *testing.T) {
	skiptest.WithShort(t, "an Engine gets an image, and makes containers")
	h := dockerdtest.NewSmall(t, 48<<20)
	lendPython(t, h)
	p := newPlace(t, h)
	ctx := t.Context()
	i, spec, _ := p.create()
	p.run(i, agent.Command{Shell: "echo kept > file"})
	down, downSpec, _ := p.create()
	p.must(down.Stop(ctx, 0))
	out := p.run(i, agent.Command{Shell: "dd if=/dev/zero of=fill bs=64k 2>&1; echo; cat /dev/zero > rest; sync; :"})
	if !strings.Contains(out, "No space left on device") {
		t.Errorf("a command that fills the disk says %q", out)
	}
	if got := p.run(i, agent.Command{Shell: "cat file"}); got != "kept\n" {
		t.Errorf("its file says %q", got)
	}

	root := t.TempDir()
	p.must(errors.Join(os.WriteFile(filepath.Join(root, "large"), make([]byte, 1<<20), 0o644)))
	sum := make([]byte, 32)
	_, _ = rand.Read(sum) // never fails
	another := p.spec()
	another.Image = runtime.Image{Name: "another", Digest: "sha256:" + hex.EncodeToString(sum), Root: root}
	for name, verb := range map[string]func() error{
		"Create":   func() error { _, err := p.driver.Create(ctx, p.spec()); return err },
		"Load":     func() error { _, err := p.driver.Create(ctx, another); return err },
		"Snapshot": func() error { _, err := p.driver.Snapshot(ctx, spec.ID, sandbox.NewID()); return err },
		"File": func() error {
			_, _, err := agent.NewClient(i.Dial).WriteFile(ctx, "/workspace/more", strings.NewReader(strings.Repeat("x", 1<<20)), sandbox.WriteFileOptions{Mode: 0o644})
			return err
		},
	} {
		if err := verb(); !fault.Is(err, fault.Full) || fault.As(err).Disk == "" || name != "File" && fault.As(err).Remedy == "" {
			t.Errorf("%s: it is told as %v (%s of %q; %s)", name, err, fault.Of(err), fault.As(err).Disk, fault.As(err).Remedy)
		}
	}
	if err := down.Start(ctx, downSpec); err != nil && !fault.Is(err, fault.Full) {
		t.Errorf("Start: it is told as %v (%s)", err, fault.Of(err))
	}
	if ids, images := p.ids(), p.images(); len(ids) != 2 || len(images) != 0 {
		t.Errorf("left are the sandboxes %v and the images %v", ids, images)
	}

	p.run(i, agent.Command{Shell: "rm fill rest"})
	snapshot := p.keep(spec.ID)
	fork, _ := p.from(snapshot)
	for name, other := range map[string]runtime.Instance{"it": i, "its fork": fork} {
		if got := p.run(other, agent.Command{Shell: "cat file"}); got != "kept\n" {
			t.Errorf("the file of %s says %q", name, got)
		}
	}
	p.must(down.Stop(ctx, 0))
	p.must(down.Start(ctx, downSpec))
	next, _, _ := p.create()
	loaded, err := p.driver.Create(ctx, another)
	p.must(err)
	for _, other := range []runtime.Instance{i, fork, down, next, loaded} {
		p.must(other.Remove(ctx))
	}
	p.must(errors.Join(p.driver.RemoveSnapshot(ctx, snapshot), p.driver.RemoveImage(ctx, another.Image.Digest)))
	list, err := p.engine.ListContainers(ctx, "dev.sandpit.server="+p.namespace)
	p.must(err)
	if images := p.images(); len(list) != 0 || len(images) != 0 {
		t.Errorf("left are the containers %+v and the images %v", list, images)
	}
}
