// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

func (p *place) volume() sandbox.ID {
	p.t.Helper()
	id := sandbox.NewID()
	p.must(p.driver.CreateVolume(p.t.Context(), id, 0))
	return id
}

// with makes a sandbox that mounts volumes.
func (p *place) with(mounts ...sandbox.Mount) (runtime.Instance, runtime.Spec) {
	p.t.Helper()
	spec := p.spec()
	spec.Mounts = mounts
	i, err := p.driver.Create(p.t.Context(), spec)
	p.must(err)
	return i, spec
}

func (p *place) volumes() []sandbox.ID {
	p.t.Helper()
	ids, err := p.driver.Volumes(p.t.Context())
	p.must(err)
	return ids
}

// wantMounts looks, as a sandbox's root, which volumes of sandboxes are mounted, and how.
func (p *place) wantMounts(i runtime.Instance, want map[string]string) {
	p.t.Helper()
	got := map[string]string{}
	for line := range strings.SplitSeq(p.run(i, agent.Command{User: "root", Shell: "cat /proc/self/mountinfo"}), "\n") {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.Contains(f[3], "-volume-") && !strings.HasPrefix(f[4], "/.sandpit/volumes") {
			continue
		}
		options := slices.DeleteFunc(strings.Split(f[5], ","), func(o string) bool { return !slices.Contains([]string{"ro", "rw", "nosuid", "nodev"}, o) })
		got[f[4]] = strings.Join(options, ",")
	}
	if !maps.Equal(got, want) {
		p.t.Errorf("mounted are %v, want %v", got, want)
	}
}

// engineVolume makes a volume by the Engine's own means, with options that the driver never gives.
func (p *place) engineVolume(name string, labels, options map[string]string) {
	p.t.Helper()
	body, err := json.Marshal(map[string]any{"Name": name, "Driver": "local", "Labels": labels, "DriverOpts": options})
	p.must(err)
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.host.Socket())
	}}}
	resp, err := c.Post("http://engine/volumes/create", "application/json", bytes.NewReader(body))
	p.must(err)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		p.t.Fatalf("make the volume %s: %s", name, resp.Status)
	}
	p.t.Cleanup(func() { p.must(p.engine.RemoveVolume(context.Background(), name)) })
}

// A volume of the Engine's is ours by its name and its labels, and if it is no directory of the host.
func strangersVolumes(t *testing.T, p *place) {
	ctx := t.Context()
	ours := p.volume()
	id := func() sandbox.ID { return sandbox.NewID() }
	name := func(id sandbox.ID) string { return "sandpit-" + p.namespace + "-volume-" + string(id) }
	labels := func(namespace string, id sandbox.ID) map[string]string {
		return map[string]string{"dev.sandpit.server": namespace, "dev.sandpit.volume": string(id)}
	}
	forged, bare, bound, other, path := id(), id(), id(), id(), id()
	host := t.TempDir()
	p.must(os.WriteFile(filepath.Join(host, "secret"), []byte("the host's"), 0o600))
	strangers := map[string]sandbox.ID{"forged-" + p.namespace: forged, name(bare): bare, name(bound): bound, name(other): other, name(path): path}
	p.engineVolume("forged-"+p.namespace, labels(p.namespace, forged), nil)
	p.engineVolume(name(bare), nil, nil)
	p.engineVolume(name(bound), labels(p.namespace, bound), map[string]string{"type": "none", "o": "bind", "device": host})
	p.engineVolume(name(other), labels("zzzzzzzzzz99", other), nil)
	p.engineVolume(name(path), labels(p.namespace, "../../etc"), nil)
	second := open(t, p.host, t.TempDir(), newNamespace()) // a server beside it
	defer func() { p.must(second.Close()) }()
	theirs := sandbox.NewID()
	p.must(second.CreateVolume(ctx, theirs, 0))

	check := func() {
		t.Helper()
		if got := p.volumes(); !slices.Equal(got, []sandbox.ID{ours}) {
			t.Errorf("the volumes are %v, want %v alone", got, ours)
		}
		for _, id := range append(slices.Collect(maps.Values(strangers)), theirs) {
			if err := p.driver.RemoveVolume(ctx, id); err != nil {
				t.Errorf("RemoveVolume of a stranger's: %v", err)
			}
			if _, err := p.driver.VolumeUsage(ctx, id); fault.Of(err) != fault.NotFound {
				t.Errorf("VolumeUsage of a stranger's: %v", err)
			}
			spec := p.spec()
			spec.Mounts = []sandbox.Mount{{Volume: id, Path: "/workspace/data"}}
			if _, err := p.driver.Create(ctx, spec); fault.Of(err) != fault.NotFound {
				t.Errorf("a sandbox with a stranger's: %v", err)
			}
		}
		for name := range strangers {
			if _, err := p.engine.InspectVolume(ctx, name); err != nil {
				t.Errorf("a stranger's is gone: %v", err)
			}
		}
		if got, err := second.Volumes(ctx); err != nil || !slices.Equal(got, []sandbox.ID{theirs}) {
			t.Errorf("the other server's are %v, %v", got, err)
		}
	}
	check()
	p.must(p.driver.Close())
	p.driver = open(t, p.host, p.dir, p.namespace)
	check()
	for _, id := range []sandbox.ID{bare, bound, other} {
		if err := p.driver.CreateVolume(ctx, id, 0); fault.Of(err) != fault.Conflict || fault.As(err).Remedy == "" {
			t.Errorf("CreateVolume where a stranger's has the name: %v", err)
		}
	}
	// A container of somebody's that has one of ours is told of, and stays.
	container, err := p.engine.CreateContainer(ctx, engineapi.Container{
		Name: "user-" + p.namespace, Config: engineapi.Config{Image: "localhost/sandpit/image:" + strings.TrimPrefix(p.image.Digest, "sha256:"), Cmd: []string{"true"}},
		Host: engineapi.HostConfig{NetworkMode: "none", Mounts: []engineapi.Mount{{Type: "volume", Source: name(ours), Target: "/v"}}},
	})
	p.must(err)
	if err := p.driver.RemoveVolume(ctx, ours); fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "user-"+p.namespace) || fault.As(err).Remedy == "" {
		t.Errorf("RemoveVolume of one that somebody's container has: %v", err)
	}
	p.must(p.engine.RemoveContainer(ctx, container))
	p.must(p.driver.RemoveVolume(ctx, ours))
	p.must(second.RemoveVolume(ctx, theirs))
}

