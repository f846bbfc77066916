// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package watched_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/watched"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// box is a directory that stands for "/", and a hub on it.
type box struct {
	t   *testing.T
	dir string
	hub *watched.Hub

	work sync.WaitGroup // what the hubs have begun
}

func newBox(t *testing.T) *box {
	b := &box{t: t, dir: t.TempDir()}
	b.hub = b.newHub(dirs.Root{})
	b.mkdir("w")
	return b
}

func (b *box) newHub(root dirs.Root) *watched.Hub {
	b.t.Cleanup(b.work.Wait)
	root.Dir = b.dir
	if root.Do == nil {
		root.Do = func(fn func()) { fn() }
	}
	return watched.New(root, func(fn func()) { b.work.Go(fn) })
}

func (b *box) at(p string) string { return filepath.Join(b.dir, p) }

func (b *box) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) mkdir(p string) { b.t.Helper(); b.must(os.MkdirAll(b.at(p), 0o755)) }

func (b *box) write(p string) {
	b.t.Helper()
	b.must(os.WriteFile(b.at(p), []byte("x"), 0o644))
}

func (b *box) rename(from, to string) { b.t.Helper(); b.must(os.Rename(b.at(from), b.at(to))) }

func (b *box) watch(p string, recursive bool) *watched.Watch {
	b.t.Helper()
	w, err := b.hub.Watch(b.t.Context(), p, recursive)
	b.must(err)
	b.t.Cleanup(w.Close)
	return w
}

func line(e wire.FileEvent) string {
	slash := ""
	if e.Dir {
		slash = "/"
	}
	switch {
	case e.Type == wire.Dropped:
		return "dropped"
	case e.Exchange:
		return "exchanged " + e.From + " " + e.Path + slash
	case e.From != "":
		return "renamed " + e.From + " " + e.Path + slash
	}
	return e.Type + " " + e.Path + slash
}

// until reads up to an event.
func (b *box) until(w *watched.Watch, last string) (lines []string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	for !slices.Contains(lines, last) {
		events, err := w.Next(ctx)
		if err != nil {
			b.t.Fatalf("waiting for %q: %v, after %q", last, err, lines)
		}
		for _, e := range events {
			lines = append(lines, line(e))
		}
	}
	return lines
}

func (b *box) wantEnd(w *watched.Watch, code fault.Code) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	for {
		if _, err := w.Next(ctx); err != nil {
			if !fault.Is(err, code) {
				b.t.Errorf("it ended with %v, want %s", err, code)
			}
			return
		}
	}
}

