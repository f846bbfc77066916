// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// snapshotter is the driver as what Probe claims that it is.
func (s *suite) snapshotter(t *testing.T) runtime.Snapshotter {
	t.Helper()
	d, ok := s.driver.(runtime.Snapshotter)
	if !ok {
		t.Fatal("Probe claims snapshots and the driver is no runtime.Snapshotter")
	}
	return d
}

// keep takes a snapshot that must succeed.
func (s *suite) keep(t *testing.T, b *box) sandbox.ID {
	t.Helper()
	id := sandbox.NewID()
	if _, err := s.snapshotter(t).Snapshot(t.Context(), b.Handle().ID, id); err != nil {
		t.Fatalf("Snapshot: %v", err)
	}
	return id
}

// from is a spec of a sandbox whose disk is a copy of a snapshot's.
func (s *suite) from(id sandbox.ID) runtime.Spec {
	spec := s.spec()
	spec.From = id
	return spec
}

// rollBack exchanges the disk of an instance, which is up before and after.
func (s *suite) rollBack(t *testing.T, b *box, spec runtime.Spec, to sandbox.ID) {
	t.Helper()
	err := b.Stop(t.Context(), 0)
	if err == nil {
		err = s.snapshotter(t).Rollback(t.Context(), spec.ID, to, spec.Limits)
	}
	if err == nil {
		err = b.Start(t.Context(), spec)
	}
	if err != nil {
		t.Fatalf("roll back: %v", err)
	}
}

// wantKept fails unless the driver lists the snapshot, or does not.
func (s *suite) wantKept(t *testing.T, id sandbox.ID, want bool) {
	t.Helper()
	ids, err := s.snapshotter(t).Snapshots(t.Context())
	if err != nil || slices.Contains(ids, id) != want {
		t.Errorf("the list of snapshots is %v, %v; want %s in it: %v", ids, err, id, want)
	}
}

func snapshots(t *testing.T, s *suite) {
	s.need(t, runtime.Snapshots)
	t.Run("OneIsOfItsInstant", func(t *testing.T) { snapshotOnce(t, s) })
	t.Run("TheWholeTreeIsKept", func(t *testing.T) { snapshotTree(t, s) })
	t.Run("AWriterIsCaughtBetweenTwoWrites", func(t *testing.T) { snapshotWriter(t, s) })
	t.Run("OfWhatIsPausedOrDown", func(t *testing.T) { snapshotStill(t, s) })
	t.Run("AllOrNothing", func(t *testing.T) { snapshotErrors(t, s) })
	t.Run("LivesAreSeparate", func(t *testing.T) { snapshotLineage(t, s) })
	t.Run("Rollback", func(t *testing.T) { rollbacks(t, s) })
	t.Run("Restore", func(t *testing.T) { restores(t, s) })
	t.Run("ForkAtOnce", func(t *testing.T) { forksAtOnce(t, s) })
	t.Run("ManyForksAtOnce", func(t *testing.T) { manyForks(t, s) })
	t.Run("TheLimitOfAForkIsItsOwn", func(t *testing.T) { forkLimit(t, s) })
	t.Run("TheyOutliveTheServer", func(t *testing.T) { snapshotRestart(t, s) })
	t.Run("Diff", func(t *testing.T) { diffs(t, s) })
	t.Run("Archive", func(t *testing.T) { archives(t, s) })
	if _, ok := s.driver.(runtime.Viewer); ok {
		t.Run("View", func(t *testing.T) { views(t, s) })
	}
}

func snapshotOnce(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	b.ok("echo one > file; mkdir d; echo x > d/gone; echo of the temp > /tmp/t 2>/dev/null; (for i in $(seq 300); do echo > alive; sleep 0.1; done) >/dev/null 2>&1 &")
	id := sandbox.NewID()
	kept, err := s.snapshotter(t).Snapshot(t.Context(), b.Handle().ID, id)
	if err != nil {
		t.Fatal(err)
	}
	if kept.SizeBytes < -1 {
		t.Errorf("it says that it holds %d bytes", kept.SizeBytes)
	}
	s.wantKept(t, id, true)
	b.ok("echo two > file; rm -r d; echo new > new")
	fork := s.create(t, s.from(id))
	if got := fork.ok("cat file d/gone; ls"); !strings.HasPrefix(got, "one\nx\n") || strings.Contains(got, "new") {
		t.Errorf("the fork has %q", got)
	}
	if got := b.ok("cat file; ls -d d new 2>/dev/null || :"); got != "two\nnew" {
		t.Errorf("the parent has %q", got)
	}
	if s.has(t, runtime.KillTree) {
		if got := fork.ok("a=$(stat -c %Y.%y alive); sleep 0.3; [ \"$a\" = \"$(stat -c %Y.%y alive)\" ] && echo nobody writes"); got != "nobody writes" {
			t.Error("a process of the parent's runs in the fork")
		}
	}
	fork.ok("echo three > file")
	if got := b.ok("cat file") + s.create(t, s.from(id)).ok("cat file"); got != "twoone" {
		t.Errorf("after a write in the fork, parent and another fork have %q", got)
	}
}

