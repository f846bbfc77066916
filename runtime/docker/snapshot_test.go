// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

func (p *place) keep(of sandbox.ID) sandbox.ID {
	p.t.Helper()
	id := sandbox.NewID()
	_, err := p.driver.Snapshot(p.t.Context(), of, id)
	p.must(err)
	return id
}

// images lists what the Engine has of this server beside the image itself, by name.
func (p *place) images() []string {
	p.t.Helper()
	list, err := p.engine.ListImages(p.t.Context(), "dev.sandpit.server="+p.namespace)
	p.must(err)
	var out []string
	for _, img := range list {
		out = append(out, img.RepoTags...)
	}
	slices.Sort(out)
	return out
}

func (p *place) snapshots() []sandbox.ID {
	p.t.Helper()
	ids, err := p.driver.Snapshots(p.t.Context())
	p.must(err)
	return ids
}

// write and names are of the driver's directory.
func (p *place) write(name, content string) {
	p.t.Helper()
	p.must(os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o600))
}

func (p *place) names(dir string) []string {
	p.t.Helper()
	entries, err := os.ReadDir(filepath.Join(p.dir, dir))
	p.must(err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// from makes a sandbox of a snapshot.
func (p *place) from(id sandbox.ID) (runtime.Instance, runtime.Spec) {
	p.t.Helper()
	spec := p.spec()
	spec.From = id
	i, err := p.driver.Create(p.t.Context(), spec)
	p.must(err)
	return i, spec
}

// An image that somebody made of a snapshot, or called like one, is theirs; a container of it, too.
func strangersImages(t *testing.T, p *place) {
	ctx := t.Context()
	i, spec, _ := p.create()
	p.run(i, agent.Command{Shell: "echo ours > file"})
	id := p.keep(spec.ID)
	snapshot, err := p.engine.InspectImage(ctx, "localhost/sandpit/snapshot:"+p.namespace+"-"+string(id))
	p.must(err)
	for label, want := range map[string]string{"dev.sandpit.server": p.namespace, "dev.sandpit.snapshot": string(id), "dev.sandpit.sandbox": "", "dev.sandpit.project": "of-a-test", "dev.sandpit.image": p.image.Digest} {
		if got := snapshot.Config.Labels[label]; got != want {
			t.Errorf("the label %s is %q, want %q", label, got, want)
		}
	}
	// Theirs: a container of the snapshot with all its labels, and what is committed of that.
	theirs, err := p.engine.CreateContainer(ctx, engineapi.Container{
		Name: "theirs-" + p.namespace, Config: engineapi.Config{Image: snapshot.ID, Cmd: []string{"sleep", "1000"}}, Host: engineapi.HostConfig{NetworkMode: "none"},
	})
	p.must(err)
	copied, err := p.engine.CommitContainer(ctx, theirs, engineapi.Commit{Repository: "theirs", Tag: p.namespace})
	p.must(err)
	nameless, err := p.engine.CommitContainer(ctx, theirs, engineapi.Commit{})
	p.must(err)
	forged, err := p.engine.CommitContainer(ctx, theirs, engineapi.Commit{
		Repository: "localhost/sandpit/snapshot", Tag: p.namespace + "-" + string(sandbox.NewID()), Labels: map[string]string{"dev.sandpit.snapshot": "../../etc"},
	})
	p.must(err)
	t.Cleanup(func() {
		p.must(p.engine.RemoveContainer(context.Background(), theirs))
		for _, image := range []string{copied, nameless, forged} {
			p.must(p.engine.RemoveImage(context.Background(), image))
		}
	})
	want := []sandbox.ID{id}
	if got := p.snapshots(); !slices.Equal(got, want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
	if got := p.ids(); !slices.Equal(got, []sandbox.ID{spec.ID}) {
		t.Errorf("sandboxes are %v", got)
	}
	p.must(p.driver.Close()) // and the next server sweeps nothing of it
	p.driver = open(t, p.host, p.dir, p.namespace)
	p.must(p.driver.RemoveSnapshot(ctx, id))
	i, err = p.driver.Open(ctx, runtime.Handle{ID: spec.ID})
	p.must(err)
	p.must(i.Remove(ctx))
	for _, image := range []string{copied, nameless, forged} {
		if _, err := p.engine.InspectImage(ctx, image); err != nil {
			t.Errorf("a stranger's image is gone: %v", err)
		}
	}
	if _, err := p.engine.InspectContainer(ctx, theirs); err != nil {
		t.Errorf("a stranger's container is gone: %v", err)
	}
	if got := p.snapshots(); len(got) != 0 {
		t.Errorf("left are the snapshots %v", got)
	}
	// A name of ours on another image is no snapshot, and is not removed.
	other := sandbox.NewID()
	p.must(p.engine.TagImage(ctx, "localhost/sandpit/image:"+strings.TrimPrefix(p.image.Digest, "sha256:"), "localhost/sandpit/snapshot", p.namespace+"-"+string(other)))
	p.must(p.driver.RemoveSnapshot(ctx, other))
	spec = p.spec()
	spec.From = other
	if _, err := p.driver.Create(ctx, spec); fault.Of(err) != fault.NotFound {
		t.Errorf("a sandbox of an image that is called like a snapshot: %v", err)
	}
	p.must(p.engine.RemoveImage(ctx, "localhost/sandpit/snapshot:"+p.namespace+"-"+string(other)))
}

// The image of a snapshot goes with the snapshot, or with the last that uses it.
func imagesGo(t *testing.T, p *place) {
	ctx := t.Context()
	i, spec, _ := p.create()
	unused := p.keep(spec.ID)
	p.must(p.driver.RemoveSnapshot(ctx, unused))
	if got := p.images(); len(got) != 0 {
		t.Errorf("after a snapshot that nobody used: %v", got)
	}
	used := p.keep(spec.ID)
	fork, forked := p.from(used)
	later := p.keep(forked.ID) // its image is made of the other's
	p.must(p.driver.RemoveSnapshot(ctx, used))
	if got := p.snapshots(); !slices.Equal(got, []sandbox.ID{later}) {
		t.Errorf("listed are %v, want %v alone", got, later)
	}
	p.must(p.driver.Close())
	p.driver = open(t, p.host, p.dir, p.namespace)
	fork, err := p.driver.Open(ctx, fork.Handle())
	p.must(err)
	if got := p.run(fork, agent.Command{Shell: "echo fine"}); got != "fine\n" {
		t.Errorf("the fork answers %q", got)
	}
	p.must(fork.Remove(ctx))
	p.must(p.driver.RemoveSnapshot(ctx, later))
	i, err = p.driver.Open(ctx, i.Handle())
	p.must(err)
	p.must(i.Remove(ctx))
	if got := p.images(); len(got) != 0 {
		t.Errorf("left are the images %v", got)
	}
}

// What a server, or its Engine, left half done is finished or gone with the next.
func halfDone(t *testing.T, p *place) {
	ctx := t.Context()
	i, spec, container := p.create()
	p.run(i, agent.Command{Shell: "echo mine > file"})
	id := p.keep(spec.ID)
	p.must(i.Stop(ctx, 0))
	c, err := p.engine.InspectContainer(ctx, container)
	p.must(err)
	name := strings.TrimPrefix(c.Name, "/")
	labels := maps.Clone(c.Config.Labels)
	make := func(name string, labels map[string]string) string {
		t.Helper()
		made, err := p.engine.CreateContainer(ctx, engineapi.Container{
			Name: name, Config: engineapi.Config{Image: c.Image, Cmd: []string{"none"}, Labels: labels}, Host: engineapi.HostConfig{NetworkMode: "none"},
		})
		p.must(err)
		return made
	}
	gone := func(what, id string) {
		t.Helper()
		if _, err := p.engine.InspectContainer(ctx, id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s is there: %v", what, err)
		}
	}
	again := func() {
		t.Helper()
		p.must(p.driver.Close())
		p.driver = open(t, p.host, p.dir, p.namespace)
		if i, err = p.driver.Open(ctx, runtime.Handle{ID: spec.ID}); err != nil {
			t.Fatal(err)
		}
		p.must(i.Start(ctx, spec))
		if got := p.run(i, agent.Command{Shell: "cat file"}); got != "mine\n" {
			t.Errorf("it has %q", got)
		}
		p.must(i.Stop(ctx, 0))
	}
	// Before the names change, between the two, and after.
	next := make(name+".next", labels)
	again()
	gone("a container that did not take its place", next)
	next = make(name+".next", labels)
	p.must(p.engine.RenameContainer(ctx, container, name+".old"))
	again()
	gone("a container that did not take its place", next)
	if now, err := p.engine.InspectContainer(ctx, container); err != nil || now.Name != "/"+name {
		t.Errorf("it is called %s, %v", now.Name, err)
	}
	old := make(name+".old", labels)
	again()
	gone("a container that lost its place", old)
	// One that a disk was read of, and an image without its name.
	reader := make(name+"-reader", map[string]string{"dev.sandpit.server": p.namespace, "dev.sandpit.role": "disk", "dev.sandpit.of": c.Image})
	nameless, err := p.engine.CommitContainer(ctx, container, engineapi.Commit{
		Labels: map[string]string{"dev.sandpit.snapshot": string(sandbox.NewID()), "dev.sandpit.of": c.Image, "dev.sandpit.sandbox": ""},
	})
	p.must(err)
	p.write("layers/half.new", "half a layer")
	again()
	gone("a container that a disk was read of", reader)
	if _, err := p.engine.InspectImage(ctx, nameless); !fault.Is(err, fault.NotFound) {
		t.Errorf("an image without its name is there: %v", err)
	}
	if got := p.names("layers"); len(got) != 0 {
		t.Errorf("left are %v", got)
	}
	if got := p.snapshots(); !slices.Equal(got, []sandbox.ID{id}) {
		t.Errorf("the snapshots are %v, want %v", got, id)
	}
	p.must(p.driver.RemoveSnapshot(ctx, id))
	p.must(i.Remove(ctx))
}

// Many layers become one, with all that they hold, and so do those of what is made of it.
func layersBecomeOne(t *testing.T, p *place) {
	ctx := t.Context()
	p.driver.SetDepth(5) // that of the last
	i, spec, _ := p.create()
	p.run(i, agent.Command{Shell: "rm -rf /etc/skel /etc/shells; mkdir d; echo x > d/x", User: "root"})
	kept := []sandbox.ID{}
	for n := range 5 {
		p.run(i, agent.Command{Shell: fmt.Sprintf("echo %d > file%d; echo %d > last", n, n, n)})
		id := p.keep(spec.ID)
		kept = append(kept, id)
		p.must(i.Remove(ctx))
		i, spec = p.from(id)
	}
	last := kept[len(kept)-1]
	ref := "localhost/sandpit/snapshot:" + p.namespace + "-" + string(last)
	for { // it is done in the background
		img, err := p.engine.InspectImage(ctx, ref)
		p.must(err)
		if len(img.RootFS.Layers) == 2 {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the snapshot still has %d layers", len(img.RootFS.Layers))
		case <-time.After(50 * time.Millisecond):
		}
	}
	fork, forked := p.from(last)
	if got := p.run(fork, agent.Command{Shell: "cat file0 file3 file4 last d/x; ls -d /etc/skel /etc/shells /etc/passwd 2>/dev/null; stat -c '%U %a' . /etc"}); got != "0\n3\n4\n4\nx\n/etc/passwd\nsandbox 755\nroot 755\n" {
		t.Errorf("a sandbox of it has %q", got)
	}
	changes, err := p.driver.Diff(ctx, p.image, runtime.Point{Instance: spec.ID}, runtime.Point{Snapshot: last}, 100)
	p.must(err)
	if len(changes.Files) != 0 {
		t.Errorf("it differs from what it was made of: %+v", changes.Files)
	}
	for _, id := range kept {
		p.must(p.driver.RemoveSnapshot(ctx, id))
	}
	p.must(fork.Remove(ctx))
	p.must(i.Remove(ctx))
	if got := p.images(); len(got) != 0 {
		t.Errorf("left are the images %v, of %s", got, forked.ID)
	}
}

// A snapshot that came from outside is the server's alone until a sandbox is made of it, and outlives the server.
func fromOutside(t *testing.T, p *place) {
	ctx := t.Context()
	i, spec, _ := p.create()
	p.run(i, agent.Command{Shell: "echo exported > file; rm -f /etc/shells", User: "root"})
	var archive bytes.Buffer
	p.must(p.driver.Export(ctx, p.keep(spec.ID), &archive))
	p.must(i.Remove(ctx))
	id := sandbox.NewID()
	_, err := p.driver.Import(ctx, id, &archive, 1<<30)
	p.must(err)
	p.must(p.driver.Close())
	p.driver = open(t, p.host, p.dir, p.namespace)
	if got := p.names("layers"); !slices.Equal(got, []string{string(id)}) {
		t.Errorf("kept are %v", got)
	}
	other := p.spec()
	other.From, other.Image.Digest, other.Image.Root = id, "sha256:"+strings.Repeat("ab", 32), filepath.Join(t.TempDir(), "none")
	if _, err := p.driver.Create(ctx, other); err == nil {
		t.Error("a sandbox of an image that is not there")
	}
	fork, _ := p.from(id)
	if got := p.run(fork, agent.Command{Shell: "cat file; ls /etc/shells 2>/dev/null; stat -c '%U %a' . /etc"}); got != "exported\nsandbox 755\nroot 755\n" {
		t.Errorf("a sandbox of it has %q", got)
	}
	if got := p.names("layers"); len(got) != 0 {
		t.Errorf("kept are still %v", got)
	}
	p.must(fork.Stop(ctx, 0))
	p.must(p.driver.Rollback(ctx, fork.Handle().ID, id, sandbox.Limits{CPU: 1, MemoryMB: 128, Pids: 32}))
	p.must(p.driver.RemoveSnapshot(ctx, id))
	p.must(fork.Remove(ctx))
	for _, id := range p.snapshots() {
		p.must(p.driver.RemoveSnapshot(ctx, id))
	}
	if got := p.images(); len(got) != 0 {
		t.Errorf("left are the images %v", got)
	}
}

// Over a stream of the Engine's, which begins none while it keeps a disk, calls go on or wait for it, and a
// fork is reached like any other.
func snapshotsBesideStreams(t *testing.T, p *place) {
	ctx := t.Context()
	again := func() {
		p.must(p.driver.Close())
		p.driver = openWith(t, docker.Options{Dir: p.dir, Namespace: p.namespace, Engine: engineapi.Environment{Host: "unix://" + p.host.Socket()}, Stream: true})
	}
	again()
	i, spec, _ := p.create()
	p.run(i, agent.Command{Shell: "head -c 2M /dev/urandom > big; echo first > file"})
	var kept []sandbox.ID
	for range 3 {
		again()
		i, err := p.driver.Open(ctx, i.Handle()) // of a start that is long past, and without a stream
		p.must(err)
		id := sandbox.NewID()
		kept = append(kept, id)
		done := make(chan error, 1)
		go func() {
			_, err := p.driver.Snapshot(ctx, spec.ID, id)
			done <- err
		}()
		for over := false; !over; {
			select {
			case err := <-done:
				p.must(err)
				over = true
			default:
			}
			if got := p.run(i, agent.Command{Shell: "cat file"}); got != "first\n" {
				t.Errorf("while it is kept it answers %q", got)
			}
		}
	}
	fork, forked := p.from(kept[0])
	if got := p.run(fork, agent.Command{Shell: "cat file; stat -c %s big"}); got != "first\n2097152\n" {
		t.Errorf("the fork has %q", got)
	}
	p.must(fork.Stop(ctx, 0))
	p.must(p.driver.Rollback(ctx, forked.ID, "", forked.Limits))
	p.must(fork.Start(ctx, forked))
	if got := p.run(fork, agent.Command{Shell: "ls; echo empty"}); got != "empty\n" {
		t.Errorf("after a rollback to an empty disk: %q", got)
	}
	p.must(fork.Remove(ctx))
	i, err := p.driver.Open(ctx, i.Handle())
	p.must(err)
	p.must(i.Remove(ctx))
	for _, id := range kept {
		p.must(p.driver.RemoveSnapshot(ctx, id))
	}
	if list := p.images(); len(list) != 0 {
		t.Errorf("left are the images %v", list)
	}
}
