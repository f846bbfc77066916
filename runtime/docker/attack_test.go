// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// place is a server's half and the Engine's, for one test.
type place struct {
	t         *testing.T
	host      *dockerdtest.Host
	engine    *engineapi.Client
	dir       string
	driver    *docker.Driver
	image     runtime.Image
	namespace string
}

func newPlace(t *testing.T, h *dockerdtest.Host) *place {
	p := &place{t: t, host: h, dir: t.TempDir(), namespace: newNamespace(), image: python(t)}
	var err error
	if p.engine, err = engineapi.Find(t.Context(), engineapi.Environment{Host: "unix://" + p.host.Socket()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.engine.Close)
	p.driver = open(t, p.host, p.dir, p.namespace)
	t.Cleanup(func() { p.must(p.driver.Close()) })
	return p
}

// streamPlace is newPlace of a driver that reaches agents through the Engine.
func streamPlace(t *testing.T, h *dockerdtest.Host) *place {
	p := newPlace(t, h)
	p.must(p.driver.Close())
	p.driver = openWith(t, docker.Options{Dir: p.dir, Namespace: p.namespace, Engine: engineapi.Environment{Host: "unix://" + h.Socket()}, Stream: true})
	return p
}

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) spec() runtime.Spec {
	return runtime.Spec{
		ID: sandbox.NewID(), Image: p.image, Hostname: "box", Project: "of-a-test",
		Limits: sandbox.Limits{CPU: 1, MemoryMB: 256, DiskMB: 256, Pids: 64},
	}
}

func (p *place) create() (runtime.Instance, runtime.Spec, string) {
	p.t.Helper()
	spec := p.spec()
	i, err := p.driver.Create(p.t.Context(), spec)
	p.must(err)
	return i, spec, p.container(spec.ID)
}

// container returns the id of a sandbox's container, by the label that says so.
func (p *place) container(id sandbox.ID) string {
	p.t.Helper()
	list, err := p.engine.ListContainers(p.t.Context(), "dev.sandpit.sandbox="+string(id))
	p.must(err)
	if len(list) != 1 {
		p.t.Fatalf("sandbox %s has %d containers", id, len(list))
	}
	return list[0].ID
}

func (p *place) ids() []sandbox.ID {
	p.t.Helper()
	list, err := p.driver.List(p.t.Context())
	p.must(err)
	var out []sandbox.ID
	for _, h := range list {
		out = append(out, h.ID)
	}
	return out
}

func (p *place) run(i runtime.Instance, c agent.Command) string {
	p.t.Helper()
	c.ID = sandbox.NewProcessID()
	process, err := agent.NewClient(i.Dial).Start(p.t.Context(), c)
	p.must(err)
	defer process.Close()
	var out strings.Builder
	for {
		f, err := process.Next(p.t.Context())
		if err == io.EOF {
			return out.String()
		}
		p.must(err)
		out.Write(f.Data)
	}
}

