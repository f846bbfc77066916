// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/changes"
)

func TestSandboxesDoNotSeeEachOther(t *testing.T) {
	needOwnIDs(t)
	g := newGroup(t, changes.Options{})
	shared := t.TempDir()
	var overlays []*overlay
	var trackers []*changes.Tracker
	for i := range 3 {
		dir := t.TempDir()
		must(t, os.MkdirAll(shared+"/workspace", 0o755))
		write(t, shared+"/workspace/image", "x")
		must(t, os.Symlink(shared, dir+"/lower"))
		must(t, os.MkdirAll(shared+"/tmp", 0o755))
		o := newOverlay(t, dir, nil)
		overlays = append(overlays, o)
		trackers = append(trackers, track(t, add(t, g, o)))
		_ = i
	}
	var wg sync.WaitGroup
	for i, o := range overlays {
		wg.Go(func() {
			for j := range 50 {
				os.WriteFile(fmt.Sprintf("%s/f%d", o.ws, j), nil, 0o644)
				os.Remove(fmt.Sprintf("%s/f%d", o.ws, j))
			}
			os.WriteFile(fmt.Sprintf("%s/of%d", o.ws, i), nil, 0o644)
			os.Chmod(o.ws+"/image", 0o600)
		})
	}
	wg.Wait()
	for i, tr := range trackers {
		if diff := cmp.Diff(stop(t, tr), []string{"modified image", fmt.Sprintf("created of%d", i)}); diff != "" {
			t.Errorf("sandbox %d: got - want +\n%s", i, diff)
		}
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(entries)
	}
	o := newOverlay(t, t.TempDir(), map[string]string{"workspace/ld/x": "x"})
	before := count()
	g, err := changes.Open(changes.Options{})
	must(t, err)
	s, err := g.Add(o.mount, []string{o.dir + "/lower"})
	must(t, err)
	idle := count()
	st := steps{t, o.ws}
	for i := range 20 {
		tr := track(t, s)
		st.mkdir("d")
		st.mkdir("d/e")
		st.write("d/e/f", "x")
		st.mv("d", "g")
		if i == 0 {
			st.rmAll("ld")
		}
		stop(t, tr)
		tr = track(t, s)
		st.rmAll("g")
		tr.Cancel()
	}
	if got := count(); got != idle {
		t.Errorf("got %d files open after the windows, want %d", got, idle)
	}
	if want := before + 3; idle > want+1 {
		t.Errorf("got %d files open with one idle sandbox, want at most %d (group, poller, overlay)", idle, want+1)
	}
	must(t, s.Close())
	must(t, g.Close())
	if got := count(); got > before+2 { // the runtime's poller stays
		t.Errorf("got %d files open in the end, want at most %d", got, before+2)
	}
}

func TestAllOnBtrfs(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts")
	base := t.TempDir()
	mkfs, err := exec.LookPath("mkfs.btrfs")
	if err != nil {
		t.Skip("mkfs.btrfs is not installed")
	}
	f, err := os.Create(base + "/image")
	must(t, err)
	must(t, f.Truncate(256<<20))
	must(t, f.Close())
	for _, args := range [][]string{{mkfs, "-q", base + "/image"}, {"mount", "-o", "loop", base + "/image", base + "/mnt"}} {
		must(t, os.MkdirAll(base+"/mnt", 0o755))
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("cannot make a btrfs: %v\n%s", err, out)
		}
	}
	defer unix.Unmount(base+"/mnt", unix.MNT_DETACH)
	for _, sub := range []string{"one", "two"} {
		if out, err := exec.Command("btrfs", "subvolume", "create", base+"/mnt/"+sub).CombinedOutput(); err != nil {
			t.Skipf("cannot make a subvolume: %v\n%s", err, out)
		}
	}
	g := newGroup(t, changes.Options{})
	a := newOverlay(t, base+"/mnt/one", lower)
	b := newOverlay(t, base+"/mnt/two", lower)
	defer a.mount.Close()
	defer b.mount.Close()
	as, err := g.Add(a.mount, []string{a.dir + "/lower"})
	must(t, err)
	defer as.Close()
	bs, err := g.Add(b.mount, []string{b.dir + "/lower"})
	must(t, err)
	defer bs.Close()
	s := steps{t, a.ws}
	before(s)
	at, bt := track(t, as), track(t, bs)
	s.mv("dir", "d2")
	s.append("low", "x")
	s.rmAll("ld")
	s.write("t", "x")
	s.mv("t", "old")
	want := []string{
		"created d2", "created d2/a", "created d2/b", "created d2/sub", "created d2/sub/c",
		"deleted dir", "deleted dir/a", "deleted dir/b", "deleted dir/sub", "deleted dir/sub/c",
		"deleted ld", "deleted ld/s", "deleted ld/s/z", "deleted ld/x", "deleted ld/y", "modified low", "modified old",
	}
	if diff := cmp.Diff(stop(t, at), want); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
	if diff := cmp.Diff(stop(t, bt), []string{}); diff != "" {
		t.Errorf("the other sandbox: got - want +\n%s", diff)
	}
}
