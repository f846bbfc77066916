// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// volumer is the driver as what Probe claims that it is.
func (s *suite) volumer(t *testing.T) runtime.Volumer {
	t.Helper()
	d, ok := s.driver.(runtime.Volumer)
	if !ok {
		t.Fatal("Probe claims volumes and the driver is no runtime.Volumer")
	}
	return d
}

// volume makes one that is removed with the test, after what mounts it.
func (s *suite) volume(t *testing.T, limit int64) sandbox.ID {
	t.Helper()
	id := sandbox.NewID()
	if err := s.volumer(t).CreateVolume(t.Context(), id, limit); err != nil {
		t.Fatalf("CreateVolume: %v", err)
	}
	t.Cleanup(func() {
		if err := s.volumer(t).RemoveVolume(context.Background(), id); err != nil {
			t.Errorf("RemoveVolume: %v", err)
		}
	})
	return id
}

// with is a spec of a sandbox that mounts volumes.
func (s *suite) with(mounts ...sandbox.Mount) runtime.Spec {
	spec := s.spec()
	spec.Mounts = mounts
	return spec
}

// at is a mount that commands find beside their working directory, also where "/" is
// not the sandbox's.
func at(name string, id sandbox.ID) sandbox.Mount {
	return sandbox.Mount{Volume: id, Path: sandbox.Workspace + "/" + name}
}

func volumes(t *testing.T, s *suite) {
	s.need(t, runtime.Volumes)
	run := func(name string, fn func(t *testing.T, s *suite)) {
		if !slices.Contains(s.without, "Volumes/"+name) {
			t.Run(name, func(t *testing.T) { fn(t, s) })
		}
	}
	run("SeveralShareOne", volumeShared)
	run("ItOutlivesItsSandboxes", volumeOutlives)
	run("ItIsThereAtEachStart", volumeStarts)
	run("ItIsNoPartOfASnapshot", volumeSnapshot)
	run("ItIsNoPartOfADifference", volumeDiff)
	run("ADirectoryOfIt", volumeSub)
	run("OwnersAreRightInEachView", volumeOwners)
	run("ALinkIsNotFollowed", volumeLinks)
	run("WhatMakesNoSenseIsRefused", volumeRefused)
	run("OneThatIsMountedIsNotRemoved", volumeMounted)
	run("ItsLimitHolds", volumeLimit)
	run("ItOutlivesTheServer", volumeRestart)
	run("NamesAreChecked", volumeNames)
	run("AnyWhere", volumePlaces)
	run("ReadOnly", volumeReadOnly)
	run("Isolated", func(t *testing.T, s *suite) {
		s.need(t, runtime.Isolation)
		t.Run("NothingIsTrustedOnIt", func(t *testing.T) { volumeFlags(t, s) })
		t.Run("ItsFileSystemIsOutOfReach", func(t *testing.T) { volumeAttempts(t, s) })
	})
}

func volumeShared(t *testing.T, s *suite) {
	id := s.volume(t, 0)
	a, b := s.create(t, s.with(at("data", id))), s.create(t, s.with(at("shared", id)))
	other := s.create(t, s.with(at("data", s.volume(t, 0))))
	a.ok("echo from a > data/file; mkdir data/d")
	if got := b.ok("cat shared/file; echo from b >> shared/file; mv shared/d shared/e"); got != "from a" {
		t.Errorf("b has %q", got)
	}
	if got := a.ok("cat data/file; ls data"); got != "from a\nfrom b\ne\nfile" {
		t.Errorf("a has %q", got)
	}
	// A program that has it open sees what comes.
	p := a.begin(agent.Command{Shell: "echo begun; while ! grep -q stop data/word 2>/dev/null; do sleep 0.02; done; echo seen"}, "begun\n")
	b.ok("echo stop > shared/word")
	if o, err := collect(t.Context(), p); err != nil || o.Stdout != "seen\n" {
		t.Errorf("got %+v, %v", o, err)
	}
	if got := other.ok("ls data"); got != "" {
		t.Errorf("another volume has %q", got)
	}
}

