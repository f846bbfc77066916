// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// A sandbox writes as much as its limit says, on an Engine whose layers can have one, whatever became of its disk.
func TestLimitsOfDisks(t *testing.T) {
	skiptest.WithShort(t, "an Engine makes containers")
	disksAreLimited(t, dockerdtest.NewOn(t, 2<<30, "btrfs", ""))
}

// The same on xfs, whose programs may have to be fetched.
func TestSoakLimitsOfDisksOnXFS(t *testing.T) {
	if os.Getenv("SANDPIT_SOAK") != "1" {
		t.Skip("set SANDPIT_SOAK=1 to have Engines on xfs, too")
	}
	t.Run("WithoutQuotas", func(t *testing.T) { limitsAreRefused(t, dockerdtest.NewOn(t, 512<<20, "xfs", ""), "pquota") })
	t.Run("WithQuotas", func(t *testing.T) {
		if _, err := os.Stat("/proc/fs/xfs/xqm"); err != nil { // the module is there, since one was mounted
			t.Skip("this kernel's xfs has no quotas (CONFIG_XFS_QUOTA)")
		}
		disksAreLimited(t, dockerdtest.NewOn(t, 2<<30, "xfs", "pquota"))
	})
}

// limitsAreRefused is of an Engine that has none: who asks is told why.
func limitsAreRefused(t *testing.T, h *dockerdtest.Host, word string) {
	p := newPlace(t, h)
	for range 2 {
		err := p.driver.MayLimitDisk(t.Context())
		if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), word) || fault.As(err).Remedy == "" {
			t.Errorf("it is told as %v (%s)", err, fault.As(err).Remedy)
		}
	}
	can, err := p.driver.Probe(t.Context())
	p.must(err)
	if err := can[runtime.LimitDisk]; !fault.Is(err, fault.Unsupported) {
		t.Errorf("Probe says %v", err)
	}
	p.image = p.shell()
	i, spec, id := p.create() // the default limit has no effect
	c, err := p.engine.InspectContainer(t.Context(), id)
	p.must(err)
	if label := c.Config.Labels["dev.sandpit.disk"]; label != "" {
		t.Errorf("its label says %q", label)
	}
	p.must(i.Stop(t.Context(), 0))
	spec.Limits.DiskMB = 64
	p.must(i.Start(t.Context(), spec))
	if now := p.container(spec.ID); now != id {
		t.Error("a limit that has no effect made a new container")
	}
	p.must(i.Remove(t.Context()))
	p.nothingLeft()
}

// fillsDisk writes blocks of 64 KiB until one fails, and says how many did not.
const fillsDisk = `exec 2>&1; x=0123456789abcdef; for n in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$x$x; done
n=0; while [ $n -lt 3200 ] && echo "$x" >> fill; do n=$((n+1)); done; echo; echo blocks $n`

func (p *place) fill(i runtime.Instance) (blocks int, said string) {
	p.t.Helper()
	said = p.run(i, agent.Command{Shell: fillsDisk})
	_, n, _ := strings.Cut(said, "\nblocks ")
	blocks, err := strconv.Atoi(strings.TrimSpace(n))
	if err != nil {
		p.t.Fatalf("it says %q", said)
	}
	return blocks, said
}

// empty removes what fill wrote.
func (p *place) empty(i runtime.Instance) {
	p.t.Helper()
	for _, name := range []string{"fill", "more"} {
		if err := agent.NewClient(i.Dial).Remove(p.t.Context(), "/workspace/"+name, sandbox.RemoveFileOptions{}); err != nil && !fault.Is(err, fault.NotFound) {
			p.t.Fatal(err)
		}
	}
}

// wantFull fills a disk that takes MiB, and what the image may take on top of that.
func (p *place) wantFull(what string, i runtime.Instance, least, most int) {
	p.t.Helper()
	n, said := p.fill(i)
	if n < least*16 || n > most*16 || !strings.Contains(said, "I/O error") { // as that shell tells it
		p.t.Errorf("%s: %d blocks of 64 KiB went into %d to %d MiB: %q", what, n, least, most, said)
	}
	_, _, err := agent.NewClient(i.Dial).WriteFile(p.t.Context(), "/workspace/more", strings.NewReader(strings.Repeat("x", 4<<20)), sandbox.WriteFileOptions{Mode: 0o644})
	if !fault.Is(err, fault.Full) || fault.As(err).Disk == "" || fault.As(err).Remedy == "" {
		p.t.Errorf("%s: 4 MiB more are told as %v (%s)", what, err, fault.Of(err))
	}
}