func TestWhatAWatchTells(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(b *box)
		do     func(b *box)
		want   []string
		flat   []string
	}{
		{
			"RenamesWithinOutAndIn",
			func(b *box) {
				b.mkdir("w/d")
				b.write("w/d/f")
				b.mkdir("out/e")
				b.write("out/e/g")
				time.Sleep(20 * time.Millisecond)
			},
			func(b *box) {
				b.rename("w/d", "w/c")
				b.write("w/c/f")
				b.rename("out/e", "w/e")
				b.mkdir("w/e/new")
				b.rename("w/c", "c")
			},
			[]string{"renamed /w/d /w/c/", "modified /w/c/f", "created /w/e/", "created /w/e/new/", "deleted /w/c/"},
			[]string{"renamed /w/d /w/c/", "created /w/e/", "deleted /w/c/"},
		},
		{
			"ExchangesOfDirectories",
			func(b *box) { b.mkdir("w/a"); b.mkdir("w/b"); b.write("w/a/ina"); b.write("w/b/inb") },
			func(b *box) {
				b.must(unix.Renameat2(unix.AT_FDCWD, b.at("w/a"), unix.AT_FDCWD, b.at("w/b"), unix.RENAME_EXCHANGE))
				b.must(os.Remove(b.at("w/a/inb")))
				b.must(os.Remove(b.at("w/b/ina")))
			},
			[]string{"exchanged /w/a /w/b/", "deleted /w/a/inb", "deleted /w/b/ina"},
			[]string{"exchanged /w/a /w/b/"},
		},
		{
			"ExchangesOfAFileAndADirectory",
			func(b *box) { b.mkdir("w/a"); b.write("w/b"); b.write("w/a/f") },
			func(b *box) {
				b.must(unix.Renameat2(unix.AT_FDCWD, b.at("w/b"), unix.AT_FDCWD, b.at("w/a"), unix.RENAME_EXCHANGE))
				b.must(os.Remove(b.at("w/b/f")))
			},
			[]string{"exchanged /w/b /w/a", "deleted /w/b/f"},
			[]string{"exchanged /w/b /w/a"},
		},
		{
			"FilesAwayAndBack",
			func(b *box) { b.write("w/a") },
			func(b *box) { b.rename("w/a", "w/b"); b.rename("w/b", "w/a") },
			[]string{"renamed /w/a /w/b", "renamed /w/b /w/a", "modified /w/a"},
			[]string{"renamed /w/a /w/b", "renamed /w/b /w/a", "modified /w/a"},
		},
		{
			"DirectoriesAwayAndBack",
			func(b *box) { b.mkdir("w/a") },
			func(b *box) { b.rename("w/a", "w/b"); b.rename("w/b", "w/a"); b.write("w/a/f") },
			[]string{"renamed /w/a /w/b/", "renamed /w/b /w/a/", "created /w/a/f", "modified /w/a/f"},
			[]string{"renamed /w/a /w/b/", "renamed /w/b /w/a/"},
		},
		{
			"ADirectoryOverAnEmptyOne",
			func(b *box) { b.mkdir("w/a"); b.mkdir("w/b") },
			func(b *box) {
				b.must(unix.Rename(b.at("w/a"), b.at("w/b")))
				b.write("w/b/f")
			},
			[]string{"renamed /w/a /w/b/", "created /w/b/f", "modified /w/b/f"},
			[]string{"renamed /w/a /w/b/"},
		},
		{
			"NamesThatAreNoText",
			func(b *box) {},
			func(b *box) { b.write("w/no\xfftext\n") },
			[]string{"created " + wire.EscapeName("/w/no\xfftext\n"), "modified " + wire.EscapeName("/w/no\xfftext\n")},
			[]string{"created " + wire.EscapeName("/w/no\xfftext\n"), "modified " + wire.EscapeName("/w/no\xfftext\n")},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBox(t)
			test.before(b)
			all, flat := b.watch("/w", true), b.watch("/w", false)
			test.do(b)
			b.must(os.WriteFile(b.at("w/last"), nil, 0o644))
			for name, watch := range map[string]*watched.Watch{"recursive": all, "flat": flat} {
				want := test.want
				if name == "flat" {
					want = test.flat
				}
				if got := b.until(watch, "created /w/last"); !slices.Equal(got, append(slices.Clone(want), "created /w/last")) {
					t.Errorf("%s: got %q\nwant %q", name, got, want)
				}
			}
		})
	}
}

func TestAWatchEndsWithItsDirectoryHoweverItGoes(t *testing.T) {
	for name, do := range map[string]func(b *box){
		"Removed":           func(b *box) { b.must(os.Remove(b.at("w/up/top"))) },
		"MovedAway":         func(b *box) { b.rename("w/up/top", "w/up/other") },
		"OneAboveMovedAway": func(b *box) { b.rename("w/up", "w/down"); b.mkdir("w/up/top") },
		"RemovedWhileEntered": func(b *box) { // some program's directory: it is only freed with that
			f, err := os.Open(b.at("w/up/top"))
			b.must(err)
			b.t.Cleanup(func() { _ = f.Close() })
			b.must(os.Remove(b.at("w/up/top")))
		},
		"Replaced": func(b *box) { b.mkdir("w/new"); b.must(unix.Rename(b.at("w/new"), b.at("w/up/top"))) },
	} {
		for _, recursive := range []bool{false, true} {
			t.Run(fmt.Sprint(name, recursive), func(t *testing.T) {
				b := newBox(t)
				b.mkdir("w/up/top")
				other := b.watch("/w", false)
				w := b.watch("/w/up/top", recursive)
				do(b)
				b.wantEnd(w, fault.NotFound)
				b.write("w/still")
				b.until(other, "created /w/still")
			})
		}
	}
}