// Inspected by the Engine's own words, a container has the rights of the list and no other.
func rights(t *testing.T, p *place) {
	spec := p.spec()
	data, part := p.volume(), p.volume()
	spec.Mounts = []sandbox.Mount{{Volume: data, Path: "/workspace/data"}, {Volume: part, Path: "/mnt/part", Sub: "a/b", ReadOnly: true}}
	i, err := p.driver.Create(t.Context(), spec)
	p.must(err)
	id := p.container(spec.ID)
	c, err := p.engine.InspectContainer(t.Context(), id)
	p.must(err)
	h := c.HostConfig
	want := []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"}
	if h.Privileged || !slices.Equal(h.CapDrop, []string{"ALL"}) || !slices.Equal(h.CapAdd, want) {
		t.Errorf("privileged %v, dropped %v, added %v", h.Privileged, h.CapDrop, h.CapAdd)
	}
	if h.NetworkMode != "none" || h.IpcMode != "private" || !slices.Equal(h.SecurityOpt, []string{"no-new-privileges"}) {
		t.Errorf("network %s, IPC %s, security %v", h.NetworkMode, h.IpcMode, h.SecurityOpt)
	}
	if h.LogConfig.Type != "none" || h.RestartPolicy.Name != "no" || h.Init == nil || *h.Init {
		t.Errorf("log %v, restart %v, init %v", h.LogConfig, h.RestartPolicy, h.Init)
	}
	if h.Memory != 256<<20 || h.MemorySwap != h.Memory || h.NanoCpus != 1e9 || h.PidsLimit != 64+32 {
		t.Errorf("limits are %+v", h.Resources)
	}
	mounts := map[string]string{}
	for _, m := range c.Mounts {
		mounts[m.Destination] = m.Type
		if m.Type == "bind" && m.Source != filepath.Join(p.dir, "instances", string(spec.ID), "run") {
			t.Errorf("a directory of the host is mounted: %s", m.Source)
		}
	}
	where := "/.sandpit/volumes/1" // the whole, of which the server mounts the part
	if p.engine.MountsParts() {
		where = "/mnt/part"
	}
	if !maps.Equal(mounts, map[string]string{"/.sandpit/agent": "volume", "/.sandpit/run": "bind", "/workspace/data": "volume", where: "volume"}) {
		t.Errorf("mounted are %v", mounts)
	}
	p.wantMounts(i, map[string]string{"/workspace/data": "rw,nosuid,nodev", "/mnt/part": "ro,nosuid,nodev"})
	p.nothingShared(id)
	if got := p.run(i, agent.Command{User: "root", Shell: "find / '(' -path /proc -o -path /sys ')' -prune -o -type s -print"}); got != "/.sandpit/run/agent.sock\n" {
		t.Errorf("the sockets inside are %q", got)
	}
	for label, value := range map[string]string{"dev.sandpit.server": p.namespace, "dev.sandpit.sandbox": string(spec.ID), "dev.sandpit.project": "of-a-test"} {
		if c.Config.Labels[label] != value {
			t.Errorf("%s is %q, want %q", label, c.Config.Labels[label], value)
		}
	}
	status := p.run(i, agent.Command{Shell: "grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid)' /proc/self/status; cat /sys/class/net/*/address | wc -l; touch /.sandpit/agent/x 2>&1; ls /.sandpit/run 2>&1"})
	for _, line := range []string{"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "Uid:\t1000\t1000", "Read-only file system", "Permission denied"} {
		if !strings.Contains(status, line) {
			t.Errorf("a command's status lacks %q:\n%s", line, status)
		}
	}
	root := p.run(i, agent.Command{User: "root", Shell: "grep -E '^Cap(Eff|Bnd)' /proc/self/status; touch /.sandpit/agent/x 2>&1; kill -9 1; sleep 0.1; echo alive"})
	for _, line := range []string{"CapBnd:\t00000000000004fb", "Read-only file system", "alive"} {
		if !strings.Contains(root, line) {
			t.Errorf("root's lacks %q:\n%s", line, root)
		}
	}
	p.must(i.Remove(t.Context()))
	for _, volume := range []sandbox.ID{data, part} {
		p.must(p.driver.RemoveVolume(t.Context(), volume))
	}
}