func volumeOutlives(t *testing.T, s *suite) {
	d := s.volumer(t)
	id := s.volume(t, 0)
	b := s.create(t, s.with(at("data", id)))
	b.ok("head -c 300000 /dev/urandom > data/blob; sync data/blob; cd data && sha256sum blob > sum")
	if err := b.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids, err := d.Volumes(t.Context())
	if err != nil || !slices.Contains(ids, id) {
		t.Errorf("the volumes are %v, %v", ids, err)
	}
	s.create(t, s.with(at("data", id))).ok("cd data && sha256sum -c sum")
	if used, err := d.VolumeUsage(t.Context(), id); err != nil || used != -1 && used < 300_000 {
		t.Errorf("it holds %d bytes, %v; want 300000 and some", used, err)
	}
}

func volumeStarts(t *testing.T, s *suite) {
	one, two := s.volume(t, 0), s.volume(t, 0)
	spec := s.with(at("data", one))
	b := s.create(t, spec)
	b.ok("echo one > data/file; echo of the disk > file")
	for range 2 {
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := b.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if got := b.ok("cat file data/file"); got != "of the disk\none" {
			t.Errorf("got %q", got)
		}
	}
	if err := b.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = []sandbox.Mount{at("other", two)}
	if err := b.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := b.ok("ls data other; echo under the mount > data/hidden"); got != "data:\n\nother:" {
		t.Errorf("with another volume: got %q", got)
	}
	if err := b.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = []sandbox.Mount{at("data", one)}
	if err := b.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := b.ok("ls data"); got != "file" {
		t.Errorf("what is under the mount is seen: %q", got)
	}
}

func volumeSnapshot(t *testing.T, s *suite) {
	s.need(t, runtime.Snapshots)
	id := s.volume(t, 0)
	b := s.create(t, s.with(at("data", id)))
	b.ok("echo shared > data/file; echo mine > file")
	kept := s.keep(t, b)
	if got := s.create(t, s.from(kept)).ok("cat file; ls -A data"); got != "mine" {
		t.Errorf("a fork without the volume has %q", got)
	}
	spec := s.from(kept)
	spec.Mounts = []sandbox.Mount{at("data", id)}
	if got := s.create(t, spec).ok("cat file data/file"); got != "mine\nshared" {
		t.Errorf("a fork with the volume has %q", got)
	}
}

func volumeDiff(t *testing.T, s *suite) {
	s.need(t, runtime.Snapshots)
	id := s.volume(t, 0)
	b := s.create(t, s.with(at("data", id)))
	b.ok("echo shared > data/file; echo mine > file")
	for _, f := range s.diff(t, runtime.Point{}, runtime.Point{Instance: b.Handle().ID}, "/workspace") {
		if strings.Contains(f, "data/") {
			t.Errorf("the difference tells %q, which is the volume's", f)
		}
	}
}

func volumeSub(t *testing.T, s *suite) {
	s.need(t, runtime.VolumeParts)
	id := s.volume(t, 0)
	sub := at("part", id)
	sub.Sub = "a/b"
	b := s.create(t, s.with(sub))
	b.ok("echo deep > part/file")
	all := s.create(t, s.with(at("data", id)))
	if got := all.ok("cat data/a/b/file; stat -c %a data/a data/a/b"); got != "deep\n755\n755" {
		t.Errorf("the whole volume has %q", got)
	}
	all.ok("echo top > data/secret; echo x > data/a/secret")
	again := s.create(t, s.with(sub))
	if got := again.ok("cat part/file; ls -A part"); got != "deep\nfile" {
		t.Errorf("the part has %q", got)
	}
	if s.has(t, runtime.Isolation) {
		for _, way := range []string{"part/..", "part/../secret", "part/../../secret"} {
			if o := again.run("cd part && cat ../secret ../../secret; ls ../" + way); strings.Contains(o.Stdout, "secret") || strings.Contains(o.Stdout, "top") {
				t.Errorf("out of the part leads %s: %q", way, o.Stdout)
			}
		}
	}
	if err := again.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	all.ok("mv data/a data/old")
	spec := s.with(sub)
	spec.ID = again.Handle().ID
	if err := again.Start(t.Context(), spec); err != nil {
		t.Fatalf("Start with a part that somebody moved away: %v", err)
	}
	if got := again.ok("ls -A part; touch part/x") + all.ok("ls -A data/a/b; rm -r data/a; mv data/old data/a"); got != "x" {
		t.Errorf("a part that was made anew: got %q", got)
	}
	both := at("rest", id)
	both.Sub = "a"
	if got := s.create(t, s.with(sub, both)).ok("cat part/file rest/b/file; ls rest"); got != "deep\ndeep\nb\nsecret" {
		t.Errorf("two parts of one: got %q", got)
	}
}