func disksAreLimited(t *testing.T, h *dockerdtest.Host) {
	ctx := t.Context()
	p := newPlace(t, h)
	can, err := p.driver.Probe(ctx)
	p.must(err)
	if err := can[runtime.LimitDisk]; err != nil {
		t.Fatalf("Probe says %v", err)
	}
	p.nothingLeft()
	list, err := p.engine.ListImages(ctx)
	p.must(err)
	if len(list) != 0 {
		t.Errorf("left of the trial are %v", list)
	}
	p.image = p.shell()
	spec := p.spec()
	spec.Limits.DiskMB = 32
	create := func(from sandbox.ID) (runtime.Instance, runtime.Spec) {
		s := spec
		s.ID, s.From = sandbox.NewID(), from
		i, err := p.driver.Create(ctx, s)
		p.must(err)
		return i, s
	}
	i, own := create("")
	other, _ := create("")
	p.run(i, agent.Command{Shell: "echo kept > file"})
	p.wantFull("one of 32 MiB", i, 28, 38)
	if n, said := p.fill(other); n < 28*16 {
		t.Errorf("another one's disk is full, too: %q", said)
	}
	snapshot := p.keep(own.ID)

	// What is full starts again, and is still full.
	p.must(i.Stop(ctx, 0))
	p.must(i.Start(ctx, own))
	p.wantFull("after a start", i, 0, 2)
	if err := i.(runtime.Resizer).Resize(ctx, sandbox.Limits{CPU: 1, MemoryMB: 256, DiskMB: 64, Pids: 64}); !fault.Is(err, fault.Unsupported) || fault.As(err).Remedy == "" {
		t.Errorf("another limit while it runs: %v", err)
	}
	p.must(i.(runtime.Resizer).Resize(ctx, sandbox.Limits{CPU: 1, MemoryMB: 128, DiskMB: 32, Pids: 64}))
	p.empty(i)
	if got := p.run(i, agent.Command{Shell: "echo small > small; read x < small; read y < file; echo $x $y"}); got != "small kept\n" {
		t.Errorf("after room was made it says %q", got)
	}
	p.wantFull("after room was made", i, 28, 38)

	// Another limit holds from the next start on.
	p.must(i.Stop(ctx, 0))
	own.Limits.DiskMB = 64
	p.must(i.Start(ctx, own))
	if got := p.run(i, agent.Command{Shell: "read x < file; echo $x"}); got != "kept\n" {
		t.Errorf("with another limit its file says %q", got)
	}
	p.empty(i)
	p.wantFull("one of 64 MiB", i, 56, 120) // what is of the image by now counts in no layer's
	id := p.container(own.ID)
	p.must(i.Stop(ctx, 0))
	p.must(i.Start(ctx, own))
	if p.container(own.ID) != id {
		t.Error("a start with the limit that it has made a new container")
	}

	// Forks and rollbacks have theirs.
	fork, _ := create(snapshot)
	p.wantFull("a fork", fork, 28, 80)
	p.must(i.Stop(ctx, 0))
	own.Limits.DiskMB = 32
	p.must(p.driver.Rollback(ctx, own.ID, snapshot, own.Limits))
	p.must(i.Start(ctx, own))
	if got := p.run(i, agent.Command{Shell: "read x < file; echo $x"}); got != "kept\n" {
		t.Errorf("after a rollback its file says %q", got)
	}
	p.wantFull("after a rollback", i, 28, 80)

	// A server that is there anew knows the limits of those that are up.
	p.must(p.driver.Close())
	p.driver = openWith(t, docker.Options{Dir: p.dir, Namespace: p.namespace, Engine: engineapi.Environment{Host: "unix://" + h.Socket()}, Stream: true})
	again, err := p.driver.Open(ctx, runtime.Handle{ID: own.ID})
	p.must(err)
	if err := again.(runtime.Resizer).Resize(ctx, sandbox.Limits{CPU: 1, MemoryMB: 256, DiskMB: 64, Pids: 64}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("another limit while it runs, of a server that is there anew: %v", err)
	}

	// What is full and has its agent behind the Engine starts again, too, or says why not and with more room does.
	streamed, ownOf := create("")
	p.wantFull("one over a stream", streamed, 28, 38)
	p.must(streamed.Stop(ctx, 0))
	if err := streamed.Start(ctx, ownOf); err != nil {
		if !fault.Is(err, fault.Full) || fault.As(err).Disk != fault.SandboxDisk {
			t.Errorf("a start of what is full: %v (%s of %q)", err, fault.Of(err), fault.As(err).Disk)
		}
		ownOf.Limits.DiskMB = 64
		p.must(streamed.Start(ctx, ownOf))
	}
	p.empty(streamed)
	for _, one := range []sandbox.ID{own.ID, ownOf.ID} {
		i, err := p.driver.Open(ctx, runtime.Handle{ID: one})
		p.must(err)
		p.must(i.Remove(ctx))
	}
}