// Labels do not make a container ours: neither those that an image which was committed of ours
// hands on, nor those of another server, nor a copy of all of them.
func strangers(t *testing.T, p *place) {
	_, spec, id := p.create()
	ours, err := p.engine.InspectContainer(t.Context(), id)
	p.must(err)
	make := func(name, image string, labels map[string]string) string {
		t.Helper()
		made, err := p.engine.CreateContainer(t.Context(), engineapi.Container{
			Name:   name,
			Config: engineapi.Config{Image: image, Cmd: []string{"sleep", "1000"}, Labels: labels}, Host: engineapi.HostConfig{NetworkMode: "none"},
		})
		p.must(err)
		p.must(p.engine.StartContainer(t.Context(), made))
		return made
	}
	other := maps.Clone(ours.Config.Labels)
	other["dev.sandpit.server"] = "zzzzzzzzzz99"
	handedOn := maps.Clone(ours.Config.Labels)
	handedOn["dev.sandpit.of"] = "sha256:" + strings.Repeat("0", 64)
	bad := maps.Clone(ours.Config.Labels)
	bad["dev.sandpit.sandbox"] = "../../etc"
	fresh := maps.Clone(ours.Config.Labels)
	fresh["dev.sandpit.sandbox"] = string(sandbox.NewID())
	fresh["dev.sandpit.of"] = ""
	strangers := map[string]string{
		"of another server": make("stranger-a", ours.Image, other), "of an image of ours": make("stranger-b", ours.Image, handedOn),
		"with an id that is a path": make("stranger-c", ours.Image, bad), "with half of the labels": make("stranger-d", ours.Image, fresh),
		"with all labels": make("stranger-e", ours.Image, ours.Config.Labels),
	}
	if ids := p.ids(); !slices.Equal(ids, []sandbox.ID{spec.ID}) {
		t.Errorf("listed are %v, want %s alone", ids, spec.ID)
	}
	for _, what := range []string{string(sandbox.ID(fresh["dev.sandpit.sandbox"])), "../../etc"} {
		if _, err := p.driver.Open(t.Context(), runtime.Handle{ID: sandbox.ID(what)}); err == nil {
			t.Errorf("%s is a sandbox", what)
		}
	}
	// The next server finds ours, and not the copy.
	p.must(p.driver.Close())
	p.driver = open(t, p.host, p.dir, p.namespace)
	i, err := p.driver.Open(t.Context(), runtime.Handle{ID: spec.ID})
	p.must(err)
	if got := p.run(i, agent.Command{Shell: "hostname"}); got != "box\n" {
		t.Errorf("the sandbox that is found answers %q", got)
	}
	// One that ends is none of ours.
	p.must(p.engine.KillContainer(t.Context(), strangers["with all labels"]))
	if got := p.run(i, agent.Command{Shell: "echo here"}); got != "here\n" {
		t.Errorf("after a stranger's end: %q", got)
	}
	p.must(i.Remove(t.Context()))
	for what, id := range strangers {
		if _, err := p.engine.InspectContainer(t.Context(), id); err != nil {
			t.Errorf("the container %s is gone: %v", what, err)
		}
	}
	if ids := p.ids(); slices.Contains(ids, spec.ID) && len(ids) > 1 {
		t.Errorf("listed are %v", ids)
	}
}

// wait returns why it went down.
func (p *place) wait(i runtime.Instance) runtime.Exit {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	e, err := i.Wait(ctx)
	p.must(err)
	return e
}

func (p *place) wantDown(i runtime.Instance, cause sandbox.Cause, words string) {
	p.t.Helper()
	if e := p.wait(i); e.Cause != cause || !strings.Contains(e.Detail, words) {
		p.t.Errorf("it ended by %+v, want %s with %q", e, cause, words)
	}
	_, err := i.Dial(p.t.Context())
	if fault.Of(err) != fault.State {
		p.t.Errorf("Dial of what is down: %v", err)
	}
}