//go:embed tree.py
var treeProgram string

// tree runs the suite's program in a sandbox; with its root where it has one.
func (b *box) tree(root bool, args string) string {
	b.t.Helper()
	const at = "tree.py"
	if _, _, err := b.agent.WriteFile(b.t.Context(), "/tmp/"+at, strings.NewReader(treeProgram), sandbox.WriteFileOptions{Size: int64(len(treeProgram))}); err != nil {
		b.t.Fatal(err)
	}
	c := agent.Command{Shell: "python3 -S -E ../tmp/" + at + " " + args} // beside the workspace, also where "/" is not the sandbox's
	if root {
		c.User = "root"
	}
	o := b.exec(c)
	if o.ExitCode != 0 {
		b.t.Fatalf("tree.py %s: %+v", args, o)
	}
	return o.Stdout
}

// describe returns all there is to know of the tree that grow grew.
func (s *suite) describe(t *testing.T, b *box) string {
	t.Helper()
	how := "scan"
	if s.Coarse != "" {
		how = "coarse"
	}
	if s.Disk != nil && s.has(t, runtime.RootUser) {
		return b.tree(true, how+" "+strings.Join(s.Disk, " "))
	}
	if s.has(t, runtime.RootUser) {
		return b.tree(true, how+" /workspace /etc /usr/share/doc /opt /srv")
	}
	return b.tree(false, how+" .")
}

// grow makes one of everything: as the user, and as root changes of the image.
func (s *suite) grow(t *testing.T, b *box) {
	t.Helper()
	b.tree(false, "grow grown")
	if !s.has(t, runtime.RootUser) {
		return
	}
	if s.Disk != nil {
		for n, dir := range s.Disk {
			b.tree(true, fmt.Sprintf("grow %s/grown%d", dir, n))
		}
		return
	}
	b.tree(true, "grow /opt/grown")
	// What the image has: a file and a directory that are deleted, a directory that is
	// replaced, a changed file, a changed mode, and a file moved away.
	if o := b.asRoot(`set -e
rm /etc/hostname 2>/dev/null || :; rm /etc/shells /etc/debian_version
rm -r /usr/share/doc/bash; rm -r /usr/share/doc/dash && mkdir /usr/share/doc/dash && echo other > /usr/share/doc/dash/other
echo changed >> /etc/profile; chmod 0750 /etc/skel; chown 1000:1000 /etc/issue; mv /etc/issue.net /srv/moved
ln /etc/passwd /etc/passwd.link; rm -r /var/mail && ln -s /srv /var/mail; echo > /srv/plain; chown 12:34 /srv/plain`); o.ExitCode != 0 {
		t.Fatalf("%+v", o)
	}
}

func snapshotTree(t *testing.T, s *suite) {
	spec := s.spec()
	b := s.create(t, spec)
	s.grow(t, b)
	if s.Coarse != "" {
		t.Logf("compared without what snapshots lose here: %s", s.Coarse)
	}
	want := s.describe(t, b)
	id := s.keep(t, b)
	compare := func(what string, got *box) {
		t.Helper()
		if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(s.describe(t, got), "\n")); d != "" {
			t.Errorf("%s differs from what was kept (-want +got)\n%s", what, d)
		}
	}
	fork := s.create(t, s.from(id))
	compare("a fork", fork)
	compare("a fork of a fork", s.create(t, s.from(s.keep(t, fork))))
	b.ok("rm -rf grown; echo other > other")
	s.rollBack(t, b, spec, id)
	compare("what was rolled back", b)
	if err := b.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	compare("what was rolled back, after a start", b)
}