// places are places where a volume makes sense.
var places = []string{"/workspace", "/home/sandbox", "/mnt/data", "/opt/a/b/c", "/srv", "/tmp/v", "/var/lib/app", "/artifacts", "/data", "/usr/local/share/models"}

func volumePlaces(t *testing.T, s *suite) {
	s.need(t, runtime.RootUser) // else "/" is the host's, and a link is all that there is
	for _, path := range places {
		id := s.volume(t, 0)
		spec := s.with(sandbox.Mount{Volume: id, Path: path})
		b := s.create(t, spec)
		if got := b.ok(fmt.Sprintf("cd %[1]s && echo mine > file && cat %[1]s/file && stat -c '%%U %%a' %[1]s && pwd", path)); got != "mine\nsandbox 755\n"+path {
			t.Errorf("%s: the user has %q", path, got)
		}
		if o := b.asRoot(fmt.Sprintf("cat %[1]s/file; echo roots > %[1]s/by-root; stat -c %%U %[1]s", path)); o.Stdout != "mine\nsandbox\n" {
			t.Errorf("%s: root has %+v", path, o)
		}
		b.ok(fmt.Sprintf("cat %s/by-root", path))
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		spec.Mounts = nil
		if err := b.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if got := b.ok("ls -d " + path + "; ls " + path + "/file 2>/dev/null; true"); got != path && s.onDisk(path) {
			t.Errorf("%s: after a start without it: %q", path, got)
		}
	}
	many := make([]sandbox.Mount, sandbox.MaxMounts)
	for n := range many {
		many[n] = sandbox.Mount{Volume: s.volume(t, 0), Path: fmt.Sprintf("/mnt/%d", n), ReadOnly: n%2 == 1}
	}
	b := s.create(t, s.with(many...))
	if got := b.ok("for i in /mnt/*; do touch $i/x 2>/dev/null && echo $i; done | wc -l"); got != fmt.Sprint(sandbox.MaxMounts/2) {
		t.Errorf("of %d volumes %s can be written", sandbox.MaxMounts, got)
	}
}

func volumeOwners(t *testing.T, s *suite) {
	s.need(t, runtime.RootUser)
	id := s.volume(t, 0)
	a, b := s.create(t, s.with(at("data", id))), s.create(t, s.with(at("data", id)))
	a.ok("echo x > data/users; mkdir -m 700 data/closed")
	if o := a.asRoot("cd data; echo x > roots; chmod 600 roots; echo x > given; chown 1000:1000 given; echo x > strange; chown 4242:77 strange"); o.ExitCode != 0 {
		t.Fatalf("%+v", o)
	}
	const want = "closed 1000:1000\ngiven 1000:1000\nroots 0:0\nstrange 4242:77\nusers 1000:1000\n"
	for what, box := range map[string]*box{"the one that wrote": a, "the other": b, "a third": s.create(t, s.with(at("data", id)))} {
		for n, o := range []outcome{box.run("cd data; stat -c '%n %u:%g' *"), box.asRoot("cd data; stat -c '%n %u:%g' *")} {
			if o.Stdout != want {
				t.Errorf("%s, as root %v: got %+v", what, n == 1, o)
			}
		}
		if o := box.run("cat data/roots"); o.ExitCode == 0 || !strings.Contains(o.Stderr, "Permission denied") {
			t.Errorf("%s: the user reads what is root's: %+v", what, o)
		}
		box.ok("ls data/closed; echo more >> data/given; echo more >> data/users")
	}
}