// swap has a directory of a volume become a link and a directory again, as fast as it can.
const swap = `
import os, sys
os.makedirs('/workspace/data/real/in', exist_ok=True); open('/workspace/data/real/in/mine', 'w').close()
os.chdir('/workspace/data')
for n, to in enumerate(['/', '/etc', '/proc/self/root', '../../../../..', '/.sandpit/run', '/var/lib']):
    os.symlink(to, 'link%d' % n)
print('ready', flush=True)
import ctypes, time
libc = ctypes.CDLL(None)
n = 0
while True:
    n = (n + 1) % 6
    link = b'link%d' % n
    libc.renameat2(-100, b'real', -100, link, 2)
    libc.renameat2(-100, b'real', -100, link, 2)
    if os.path.exists('/workspace/rarely'): time.sleep(0.0005) # else it is as often the one as the other
`

// Whoever writes in a volume can exchange a directory that another sandbox is about to mount with a link. That
// has the directory, then, or nothing.
func volumeRaces(t *testing.T, p *place) {
	ctx := t.Context()
	id := p.volume()
	writer, spec := p.with(sandbox.Mount{Volume: id, Path: "/workspace/data"})
	racing, err := agent.NewClient(writer.Dial).Start(ctx, agent.Command{ID: sandbox.NewProcessID(), Argv: []string{"python3", "-c", swap}})
	p.must(err)
	defer racing.Close()
	if f, err := racing.Next(ctx); err != nil || string(f.Data) != "ready\n" {
		t.Fatalf("got %q, %v", f.Data, err)
	}
	mounted, refused := 0, 0
	for n := range 6 {
		if n == 2 {
			p.run(writer, agent.Command{Shell: "touch /workspace/rarely"})
		}
		part := p.spec()
		sub := []string{"real", "real/in"}[n%2]
		part.Mounts = []sandbox.Mount{{Volume: id, Path: "/workspace/part", Sub: sub}}
		i, err := p.driver.Create(ctx, part)
		if err != nil {
			refused++
			if code := fault.Of(err); code != fault.Conflict && (code != fault.Unavailable || fault.As(err).Remedy == "") {
				t.Errorf("a part that is exchanged: %v (%s)", err, code)
			}
			continue
		}
		mounted++
		p.wantMounts(i, map[string]string{"/workspace/part": "rw,nosuid,nodev"})
		if got, want := p.run(i, agent.Command{User: "root", Shell: "ls -A /workspace/part"}), []string{"in\n", "mine\n"}[n%2]; got != want {
			t.Errorf("the part %s has %q, want %q", sub, got, want)
		}
		p.must(i.Remove(ctx))
	}
	t.Logf("%d were mounted, %d refused", mounted, refused)
	// Links that stay are refused, whatever the sandbox's own disk has.
	p.must(writer.Stop(ctx, 0))
	p.must(writer.Start(ctx, spec))
	p.run(writer, agent.Command{Shell: "cd data; for l in link?; do test -L $l || { mv real x; mv $l real; mv x $l; }; done; ln -s ../../.sandpit/run key; ln -s . self"})
	for _, sub := range []string{"key", "self", "self/real", "link0/etc", "link2"} {
		part := p.spec()
		part.Mounts = []sandbox.Mount{{Volume: id, Path: "/workspace/part", Sub: sub}}
		if _, err := p.driver.Create(ctx, part); fault.Of(err) != fault.Conflict {
			t.Errorf("the part %s: %v", sub, err)
		}
	}
	// Where somebody inside has put a link on the way of a volume, that is not mounted where the link leads.
	p.must(writer.Remove(ctx))
	trap, spec := p.with(sandbox.Mount{Volume: id, Path: "/mnt/p/etc"})
	if got := p.run(trap, agent.Command{User: "root", Shell: "mv /mnt/p /mnt/q && ln -s / /mnt/p; ls /mnt/p/etc/passwd"}); got != "/mnt/p/etc/passwd\n" {
		t.Fatalf("the trap is not set: %q", got)
	}
	p.must(trap.Stop(ctx, 0))
	if err := trap.Start(ctx, spec); fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "/mnt/p/etc") {
		t.Errorf("a volume that a link would bring to /etc: %v", err)
	}
	spec.Mounts = nil
	p.must(trap.Start(ctx, spec))
	if got := p.run(trap, agent.Command{Shell: "head -c 5 /etc/passwd; ls -A /mnt/q/etc"}); got != "root:" {
		t.Errorf("after it: %q", got)
	}
	p.must(trap.Remove(ctx))
	// One whose directories somebody moved away gets others.
	trap, spec = p.with(sandbox.Mount{Volume: id, Path: "/mnt/p/part", Sub: "real"})
	p.run(trap, agent.Command{User: "root", Shell: "mv /mnt/p /mnt/q"})
	p.must(trap.Stop(ctx, 0))
	p.must(trap.Start(ctx, spec))
	p.wantMounts(trap, map[string]string{"/mnt/p/part": "rw,nosuid,nodev"})
	p.must(trap.Remove(ctx))
	p.must(p.driver.RemoveVolume(ctx, id))
}