// What somebody does to a container by hand is told as it is, and the sandbox goes on where it can.
func otherHands(t *testing.T, p *place) {
	ctx := t.Context()
	t.Run("Killed", func(t *testing.T) {
		i, spec, id := p.create()
		p.run(i, agent.Command{Shell: "echo kept > file"})
		p.must(p.engine.KillContainer(ctx, id))
		p.wantDown(i, sandbox.CauseKilled, "exit code 137")
		p.must(i.Start(ctx, spec))
		if got := p.run(i, agent.Command{Shell: "cat file"}); got != "kept\n" {
			t.Errorf("after its next start: %q", got)
		}
		p.must(i.Remove(ctx))
	})
	t.Run("Stopped", func(t *testing.T) {
		i, _, id := p.create()
		p.must(p.engine.StopContainer(ctx, id, time.Second))
		p.wantDown(i, sandbox.CauseKilled, "exit code 137")
		p.must(i.Remove(ctx))
	})
	t.Run("Removed", func(t *testing.T) {
		i, spec, id := p.create()
		p.must(p.engine.RemoveContainer(ctx, id))
		p.wantDown(i, sandbox.CauseKilled, "")
		if err := i.Start(ctx, spec); fault.Of(err) != fault.NotFound || fault.As(err).Remedy == "" {
			t.Errorf("Start without a container: %v", err)
		}
		p.must(i.Stop(ctx, 0))
		p.must(i.Remove(ctx))
	})
	t.Run("Renamed", func(t *testing.T) {
		i, spec, id := p.create()
		p.must(p.engine.RenameContainer(ctx, id, "another-name"))
		p.must(p.driver.Close())
		p.driver = open(t, p.host, p.dir, p.namespace)
		i, err := p.driver.Open(ctx, i.Handle())
		p.must(err)
		if got := p.run(i, agent.Command{Shell: "echo here"}); got != "here\n" {
			t.Errorf("got %q", got)
		}
		if _, err := p.driver.Create(ctx, spec); fault.Of(err) != fault.Exists {
			t.Errorf("another of its id: %v", err)
		}
		p.must(i.Remove(ctx))
	})
	t.Run("Paused", func(t *testing.T) {
		i, _, id := p.create()
		p.must(p.engine.PauseContainer(ctx, id))
		for {
			_, err := i.Dial(ctx)
			if fault.Of(err) == fault.Unavailable && strings.Contains(err.Error(), "somebody paused") {
				break
			}
			p.must(ctx.Err())
		}
		if i.(runtime.Pauser).Paused() {
			t.Error("it says that Pause paused it")
		}
		p.must(i.(runtime.Pauser).Resume(ctx))
		if got := p.run(i, agent.Command{Shell: "echo here"}); got != "here\n" {
			t.Errorf("got %q", got)
		}
		p.must(p.engine.PauseContainer(ctx, id))
		p.must(i.Stop(ctx, 0))
		p.must(i.Remove(ctx))
	})
	t.Run("ExecedInto", func(t *testing.T) {
		i, spec, id := p.create()
		// Who may use the Engine is root inside. Without the key the agent says nothing to it, and what it leaves running ends with the sandbox.
		nc, err := p.engine.Exec(ctx, id, "sh", "-c", `echo of-root > /workspace/hand; sleep 4711 >/dev/null 2>&1 & python3 -c '
import socket
s = socket.socket(socket.AF_UNIX); s.connect("/.sandpit/run/agent.sock"); s.sendall(b"\0" * 4096); s.settimeout(60)
got = b""
try:
    while (b := s.recv(4096)): got += b
except OSError: pass
print(len(got) < 256)'`)
		p.must(err)
		said, err := io.ReadAll(nc)
		if p.must(errors.Join(err, nc.Close())); string(said) != "True\n" {
			t.Errorf("the agent said to a stranger %q", said)
		}
		if got := p.run(i, agent.Command{Shell: "cat hand; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 4711'"}); !strings.HasPrefix(got, "of-root\n") || got == "of-root\n0\n" {
			t.Errorf("it has %q", got)
		}
		p.must(i.Stop(ctx, 0))
		p.must(i.Start(ctx, spec))
		if got := p.run(i, agent.Command{Shell: "cat hand; for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; done 2>/dev/null | grep -c '^sleep 47'"}); got != "of-root\n0\n" {
			t.Errorf("after its next start it has %q", got)
		}
		p.must(i.Remove(ctx))
	})
	t.Run("StartedWithoutUs", func(t *testing.T) {
		i, spec, id := p.create()
		p.run(i, agent.Command{Shell: "true"}) // its agent has read what it was given, and removed it
		p.must(i.Stop(ctx, 0))
		p.must(p.engine.StartContainer(ctx, id)) // its agent has nothing to read, and ends
		for late := time.After(2 * time.Minute); ; {
			c, err := p.engine.InspectContainer(ctx, id)
			p.must(err)
			if !c.State.Running {
				break
			}
			select {
			case <-late:
				t.Fatalf("the Engine says that it runs: %+v", c.State)
			case <-time.After(10 * time.Millisecond):
			}
		}
		p.must(i.Start(ctx, spec))
		if got := p.run(i, agent.Command{Shell: "echo here"}); got != "here\n" {
			t.Errorf("got %q", got)
		}
		p.must(i.Remove(ctx))
	})
}

