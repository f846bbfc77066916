// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// hurriedClock is the machine's, and goes a thousand times as fast while it hurries: bounds of calls that hang are passed soon,
// and those of calls that are answered are as long as they are. The zero value is one.
type hurriedClock struct {
	mu      sync.Mutex
	hurries bool
	pending map[*hurriedTimer]struct{}
}

type hurriedTimer struct {
	clock *hurriedClock
	real  *time.Timer
	due   time.Duration
}

const hurriedMost = 20 * time.Millisecond // of a bound, beside its thousandth

// lasts returns how long a bound lasts now. mu is held.
func (c *hurriedClock) lasts(d time.Duration) time.Duration {
	if c.hurries {
		return min(d, hurriedMost+d/1000)
	}
	return d
}

func (c *hurriedClock) AfterFunc(d time.Duration, f func()) engineapi.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &hurriedTimer{clock: c, due: d}
	t.real = time.AfterFunc(c.lasts(d), func() {
		c.mu.Lock()
		delete(c.pending, t)
		c.mu.Unlock()
		f()
	})
	if c.pending == nil {
		c.pending = map[*hurriedTimer]struct{}{}
	}
	c.pending[t] = struct{}{}
	return t
}

func (c *hurriedClock) hurry(does bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hurries = does
	for t := range c.pending {
		t.real.Reset(c.lasts(t.due))
	}
}

func (t *hurriedTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	delete(t.clock.pending, t)
	return t.real.Stop()
}

func (t *hurriedTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.due = d
	t.clock.pending[t] = struct{}{}
	return t.real.Reset(t.clock.lasts(d))
}

// shortVerbs are those whose attempts do not each take a commit or a second container.
func shortVerbs() []brokenVerb {
	return slices.DeleteFunc(brokenVerbs(), func(v brokenVerb) bool {
		return slices.Contains([]string{"Snapshot", "Rollback", "RemoveSnapshot"}, v.name)
	})
}