// What a server that was killed left of volumes is finished, or gone, with the next.
func volumesHalfDone(t *testing.T, p *place) {
	ctx := t.Context()
	id := p.volume()
	again := func(i runtime.Instance) runtime.Instance {
		t.Helper()
		p.must(p.driver.Close())
		p.driver = open(t, p.host, p.dir, p.namespace)
		i, err := p.driver.Open(ctx, i.Handle())
		p.must(err)
		return i
	}
	// One of which a part was to be put in its place.
	i, spec := p.with(sandbox.Mount{Volume: id, Path: "/workspace/part", Sub: "a"})
	p.must(i.Stop(ctx, 0))
	p.must(docker.StartAlone(ctx, i, spec))
	i = again(i)
	p.wantMounts(i, map[string]string{"/workspace/part": "rw,nosuid,nodev"})
	if got := p.run(i, agent.Command{Shell: "echo mine > part/file; cat part/file"}); got != "mine\n" {
		t.Errorf("it has %q", got)
	}
	i = again(i) // what is done is done once
	p.wantMounts(i, map[string]string{"/workspace/part": "rw,nosuid,nodev"})
	p.must(i.Stop(ctx, 0))

	// An image that a container was about to be made of, a container that was, and what is noted of a volume that is not there.
	container := p.container(spec.ID)
	c, err := p.engine.InspectContainer(ctx, container)
	p.must(err)
	before := p.images()
	_, err = p.engine.CommitContainer(ctx, container, engineapi.Commit{
		Repository: "localhost/sandpit/moving", Tag: p.namespace + "-" + string(spec.ID),
		Labels: map[string]string{"dev.sandpit.snapshot": string(spec.ID), "dev.sandpit.of": c.Image, "dev.sandpit.sandbox": ""},
	})
	p.must(err)
	if got := p.snapshots(); len(got) != 0 {
		t.Errorf("it is taken for the snapshot %v", got)
	}
	p.write("volumes/"+string(sandbox.NewID()), "")
	untouched := p.volume() // no sandbox had it
	reader, err := p.engine.CreateContainer(ctx, engineapi.Container{
		Name: "sandpit-" + p.namespace + "-reader", Config: engineapi.Config{Image: c.Image, Cmd: []string{"none"}, Labels: map[string]string{
			"dev.sandpit.server": p.namespace, "dev.sandpit.role": "disk", "dev.sandpit.of": c.Image, "dev.sandpit.sandbox": "",
		}},
		Host: engineapi.HostConfig{NetworkMode: "none", Mounts: []engineapi.Mount{{Type: "volume", Source: "sandpit-" + p.namespace + "-volume-" + string(id), Target: "/v"}}},
	})
	p.must(err)
	i = again(i)
	if got := p.images(); !slices.Equal(got, before) { // which it is made of
		t.Errorf("the images are %v, and were %v", got, before)
	}
	if got := p.names("volumes"); !slices.Equal(got, []string{string(untouched)}) {
		t.Errorf("noted are %v, want %v alone", got, untouched)
	}
	if _, err := p.engine.InspectContainer(ctx, reader); !fault.Is(err, fault.NotFound) {
		t.Errorf("a container in which places were looked at is there: %v", err)
	}
	want := []sandbox.ID{id, untouched}
	slices.Sort(want)
	if got := p.volumes(); !slices.Equal(got, want) {
		t.Errorf("the volumes are %v, want %v", got, want)
	}
	// The first sandbox of one that an earlier server made has it as its user's.
	other, _ := p.with(sandbox.Mount{Volume: untouched, Path: "/workspace/data"}, sandbox.Mount{Volume: id, Path: "/mnt/all", ReadOnly: true})
	if got := p.run(other, agent.Command{Shell: "echo x > data/x; cat data/x /mnt/all/a/file; stat -c %U data"}); got != "x\nmine\nsandbox\n" {
		t.Errorf("another sandbox has %q", got)
	}
	p.must(other.Remove(ctx))

	// A rollback keeps the volumes.
	kept := p.keep(spec.ID)
	p.must(p.driver.Rollback(ctx, spec.ID, kept, spec.Limits))
	container = p.container(spec.ID)
	p.must(i.Start(ctx, spec))
	if p.container(spec.ID) != container {
		t.Error("after a rollback the start made another container")
	}
	if got := p.run(i, agent.Command{Shell: "cat part/file"}); got != "mine\n" {
		t.Errorf("after a rollback it has %q", got)
	}
	p.must(i.Remove(ctx))
	p.must(p.driver.RemoveSnapshot(ctx, kept))
	for _, id := range want {
		p.must(p.driver.RemoveVolume(ctx, id))
	}
	if got := p.images(); len(got) != 0 {
		t.Errorf("left are the images %v", got)
	}
}