// Where commands leave no process over, the agent needs no more of them: a thread that it cannot have would
// be its end, and that of the sandbox.
func noProcessLeft(t *testing.T, p *place) {
	i, spec, _ := p.create()
	client := agent.NewClient(i.Dial)
	// The program keeps forking, and takes every process that becomes free.
	full, err := client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Argv: []string{"python3", "-c", forkAll}})
	p.must(err)
	defer full.Close()
	if f, err := full.Next(t.Context()); err != nil || string(f.Data) != "full\n" {
		t.Fatalf("got %q, %v", f.Data, err)
	}
	big := bytes.Repeat([]byte("x"), 1<<20)
	for range 3 {
		var calls sync.WaitGroup
		for n := range 32 {
			calls.Go(func() {
				name := fmt.Sprintf("/workspace/%d", n)
				if _, _, err := client.WriteFile(t.Context(), name, bytes.NewReader(big), sandbox.WriteFileOptions{}); err != nil {
					t.Errorf("write: %v", err)
				}
			})
		}
		calls.Wait()
	}
	if _, err := client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Argv: []string{"true"}}); fault.Of(err) != fault.Exhausted || !strings.Contains(err.Error(), "limit of processes") {
		t.Errorf("a command for which there is no process: %v", err)
	}
	p.must(i.Stop(t.Context(), 0))
	p.must(i.Start(t.Context(), spec))
	if got := p.run(i, agent.Command{Shell: "echo here"}); got != "here\n" {
		t.Errorf("got %q", got)
	}
	p.must(i.Remove(t.Context()))
}

const forkAll = `
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(300)
    except OSError:
        break
print("full", flush=True)
while True:
    try:
        if os.fork() == 0:
            time.sleep(300)
    except OSError:
        time.sleep(0.002)
`

// An Engine that ends takes its containers down by the host, whatever the server knows then, and start brings them back.
func engineEnds(t *testing.T, p *place) {
	ctx := t.Context()
	i, spec, _ := p.create()
	p.run(i, agent.Command{Shell: "echo kept > file; sync"})
	gone, _, _ := p.create()
	stopped, _, _ := p.create()
	p.must(stopped.Stop(ctx, 0))

	p.host.Stop()
	if _, err := p.driver.List(ctx); fault.Of(err) != fault.Unavailable {
		t.Errorf("List without an Engine: %v", err)
	}
	if _, err := p.driver.Create(ctx, p.spec()); fault.Of(err) != fault.Unavailable {
		t.Errorf("Create without an Engine: %v", err)
	}
	if err := gone.Remove(ctx); fault.Of(err) != fault.Unavailable {
		t.Errorf("Remove without an Engine: %v", err)
	}
	p.wantDown(i, sandbox.CauseHost, "its Engine ended") // before there is one again
	if err := i.Start(ctx, spec); fault.Of(err) != fault.Unavailable {
		t.Errorf("Start without an Engine: %v", err)
	}
	p.host.Start()
	p.must(i.Start(ctx, spec))
	if got := p.run(i, agent.Command{Shell: "cat file"}); got != "kept\n" {
		t.Errorf("after its next start: %q", got)
	}
	p.must(gone.Remove(ctx))

	// A server that starts after it says the same.
	p.must(p.driver.Close())
	p.host.Stop()
	p.host.Start()
	p.driver = open(t, p.host, p.dir, p.namespace)
	i, err := p.driver.Open(ctx, i.Handle())
	p.must(err)
	p.wantDown(i, sandbox.CauseHost, "the Engine says")
	if s, err := p.driver.Open(ctx, stopped.Handle()); err != nil || p.wait(s).Cause != sandbox.CauseStopped {
		t.Errorf("one that was stopped before: %v", err)
	}
}