// steps is a program that writes its step's number over each of its files in turn,
// whole: at any instant the files hold one number, and from some file on the one before.
const steps = `exec python3 -u -c '
import os
files = [os.open("f%02d" % n, os.O_RDWR | os.O_CREAT) for n in range(24)]
log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
print("begun", flush=True)
step = 0
while True:
    step += 1
    for f in files:
        os.pwrite(f, (b"%09d " % step) * 3000, 0)
    os.write(log, b"%09d\n" % step)
'`

const checkSteps = `python3 -c '
import glob, sys
all = []
for name in sorted(glob.glob("f[0-9]*")):
    words = set(open(name).read().split())
    if len(words) > 1: sys.exit(name + " holds half of a write: %s" % words)
    all.append(int(words.pop()) if words else 0)
if any(a < b for a, b in zip(all, all[1:])) or all[0] - all[-1] > 1: sys.exit("torn: %s" % all)
log = open("log").read().split()
if len(log) not in (all[-1], all[-1] - 1) or log != ["%09d" % (n + 1) for n in range(len(log))]: sys.exit("the log has %d lines at %s" % (len(log), all))
print(all[0])'`

func snapshotWriter(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	b.begin(agent.Command{Shell: steps, Timeout: 10 * time.Minute}, "begun\n")
	var last string
	for n := range s.rounds(t, 12, 4) {
		id := s.keep(t, b)
		fork := s.create(t, s.from(id))
		got := fork.ok(checkSteps)
		if n > 0 && got == last {
			t.Errorf("the writer did not go on after snapshot %d: it stands at %s", n, got)
		}
		last = got
		if err := fork.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func snapshotStill(t *testing.T, s *suite) {
	spec := s.spec()
	b := s.create(t, spec)
	if s.has(t, runtime.Pause) {
		b.ok("echo paused > file")
		b.pause()
		id := s.keep(t, b)
		if !b.pauser().Paused() {
			t.Error("a snapshot resumed it")
		}
		b.silent("after a snapshot of it")
		b.resume()
		b.ok("echo resumed > file")
		if got := s.create(t, s.from(id)).ok("cat file"); got != "paused" {
			t.Errorf("of a paused one: got %q", got)
		}
	}
	b.ok("echo down > file")
	if err := b.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	id := s.keep(t, b)
	if got := s.create(t, s.from(id)).ok("cat file"); got != "down" {
		t.Errorf("of one that is down: got %q", got)
	}
	if err := b.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := b.ok("cat file"); got != "down" {
		t.Errorf("the one that was down has %q", got)
	}
}

func snapshotErrors(t *testing.T, s *suite) {
	d := s.snapshotter(t)
	spec := s.spec()
	b := s.create(t, spec)
	b.ok("echo kept > file")
	id := s.keep(t, b)
	b.ok("echo later > file")
	_, err := d.Snapshot(t.Context(), spec.ID, id)
	wantCode(t, "Snapshot with a taken id", err, fault.Exists)
	if got := s.create(t, s.from(id)).ok("cat file"); got != "kept" {
		t.Errorf("a snapshot that was refused changed the one before: %q", got)
	}
	none := sandbox.NewID()
	_, err = d.Snapshot(t.Context(), sandbox.NewID(), none)
	wantCode(t, "Snapshot of nothing", err, fault.NotFound)
	s.wantKept(t, none, false)
	for _, bad := range []sandbox.ID{"", "../x", "a/b", ".", "snapshots"} {
		_, err := d.Snapshot(t.Context(), spec.ID, bad)
		wantCode(t, fmt.Sprintf("Snapshot as %q", bad), err, fault.Invalid)
	}
	lost := s.from(none)
	_, err = s.driver.Create(t.Context(), lost)
	wantCode(t, "Create from a snapshot that is not there", err, fault.NotFound)
	s.wantGone(t, lost.ID)
	// An instance is no snapshot: its disk may be half of what is being written.
	lost = s.from(spec.ID)
	_, err = s.driver.Create(t.Context(), lost)
	wantCode(t, "Create from an instance", err, fault.NotFound)
	s.wantGone(t, lost.ID)
	wantCode(t, "Export of an instance", d.Export(t.Context(), spec.ID, io.Discard), fault.NotFound)
	wantCode(t, "Rollback of one that is up", d.Rollback(t.Context(), spec.ID, id, spec.Limits), fault.State)
	if err := b.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "Rollback to a snapshot that is not there", d.Rollback(t.Context(), spec.ID, none, spec.Limits), fault.NotFound)
	wantCode(t, "Rollback to itself", d.Rollback(t.Context(), spec.ID, spec.ID, spec.Limits), fault.NotFound)
	wantCode(t, "Rollback of nothing", d.Rollback(t.Context(), none, id, spec.Limits), fault.NotFound)
	if err := b.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := b.ok("cat file"); got != "later" {
		t.Errorf("after rollbacks that failed: %q", got)
	}
	for range 2 {
		if err := d.RemoveSnapshot(t.Context(), id); err != nil {
			t.Errorf("RemoveSnapshot: %v", err)
		}
	}
	s.wantKept(t, id, false)
	_, err = s.driver.Create(t.Context(), s.from(id))
	wantCode(t, "Create from a snapshot that was removed", err, fault.NotFound)
}

// snapshotLineage removes each generation under the next.
func snapshotLineage(t *testing.T, s *suite) {
	d := s.snapshotter(t)
	b := s.create(t, s.spec())
	b.ok("echo 0 > generation; head -c 1M /dev/urandom > blob; sha256sum blob > sum")
	for n := 1; n <= 4; n++ {
		id := s.keep(t, b)
		if err := b.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		spec := s.from(id)
		fork := s.create(t, spec)
		if err := d.RemoveSnapshot(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := fork.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := fork.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		fork.ok(fmt.Sprintf("sha256sum -c sum && [ $(cat generation) = %d ] && echo %d > generation", n-1, n))
		b = fork
	}
}

func manyForks(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	b.ok("echo kept > file")
	id := s.keep(t, b)
	var wg sync.WaitGroup
	for n := range s.rounds(t, 24, 10) {
		wg.Go(func() {
			i, err := s.driver.Create(t.Context(), s.from(id))
			if err != nil {
				t.Errorf("Create: %v", err)
				return
			}
			defer func() {
				if err := i.Remove(t.Context()); err != nil {
					t.Errorf("Remove: %v", err)
				}
			}()
			fork := &box{t: t, Instance: i, agent: newAgent(i)}
			o, err := fork.tryExec(t.Context(), agent.Command{Shell: fmt.Sprintf("cat file; echo %d > file; cat file", n)})
			if want := fmt.Sprintf("kept\n%d\n", n); err != nil || o.Stdout != want {
				t.Errorf("got %+v, %v", o, err)
			}
		})
	}
	for range 4 {
		wg.Go(func() {
			other := sandbox.NewID()
			if _, err := s.snapshotter(t).Snapshot(t.Context(), b.Handle().ID, other); err != nil {
				t.Errorf("Snapshot: %v", err)
			}
			if err := s.snapshotter(t).RemoveSnapshot(t.Context(), other); err != nil {
				t.Errorf("RemoveSnapshot: %v", err)
			}
		})
	}
	wg.Wait()
	if got := b.ok("cat file"); got != "kept" {
		t.Errorf("the parent has %q", got)
	}
}

func forkLimit(t *testing.T, s *suite) {
	s.need(t, runtime.LimitDisk)
	b := s.create(t, s.spec())
	b.ok("head -c 20M /dev/urandom > blob")
	spec := s.from(s.keep(t, b))
	spec.Limits.DiskMB = 64
	fork := s.create(t, spec)
	if o := fork.run("head -c 100M /dev/urandom > big && sync big"); o.ExitCode == 0 || !full(o) {
		t.Errorf("100 MiB within 64: %+v", o)
	}
	b.ok("head -c 100M /dev/urandom > big && sync big") // the parent's is its own
}

func snapshotRestart(t *testing.T, s *suite) {
	s.need(t, runtime.Reopen)
	spec := s.spec()
	b := s.createFor(t, spec)
	b.ok("echo kept > file")
	id := s.keep(t, b)
	b.ok("echo later > file")
	b = s.reopen(t, b)
	s.wantKept(t, id, true)
	if got := s.create(t, s.from(id)).ok("cat file"); got != "kept" {
		t.Errorf("a fork has %q", got)
	}
	s.rollBack(t, b, spec, id)
	if got := b.ok("cat file"); got != "kept" {
		t.Errorf("after a rollback: %q", got)
	}
}