// engineProcess returns the Engine's own process: its containers, and what keeps them, are others.
func engineProcess(t *testing.T, h *dockerdtest.Host) int {
	t.Helper()
	first := strconv.Itoa(h.Engine().PID)
	b, err := os.ReadFile("/proc/" + first + "/task/" + first + "/children")
	if err != nil {
		t.Fatal(err)
	}
	for child := range strings.FieldsSeq(string(b)) {
		name, err := os.ReadFile("/proc/" + child + "/comm")
		if err == nil && strings.TrimSpace(string(name)) == "dockerd" {
			pid, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("none of the processes %s is the Engine", b)
	return 0
}

// An Engine whose process stands still takes connections and requests, and answers none. When it goes on it does what it was
// asked, though nobody waits for that any more.
func standsStill(t *testing.T, p *place) {
	var clock hurriedClock
	options := func() docker.Options {
		return docker.Clocked(docker.Options{Dir: p.dir, Namespace: p.namespace, Engine: engineapi.Environment{Host: "unix://" + p.host.Socket()}}, &clock)
	}
	p.must(p.driver.Close())
	p.driver = openWith(t, options())
	up, spec, _ := p.create()
	p.run(up, agent.Command{Shell: "echo kept > file"})
	paused, _, _ := p.create()
	p.must(paused.(runtime.Pauser).Pause(t.Context()))
	down, downSpec, _ := p.create()
	p.must(down.Stop(t.Context(), 0))
	snapshot := p.keep(spec.ID)

	pid := engineProcess(t, p.host)
	p.must(unix.Kill(pid, unix.SIGSTOP))
	goOn := sync.OnceFunc(func() {
		clock.hurry(false)
		p.must(unix.Kill(pid, unix.SIGCONT))
	})
	defer goOn()
	clock.hurry(true)
	ctx := t.Context()
	kind := docker.Clock(docker.Kind{Host: "unix://" + p.host.Socket()}, &clock)
	another := p.spec()
	sum := sha256.Sum256([]byte(p.namespace))
	another.Image = runtime.Image{Name: "another", Digest: "sha256:" + hex.EncodeToString(sum[:]), Root: t.TempDir()}
	for name, verb := range map[string]func() error{
		"Probe":  func() error { _, err := p.driver.Probe(ctx); return err },
		"List":   func() error { _, err := p.driver.List(ctx); return err },
		"Create": func() error { _, err := p.driver.Create(ctx, p.spec()); return err },
		"Load":   func() error { _, err := p.driver.Create(ctx, another); return err },
		"Pull":   func() error { _, err := p.driver.SaveImage(ctx, "127.0.0.1:1/none", nil); return err },
		"Fork": func() error {
			s := p.spec()
			s.From = snapshot
			_, err := p.driver.Create(ctx, s)
			return err
		},
		"Start":       func() error { return down.Start(ctx, downSpec) },
		"Resume":      func() error { return paused.(runtime.Pauser).Resume(ctx) },
		"Use":         func() error { _, err := up.(runtime.Meter).Use(ctx); return err },
		"Snapshot":    func() error { _, err := p.driver.Snapshot(ctx, downSpec.ID, sandbox.NewID()); return err },
		"Rollback":    func() error { return p.driver.Rollback(ctx, downSpec.ID, snapshot, spec.Limits) },
		"Export":      func() error { return p.driver.Export(ctx, snapshot, io.Discard) },
		"Volume":      func() error { return p.driver.CreateVolume(ctx, sandbox.NewID(), 0) },
		"ServerStart": func() error { _, err := docker.Open(ctx, options()); return err },
		"Doctor": func() error {
			_, err := kind.Inspect(ctx, runtime.Place{Dir: p.dir, Namespace: p.namespace}, func(sandbox.ID) string { return "" }, false)
			return err
		},
		"RemoveSnapshot": func() error { return p.driver.RemoveSnapshot(ctx, snapshot) },
	} {
		if err := verb(); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.As(err).Message, " did not ") || fault.As(err).Remedy == "" {
			t.Errorf("%s: it is told as %v (%s), want what the Engine did not do, and what to do", name, err, fault.Of(err))
		}
	}
	p.run(up, agent.Command{Shell: "echo and more >> file"}) // its agent answers
	patient := options()
	patient.Dir, patient.Namespace, patient.Patient = t.TempDir(), newNamespace(), true
	waits := openWith(t, patient)
	defer func() { p.must(waits.Close()) }()

	goOn()
	if got := p.run(up, agent.Command{Shell: "cat file"}); got != "kept\nand more\n" {
		t.Errorf("its file says %q", got)
	}
	if _, err := waits.Probe(ctx); err != nil {
		t.Errorf("a driver that waited for the Engine: %v", err)
	}
	next, _, _ := p.create()
	for _, i := range []runtime.Instance{next, up, paused, down} {
		p.must(i.Remove(ctx))
	}
	// What it did late is found by a list, as by a server's janitor.
	for _, id := range p.ids() {
		i, err := p.driver.Open(ctx, runtime.Handle{ID: id})
		p.must(err)
		p.must(i.Remove(ctx))
	}
	snapshots, err := p.driver.Snapshots(ctx)
	p.must(err)
	for _, id := range snapshots {
		p.must(p.driver.RemoveSnapshot(ctx, id))
	}
	p.must(p.driver.RemoveImage(ctx, another.Image.Digest))
	// And what nobody sees who is not the driver, by the next one that is opened.
	p.must(p.driver.Close())
	p.driver = openWith(t, options())
	list, err := p.engine.ListContainers(ctx, "dev.sandpit.server="+p.namespace)
	p.must(err)
	if got := p.images(); len(list) != 0 || len(got) != 0 {
		t.Errorf("left are the containers %+v and the images %v", list, got)
	}
}