// The agent's socket lies where root inside writes: whatever lies there in its place is not followed.
func socketsPlace(t *testing.T, p *place) {
	i, spec, _ := p.create()
	ctx := t.Context()
	for name, attack := range map[string]string{
		"ALinkToTheEngine": "rm /.sandpit/run/agent.sock; ln -s " + p.host.Socket() + " /.sandpit/run/agent.sock",
		"AFile":            "rm /.sandpit/run/agent.sock; echo x > /.sandpit/run/agent.sock",
		"APipe":            "rm /.sandpit/run/agent.sock; mkfifo /.sandpit/run/agent.sock",
	} {
		t.Run(name, func(t *testing.T) {
			p.run(i, agent.Command{User: "root", Shell: attack})
			if _, err := i.Dial(ctx); fault.Of(err) != fault.Unavailable {
				t.Errorf("Dial: %v", err)
			}
			p.must(i.Stop(ctx, 0))
			p.must(i.Start(ctx, spec))
		})
	}
	// What the agent will read is the server's alone.
	secret := filepath.Join(t.TempDir(), "secret")
	p.must(os.WriteFile(secret, []byte("the host's"), 0o600))
	p.run(i, agent.Command{User: "root", Shell: "ln -s " + secret + " /.sandpit/run/config.json; ln -s ../key /.sandpit/run/config.json.new; mkdir /.sandpit/run/deep"})
	p.must(i.Stop(ctx, 0))
	p.must(i.Start(ctx, spec))
	if b, err := os.ReadFile(secret); err != nil || string(b) != "the host's" {
		t.Errorf("a file of the host is now %q (%v)", b, err)
	}
	if got := p.run(i, agent.Command{Shell: "echo here"}); got != "here\n" {
		t.Errorf("got %q", got)
	}
	p.must(i.Remove(ctx))
}

// What the runtime cannot do is refused before anything is made.
func refusals(t *testing.T, p *place) {
	if err := p.driver.CreateVolume(t.Context(), sandbox.NewID(), 1<<20); fault.Of(err) != fault.Unsupported || fault.As(err).Remedy == "" {
		t.Errorf("a volume with a limit: %v", err)
	}
	for _, path := range []string{"/.sandpit", "/.sandpit/agent", "/.sandpit/run/x"} { // where the agent is
		spec := p.spec()
		spec.Mounts = []sandbox.Mount{{Volume: sandbox.NewID(), Path: path}}
		if _, err := p.driver.Create(t.Context(), spec); fault.Of(err) != fault.Invalid || fault.As(err).Remedy == "" {
			t.Errorf("a volume at %s: %v", path, err)
		}
	}
	elsewhere := openWith(t, docker.Options{Dir: t.TempDir(), Namespace: newNamespace(), Engine: engineapi.Environment{Host: "unix://" + p.host.Socket()}, Stream: true})
	spec := p.spec()
	spec.Mounts = []sandbox.Mount{{Volume: sandbox.NewID(), Path: "/mnt/v", Sub: "part"}}
	want := fault.Unsupported
	if p.engine.MountsParts() {
		want = fault.NotFound // there is no such volume
	}
	if _, err := elsewhere.Create(t.Context(), spec); fault.Of(err) != want || want == fault.Unsupported && fault.As(err).Remedy == "" {
		t.Errorf("a directory of a volume over streams: %v, want %s", err, want)
	}
	p.must(elsewhere.Close())
	spec = p.spec()
	spec.Image.Digest = ""
	if _, err := p.driver.Create(t.Context(), spec); fault.Of(err) != fault.Invalid {
		t.Errorf("an image without a digest: %v", err)
	}
	// An image that merely has the name of ours is not taken for it.
	spec = p.spec()
	spec.Image.Digest = "sha256:" + strings.Repeat("ab", 32)
	spec.Image.Root = filepath.Join(t.TempDir(), "none")
	if _, err := p.driver.Create(t.Context(), spec); err == nil {
		t.Error("a root that is not there became an image")
	}
	if ids := p.ids(); len(ids) != 0 {
		t.Errorf("left are %v", ids)
	}
	list, err := p.engine.ListContainers(t.Context(), "dev.sandpit.server="+p.namespace)
	p.must(err)
	if len(list) != 0 {
		b, _ := json.Marshal(list) //nolint:errchkjson // for people
		t.Errorf("left are %s", b)
	}
}