// replica is what who keeps a picture of a tree makes of events.
type replica map[string]bool

func (r replica) below(p string) (all []string) {
	for q := range r {
		if q == p || strings.HasPrefix(q, p+"/") {
			all = append(all, q)
		}
	}
	return all
}

func (r replica) apply(e wire.FileEvent) {
	switch e.Type {
	case wire.Created:
		r[e.Path] = true
	case wire.Deleted:
		for _, q := range r.below(e.Path) {
			delete(r, q)
		}
	case wire.Renamed:
		from, over := r.below(e.From), r.below(e.Path)
		for _, q := range append(slices.Clone(from), over...) {
			delete(r, q)
		}
		for _, q := range from {
			r[e.Path+q[len(e.From):]] = true
		}
		if e.Exchange {
			for _, q := range over {
				r[e.From+q[len(e.Path):]] = true
			}
		} else {
			r[e.Path] = true
		}
	}
}

func disk(t *testing.T, dir, below string) replica {
	t.Helper()
	r := replica{}
	err := filepath.WalkDir(filepath.Join(dir, below), func(p string, _ fs.DirEntry, err error) error {
		if name := strings.TrimPrefix(p, dir); err == nil && name != below {
			r[name] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Programs make, fill, move, exchange and remove directories faster than they are read: a picture that
// is kept by the events is the disk's in the end.
func TestAReplicaStaysTrue(t *testing.T) {
	const rounds = 20
	lost := 0
	for range rounds {
		b := newBox(t)
		w := b.watch("/w", true)
		seed := rand.Uint64()
		var programs sync.WaitGroup
		for n := range 3 {
			programs.Go(func() { steps(b.at(fmt.Sprintf("w/%d", n)), rand.New(rand.NewPCG(seed, uint64(n))), 300) })
		}
		programs.Wait()
		b.write("w/last")
		r := replica{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		dropped := false
		take := func(events []wire.FileEvent) {
			for _, e := range events {
				if r.apply(e); e.Type == wire.Dropped {
					dropped = true
					r = disk(t, b.dir, "/w")
				}
			}
		}
		for !r["/w/last"] {
			events, err := w.Next(ctx)
			b.must(err)
			take(events)
		}
		// What could not be opened where it was made is told once all was read.
		has := disk(t, b.dir, "/w")
		for !maps.Equal(r, has) {
			more, cancel := context.WithTimeout(ctx, 5*time.Second)
			events, err := w.Next(more)
			cancel()
			if err != nil {
				for p := range has {
					if !r[p] {
						t.Errorf("seed %d: %q is there and was not told", seed, p)
					}
				}
				for p := range r {
					if !has[p] {
						t.Errorf("seed %d: %q was told and is not there", seed, p)
					}
				}
				break
			}
			take(events)
		}
		cancel()
		w.Close()
		if dropped {
			lost++
		}
	}
	t.Logf("%d of %d replicas were told to look again", lost, rounds)
}

// What installers do is followed to the file, however late it is read: directories that are made, filled and
// moved to their places.
func TestWhatIsMadeAsideAndMovedIsToldWhole(t *testing.T) {
	b := newBox(t)
	w := b.watch("/w", true)
	for n := range 100 {
		aside := fmt.Sprintf("w/aside%d", n)
		for m := range 5 {
			b.mkdir(fmt.Sprintf("%s/d%d/e", aside, m))
			b.write(fmt.Sprintf("%s/d%d/e/f", aside, m))
		}
		b.rename(aside, fmt.Sprintf("w/place%d", n))
	}
	b.write("w/last")
	r, has := replica{}, disk(t, b.dir, "/w")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !maps.Equal(r, has) { // some is told once all was read
		events, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("the replica has %d files, the disk %d: %v", len(r), len(has), err)
		}
		for _, e := range events {
			if r.apply(e); e.Type == wire.Dropped {
				t.Fatal("events were dropped")
			}
		}
	}
}

func steps(dir string, r *rand.Rand, n int) {
	pick := func() string {
		p := dir
		for range r.IntN(3) + 1 {
			p += "/" + string(rune('a'+r.IntN(4)))
		}
		return p
	}
	for range n { // what the kernel refuses changes nothing
		switch p := pick(); r.IntN(7) {
		case 0, 1:
			_ = os.MkdirAll(p, 0o755)
		case 2:
			_ = os.WriteFile(p, []byte("x"), 0o644)
		case 3:
			_ = os.RemoveAll(p)
		case 4, 5:
			_ = unix.Rename(p, pick())
		case 6:
			_ = unix.Renameat2(unix.AT_FDCWD, p, unix.AT_FDCWD, pick(), unix.RENAME_EXCHANGE)
		}
	}
}

// A directory that is made and filled before it is watched: each file is told, and once.
func TestWhatWasFilledBeforeItWasWatchedIsToldOnce(t *testing.T) {
	b := newBox(t)
	w := b.watch("/w", true)
	want := map[string]int{}
	for n := range 200 {
		dir := fmt.Sprintf("/w/d%d/e/f", n)
		b.mkdir(dir)
		for m := range 5 {
			name := fmt.Sprintf("%s/g%d", dir, m)
			b.must(os.WriteFile(b.at(name), nil, 0o644))
			want["created "+name] = 1
		}
	}
	b.write("w/last")
	got := map[string]int{}
	for _, l := range b.until(w, "created /w/last") {
		got[l]++
	}
	for l := range want {
		if got[l] != 1 {
			t.Errorf("%q was told %d times", l, got[l])
		}
	}
}

func TestNothingOfBeforeIsTold(t *testing.T) {
	b := newBox(t)
	first := b.watch("/w", true)
	for n := range 200 {
		b.mkdir(fmt.Sprintf("w/d%d", n))
		b.write(fmt.Sprintf("w/d%d/f", n))
	}
	second := b.watch("/w", true)
	b.must(os.WriteFile(b.at("w/last"), nil, 0o644))
	if got := b.until(second, "created /w/last"); !slices.Equal(got, []string{"created /w/last"}) {
		t.Errorf("got %q", got)
	}
	got := b.until(first, "created /w/last")
	for n := range 200 {
		if l := fmt.Sprintf("created /w/d%d/f", n); !slices.Contains(got, l) {
			t.Errorf("the first watch does not tell %q", l)
		}
	}
}

// Where there is a storm, who does not read loses events and is told so, memory is bounded, and after
// it all goes on.
func TestAStorm(t *testing.T) {
	b := newBox(t)
	var ws []*watched.Watch
	for range watched.MaxWatches {
		ws = append(ws, b.watch("/w", true))
	}
	if _, err := b.hub.Watch(t.Context(), "/w", true); !fault.Is(err, fault.Exhausted) {
		t.Errorf("one more: %v", err)
	}
	b.mkdir("w/d")
	for n := range 30_000 {
		name := b.at(fmt.Sprintf("w/d/%0100d", n%50))
		_ = os.WriteFile(name, nil, 0o644)
		_ = os.Remove(name)
	}
	b.mkdir("w/after/all")
	b.write("w/after/all/f")
	for n, w := range ws {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for lost := false; ; {
			events, err := w.Next(ctx)
			b.must(err)
			lost = lost || slices.ContainsFunc(events, func(e wire.FileEvent) bool { return e.Type == wire.Dropped })
			if len(events) > wire.MaxFileEvents+1 {
				t.Fatalf("%d events at once", len(events))
			}
			if lost && events[len(events)-1].Type == wire.Dropped {
				break // it was told the last of what was kept
			}
		}
		cancel()
		if n > 0 {
			w.Close()
		}
	}
	b.write("w/after/all/more")
	b.until(ws[0], "modified /w/after/all/more")
}

// attacks are trees that are made to be expensive.
func TestTreesThatAreTooLarge(t *testing.T) {
	t.Run("Deep", func(t *testing.T) {
		b := newBox(t)
		b.mkdir("w/" + strings.Repeat("d/", 200))
		if _, err := b.hub.Watch(t.Context(), "/w", true); !fault.Is(err, fault.Exhausted) {
			t.Errorf("a new one: %v", err)
		}
		flat := b.watch("/w", false)
		b.write("w/f")
		b.until(flat, "created /w/f")
	})
	t.Run("Wide", func(t *testing.T) {
		b := newBox(t)
		w := b.watch("/w", true)
		for n := range watched.MaxDirs {
			b.mkdir(fmt.Sprint("w/", n))
		}
		b.wantEnd(w, fault.Exhausted)
		if _, err := b.hub.Watch(t.Context(), "/w", true); !fault.Is(err, fault.Exhausted) {
			t.Errorf("a new one: %v", err)
		}
		w.Close()
		one := b.watch("/w/7", true) // what was watched before is not any more
		b.write("w/7/f")
		b.until(one, "created /w/7/f")
	})
}

func TestLinksFifosAndMountsAreNotFollowed(t *testing.T) {
	b := newBox(t)
	b.mkdir("w/d")
	b.mkdir("outside/in")
	b.must(os.Symlink("..", b.at("w/d/up")))
	b.must(os.Symlink("/", b.at("w/root")))
	b.must(os.Symlink(b.at("outside"), b.at("w/link")))
	b.must(unix.Mkfifo(b.at("w/fifo"), 0o600))
	w := b.watch("/w", true)
	b.write("outside/in/f")
	b.must(os.Symlink(b.at("outside"), b.at("w/d/late")))
	b.write("outside/in/g")
	b.must(os.WriteFile(b.at("w/last"), nil, 0o644))
	if got := b.until(w, "created /w/last"); !slices.Equal(got, []string{"created /w/d/late", "created /w/last"}) {
		t.Errorf("got %q", got)
	}
	for p, want := range map[string]fault.Code{
		"/w/link": fault.Invalid, "/w/link/in": fault.Invalid, "/w/root": fault.Invalid, "/w/fifo": fault.Invalid, "/w/none": fault.NotFound, "/w/fifo/x": fault.Invalid,
	} {
		if _, err := b.hub.Watch(t.Context(), p, true); !fault.Is(err, want) {
			t.Errorf("%s: %v, want %s", p, err, want)
		}
	}
}

func TestWhatTheAgentHidesIsNotTold(t *testing.T) {
	b := newBox(t)
	b.mkdir("w/log/p")
	var st unix.Stat_t
	b.must(unix.Stat(b.at("w/log"), &st))
	b.hub = b.newHub(dirs.Root{Hidden: func() (dirs.ID, bool) { return dirs.ID{Dev: st.Dev, Ino: st.Ino}, true }})
	if _, err := b.hub.Watch(t.Context(), "/w/log", false); !fault.Is(err, fault.Invalid) {
		t.Errorf("it can be watched: %v", err)
	}
	w := b.watch("/w", true)
	b.write("w/log/f")
	b.write("w/log/p/f")
	b.rename("w/log", "w/moved")
	b.write("w/moved/f")
	b.must(os.WriteFile(b.at("w/last"), nil, 0o644))
	if got := b.until(w, "created /w/last"); !slices.Equal(got, []string{"deleted /w/log/", "deleted /w/moved/", "created /w/moved/", "created /w/last"}) {
		t.Errorf("got %q", got)
	}
}

func TestNothingIsHeldWhileNoWatchIsOpen(t *testing.T) {
	b := newBox(t)
	open := func() int {
		b.work.Wait() // what read for a watch closes its file when it ends
		entries, err := os.ReadDir("/proc/self/fd")
		b.must(err)
		return len(entries)
	}
	w := b.watch("/w", true)
	w.Close()
	before := open()
	for range 100 {
		w := b.watch("/w", true)
		b.write("w/f")
		w.Close()
		w.Close()
		if _, err := w.Next(t.Context()); !fault.Is(err, fault.State) {
			t.Fatalf("it goes on: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.hub.Watch(ctx, "/w", true); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if after := open(); after > before {
		t.Errorf("%d files are open, %d were", after, before)
	}
}