func volumeMounted(t *testing.T, s *suite) {
	d := s.volumer(t)
	id := sandbox.NewID()
	if err := d.CreateVolume(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	spec := s.with(at("data", id))
	b := s.create(t, spec)
	b.ok("echo kept > data/file")
	other := s.create(t, s.with(at("data", id)))
	wantCode(t, "RemoveVolume of one that is mounted", d.RemoveVolume(t.Context(), id), fault.Conflict)
	if err := other.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "RemoveVolume of one that is mounted still", d.RemoveVolume(t.Context(), id), fault.Conflict)
	if got := b.ok("cat data/file; echo more >> data/file; wc -l < data/file"); got != "kept\n2" {
		t.Errorf("after removals that were refused: %q", got)
	}
	if s.has(t, runtime.Pause) {
		b.pause()
		wantCode(t, "RemoveVolume of one that a paused instance mounts", d.RemoveVolume(t.Context(), id), fault.Conflict)
		b.resume()
	}
	if err := b.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.RemoveVolume(t.Context(), id); err != nil {
			t.Errorf("RemoveVolume of one that nobody mounts: %v", err)
		}
	}
	if ids, err := d.Volumes(t.Context()); err != nil || slices.Contains(ids, id) {
		t.Errorf("the volumes are %v, %v", ids, err)
	}
	wantCode(t, "Start with a volume that was removed", b.Start(t.Context(), spec), fault.NotFound)
	spec.Mounts = nil
	if err := b.Start(t.Context(), spec); err != nil {
		t.Errorf("Start without it: %v", err)
	}
}

func volumeLimit(t *testing.T, s *suite) {
	d := s.volumer(t)
	if s.Sizes {
		id := s.volume(t, 32<<20)
		s.create(t, s.with(at("data", id))).ok("echo small > data/small; cat data/small")
		return
	}
	if !s.has(t, runtime.LimitDisk) {
		id := sandbox.NewID()
		wantCode(t, "CreateVolume with a limit that this host cannot hold", d.CreateVolume(t.Context(), id, 32<<20), fault.Unsupported)
		if ids, err := d.Volumes(t.Context()); err != nil || slices.Contains(ids, id) {
			t.Errorf("the volumes are %v, %v", ids, err)
		}
		return
	}
	id, free := s.volume(t, 32<<20), s.volume(t, 0)
	b := s.create(t, s.with(at("data", id), at("free", free)))
	if o := b.run("head -c 100M /dev/urandom > data/big && sync data/big"); o.ExitCode == 0 || !full(o) {
		t.Errorf("100 MiB in a volume of 32: %+v", o)
	}
	b.ok("head -c 60M /dev/urandom > own; head -c 100M /dev/urandom > free/big; sync own free/big")
	if used, err := d.VolumeUsage(t.Context(), id); err != nil || used < 16<<20 || used > 33<<20 {
		t.Errorf("the full volume holds %d bytes, %v", used, err)
	}
	b.ok("rm data/big; sync data; echo small > data/small; cat data/small")
	other := s.create(t, s.with(at("data", id)))
	if o := other.run("head -c 40M /dev/urandom > data/big && sync data/big"); o.ExitCode == 0 || !full(o) {
		t.Errorf("40 MiB by another in a volume of 32: %+v", o)
	}
}

func volumeRestart(t *testing.T, s *suite) {
	s.need(t, runtime.Reopen)
	id := s.volume(t, 0)
	spec := s.with(at("data", id))
	b := s.createFor(t, spec)
	b.ok("echo before > data/file")
	b = s.reopen(t, b)
	if got := b.ok("cat data/file; echo after > data/file"); got != "before" {
		t.Errorf("got %q", got)
	}
	wantCode(t, "RemoveVolume of one that was mounted by an earlier server", s.volumer(t).RemoveVolume(t.Context(), id), fault.Conflict)
	if got := s.create(t, s.with(at("data", id))).ok("cat data/file"); got != "after" {
		t.Errorf("another sandbox has %q", got)
	}
	if err := b.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := b.ok("cat data/file"); got != "after" {
		t.Errorf("after a start: %q", got)
	}
}