// Sandboxes get and lose volumes while these are made and removed: nothing waits for ever, and each answer is
// one of those that there are.
func volumesAtOnce(t *testing.T, p *place) {
	ctx := t.Context()
	shared := p.volume()
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			id := sandbox.NewID()
			spec := p.spec()
			spec.Mounts = []sandbox.Mount{{Volume: shared, Path: "/workspace/shared"}, {Volume: id, Path: "/workspace/own"}}
			if err := p.driver.CreateVolume(ctx, id, 0); err != nil {
				t.Error(err)
				return
			}
			i, err := p.driver.Create(ctx, spec)
			if err != nil {
				t.Error(err)
				return
			}
			if err := p.driver.RemoveVolume(ctx, id); fault.Of(err) != fault.Conflict {
				t.Errorf("RemoveVolume of one that is mounted: %v", err)
			}
			if err := i.Stop(ctx, 0); err != nil {
				t.Error(err)
			}
			var two sync.WaitGroup
			two.Go(func() {
				if err := i.Start(ctx, spec); err != nil && fault.Of(err) != fault.NotFound {
					t.Errorf("Start: %v", err)
				}
			})
			two.Go(func() {
				if err := p.driver.RemoveVolume(ctx, id); err != nil && fault.Of(err) != fault.Conflict {
					t.Errorf("RemoveVolume: %v", err)
				}
			})
			two.Wait()
			for _, err := range []error{i.Remove(ctx), p.driver.RemoveVolume(ctx, id)} {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if got := p.volumes(); !slices.Equal(got, []sandbox.ID{shared}) {
		t.Errorf("left are %v", got)
	}
	p.must(p.driver.RemoveVolume(ctx, shared))
	if got := p.images(); len(got) != 0 {
		t.Errorf("left are the images %v", got)
	}
}
