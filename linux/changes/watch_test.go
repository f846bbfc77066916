// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/changes"
)

func watch(t testing.TB, s *changes.Source, dir string, recursive bool) *changes.Watch {
	t.Helper()
	w, err := s.Watch(dir, recursive)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	return w
}

// events drains the kernel's queue and gives what the watch tells by then, as
// "kind path" and "renamed from > path"; directories end with a slash.
func events(t testing.TB, s *changes.Source, w *changes.Watch) (out []string) {
	t.Helper()
	for _, e := range next(t, s, w) {
		out = append(out, line(e))
	}
	return out
}

func line(e changes.Event) string {
	slash := ""
	if e.IsDir {
		slash = "/"
	}
	switch e.Kind {
	case changes.KindRenamed:
		if e.Exchange {
			return "exchanged " + e.From + slash + " > " + e.Path + slash
		}
		return "renamed " + e.From + slash + " > " + e.Path + slash
	case changes.KindDropped:
		return fmt.Sprint("dropped ", e.Dropped)
	}
	return string(e.Kind) + " " + e.Path + slash
}

func next(t testing.TB, s *changes.Source, w *changes.Watch) []changes.Event {
	t.Helper()
	s.Drain()
	es, err := w.Take()
	must(t, err)
	for _, e := range es {
		if e.At.IsZero() {
			t.Errorf("%s has no time", line(e))
		}
	}
	return es
}

func TestWatch(t *testing.T) {
	cases := []struct {
		name string
		do   func(s steps)
		want []string
	}{
		{"Nothing", func(s steps) {}, nil},
		{"ReadingIsNoEvent", func(s steps) { _, err := os.ReadFile(s.path("old")); must(s.t, err) }, nil},
		{"AFileIsMadeAndWritten", func(s steps) { s.write("new", "x") }, []string{"created /workspace/new", "modified /workspace/new"}},
		{"AnEmptyFileIsMade", func(s steps) { s.write("new", "") }, []string{"created /workspace/new"}},
		{"AFileIsAppendedTo", func(s steps) { s.append("old", "x") }, []string{"modified /workspace/old"}},
		{"ALowerFileIsAppendedTo", func(s steps) { s.append("low", "x") }, []string{"modified /workspace/low"}},
		{"OpenedForWritingIsNoEvent", func(s steps) { s.open("old", os.O_RDWR).Close() }, nil},
		{"AMappingIsWrittenTo", func(s steps) {
			f := s.open("old", os.O_RDWR)
			m, err := unix.Mmap(int(f.Fd()), 0, 3, unix.PROT_WRITE|unix.PROT_READ, unix.MAP_SHARED)
			must(s.t, err)
			m[0] = 'X'
			must(s.t, unix.Munmap(m))
			must(s.t, f.Close())
		}, []string{"modified /workspace/old"}},
		{"ModeOwnerTimesAndXattrs", func(s steps) {
			must(s.t, os.Chmod(s.path("old"), 0o600))
			must(s.t, unix.Setxattr(s.path("dir/sub"), "user.x", []byte("1"), 0))
		}, []string{"attributes /workspace/old", "attributes /workspace/dir/sub/"}},
		{"ItsOwnModeIsNoEvent", func(s steps) { must(s.t, os.Chmod(s.dir, 0o777)) }, nil},
		{"AFileIsRemoved", func(s steps) { s.rm("old") }, []string{"deleted /workspace/old"}},
		{"AFileIsMadeAndRemoved", func(s steps) { must(s.t, unix.Mknod(s.path("new"), unix.S_IFREG|0o644, 0)); s.rm("new") },
			[]string{"created /workspace/new", "deleted /workspace/new"}},
		{"AFileIsRenamed", func(s steps) { s.mv("old", "dir/new") }, []string{"renamed /workspace/old > /workspace/dir/new"}},
		{"AFileIsMovedOut", func(s steps) { s.mv("old", "/tmp/new") }, []string{"deleted /workspace/old"}},
		{"AFileIsMovedIn", func(s steps) { s.mv("/tmp/outside", "new") }, []string{"created /workspace/new"}},
		{"OutsideIsNoEvent", func(s steps) { s.write("/tmp/x", "x"); s.mv("/tmp/x", "/tmp/y") }, nil},
		{"AFileIsLinked", func(s steps) { s.link("old", "new") }, []string{"created /workspace/new"}},
		{"AFifoIsMade", func(s steps) { must(s.t, unix.Mkfifo(s.path("new"), 0o600)) }, []string{"created /workspace/new"}},
		{"ADirectoryIsMadeFilledAndMoved", func(s steps) {
			s.mkdir("d")
			must(s.t, os.Symlink("x", s.path("d/l")))
			s.mkdir("d/e")
			s.mv("d", "f")
			must(s.t, os.Symlink("x", s.path("f/m")))
			s.mv("f/e", "e")
			must(s.t, os.Symlink("x", s.path("e/n")))
		}, []string{"created /workspace/d/", "created /workspace/d/l", "created /workspace/d/e/", "renamed /workspace/d/ > /workspace/f/",
			"created /workspace/f/m", "renamed /workspace/f/e/ > /workspace/e/", "created /workspace/e/n"}},
		{"ADirectoryIsMadeFilledMovedAndRemoved", func(s steps) {
			s.mkdir("d")
			must(s.t, os.Symlink("x", s.path("d/l")))
			s.mv("d", "f")
			s.rm("f/l")
			s.rm("f")
		}, []string{"created /workspace/d/", "created /workspace/d/l", "deleted /workspace/d/l", "renamed /workspace/d/ > /workspace/f/", "deleted /workspace/f/"}},
		{"ALowerDirectoryIsRemoved", func(s steps) { s.rmAll("ld/s") }, []string{"deleted /workspace/ld/s/z", "deleted /workspace/ld/s/"}},
		{"DirectoriesAreExchanged", func(s steps) {
			must(s.t, os.Symlink("x", s.path("empty/1")))
			s.swap("dir/sub", "empty")
			must(s.t, os.Symlink("x", s.path("empty/2")))
		}, []string{"created /workspace/empty/1", "exchanged /workspace/dir/sub/ > /workspace/empty/", "created /workspace/empty/2"}},
		{"NamesThatAreNoText", func(s steps) {
			must(s.t, os.Symlink("x", s.path("a\xff\\b")))
			must(s.t, os.Symlink("x", s.path("line\nbreak")))
			s.mv("a\xff\\b", `c\d`)
		}, []string{`created /workspace/a\xff\\b`, "created /workspace/line\nbreak", `renamed /workspace/a\xff\\b > /workspace/c\\d`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := newOverlay(t, t.TempDir(), lower)
			s := add(t, newGroup(t, changes.Options{}), o)
			do := steps{t, o.ws}
			before(do)
			nextTick(t)
			w := watch(t, s, "/workspace", true)
			c.do(do)
			got := events(t, s, w)
			if c.name == "ADirectoryIsMadeFilledMovedAndRemoved" && len(got) > 2 && strings.HasPrefix(got[2], "renamed") {
				// The kernel did not merge the two records of the file: its removal is told where it was made.
				c.want = []string{"created /workspace/d/", "created /workspace/d/l", "renamed /workspace/d/ > /workspace/f/", "deleted /workspace/f/l", "deleted /workspace/f/"}
			}
			if diff := cmp.Diff(got, c.want); diff != "" {
				t.Errorf("got - want +\n%s", diff)
			}
		})
	}
}

func TestAWatchThatIsNotRecursiveTellsOfItsOwnNamesOnly(t *testing.T) {
	o := newOverlay(t, t.TempDir(), lower)
	s := add(t, newGroup(t, changes.Options{}), o)
	w := watch(t, s, "/workspace/ld/", false)
	do := steps{t, o.ws}
	must(t, os.Symlink("x", do.path("ld/in")))
	must(t, os.Symlink("x", do.path("ld/s/below")))
	must(t, os.Symlink("x", do.path("above")))
	do.mv("ld/in", "ld/s/in")
	must(t, os.Chmod(do.path("ld/s"), 0o700))
	must(t, os.Chmod(do.path("ld/s/z"), 0o700))
	want := []string{"created /workspace/ld/in", "deleted /workspace/ld/in", "attributes /workspace/ld/s/"}
	if diff := cmp.Diff(events(t, s, w), want); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
}

func TestAWatchIsRefused(t *testing.T) {
	o := newOverlay(t, t.TempDir(), lower)
	g := newGroup(t, changes.Options{})
	s := add(t, g, o)
	must(t, os.Symlink("ld", o.ws+"/link"))
	must(t, os.Symlink("/etc", o.ws+"/out"))
	for path, want := range map[string]fault.Code{
		"workspace": fault.Invalid, "": fault.Invalid, "/\x00": fault.Invalid, "/" + strings.Repeat("x", 5000): fault.Invalid,
		"/workspace/low": fault.Invalid, "/workspace/link": fault.Invalid, "/workspace/link/s": fault.Invalid, "/workspace/out": fault.Invalid,
		"/workspace/none": fault.NotFound, "/../../etc": fault.NotFound,
	} {
		_, err := s.Watch(path, true)
		wantCode(t, err, want)
	}
	for range 32 {
		watch(t, s, "/workspace", false)
	}
	_, err := s.Watch("/workspace", false)
	wantCode(t, err, fault.Exhausted)
	must(t, s.Close())
	_, err = s.Watch("/workspace", false)
	wantCode(t, err, fault.State)
}

func TestAWatchEnds(t *testing.T) {
	open := func(t *testing.T) (*overlay, *changes.Source, *changes.Watch, steps) {
		o := newOverlay(t, t.TempDir(), lower)
		s := add(t, newGroup(t, changes.Options{}), o)
		do := steps{t, o.ws}
		before(do)
		return o, s, watch(t, s, "/workspace/dir", true), do
	}
	over := func(t *testing.T, s *changes.Source, w *changes.Watch, want fault.Code) {
		t.Helper()
		s.Drain()
		_, err := w.Next(t.Context())
		wantCode(t, err, want)
		_, err = w.Next(t.Context())
		wantCode(t, err, want)
	}
	t.Run("WhenItsDirectoryIsRemoved", func(t *testing.T) {
		_, s, w, do := open(t)
		do.rmAll("dir/sub")
		do.rmAll("dir")
		do.mkdir("dir") // another one
		got := events(t, s, w)
		slices.Sort(got)
		want := []string{"deleted /workspace/dir/a", "deleted /workspace/dir/b", "deleted /workspace/dir/sub/", "deleted /workspace/dir/sub/c"}
		if !namesTheRemoved(t) {
			want = []string{"dropped 4"}
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
		over(t, s, w, fault.NotFound)
		if n, _ := s.Open(); n != 0 {
			t.Errorf("%d are open, want none", n)
		}
	})
	t.Run("WhenItsDirectoryIsMoved", func(t *testing.T) {
		_, s, w, do := open(t)
		do.mv("dir", "dri")
		over(t, s, w, fault.NotFound)
	})
	t.Run("WhenADirectoryAboveIsMoved", func(t *testing.T) {
		_, s, _, do := open(t)
		w := watch(t, s, "/workspace/dir/sub", true)
		do.mv("dir", "dri")
		over(t, s, w, fault.NotFound)
	})
	t.Run("WhenTheSandboxDoes", func(t *testing.T) {
		_, s, w, do := open(t)
		do.write("dir/new", "x")
		s.Drain()
		must(t, s.Close())
		es, err := w.Next(t.Context())
		if err != nil || len(es) != 1 || es[0].Kind != changes.KindDropped || es[0].Dropped == 0 {
			t.Errorf("got %v, %v, want what could not be told", es, err)
		}
		over(t, s, w, fault.State)
	})
	t.Run("WhenItIsClosed", func(t *testing.T) {
		_, s, w, _ := open(t)
		waits := make(chan error)
		go func() {
			_, err := w.Next(t.Context())
			waits <- err
		}()
		must(t, w.Close())
		wantCode(t, <-waits, fault.State)
		must(t, w.Close())
		if n, watched := s.Open(); n != 0 || watched {
			t.Errorf("%d are open, watched %v, want nothing left", n, watched)
		}
	})
	t.Run("WithItsCallersContext", func(t *testing.T) {
		_, _, w, _ := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("ButNotWhenWhatItHasNothingToDoWithIsRemoved", func(t *testing.T) {
		_, s, w, do := open(t)
		do.mkdir("other-dir")
		do.mv("other-dir", "its-new-name")
		do.rm("its-new-name")
		must(t, os.Symlink("x", do.path("dir/new")))
		if diff := cmp.Diff(events(t, s, w), []string{"created /workspace/dir/new"}); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
	})
}

func TestWhatAWatchCannotKeepIsTold(t *testing.T) {
	fill := func(t *testing.T, o *overlay, n int) {
		for i := range n {
			must(t, unix.Mknod(fmt.Sprintf("%s/f%d", o.ws, i), unix.S_IFREG|0o644, 0))
		}
	}
	t.Run("ASlowConsumersQueueIsBounded", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		s := add(t, newGroup(t, changes.Options{}), o)
		slow, fast := watch(t, s, "/workspace", true), watch(t, s, "/workspace", true)
		seen := 0
		for i := range 20_000 {
			must(t, unix.Mknod(fmt.Sprintf("%s/f%d", o.ws, i), unix.S_IFREG|0o644, 0))
			if i%1000 == 0 {
				seen += len(next(t, s, fast))
			}
		}
		if seen += len(next(t, s, fast)); seen != 20_000 {
			t.Errorf("the fast one got %d, want all", seen)
		}
		es := next(t, s, slow)
		last := es[len(es)-1]
		if len(es) != 8193 || last.Kind != changes.KindDropped || last.Dropped != 20_000-8192 {
			t.Errorf("the slow one got %d, and %+v at the end", len(es), last)
		}
		// It goes on.
		must(t, os.Symlink("x", o.ws+"/new"))
		if diff := cmp.Diff(events(t, s, slow), []string{"created /workspace/new"}); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
	})
	t.Run("SoIsTheKernels", func(t *testing.T) {
		skiptest.WithoutRoot(t, "it watches a file system by fanotify")
		g, err := changes.OpenLimited(changes.Options{})
		must(t, err)
		defer g.Close()
		o := newOverlay(t, t.TempDir(), nil)
		s := add(t, g, o)
		w := watch(t, s, "/workspace", true)
		fill(t, o, kernelNumber(t, "/proc/sys/fs/fanotify/max_queued_events")+1)
		es := next(t, s, w)
		if last := es[len(es)-1]; last.Kind != changes.KindDropped || last.Dropped < 1 {
			t.Errorf("got %d, and %+v at the end", len(es), last)
		}
	})
	t.Run("MovesOfManyDirectoriesAreNotUndone", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		s := add(t, newGroup(t, changes.Options{}), o)
		w := watch(t, s, "/workspace", true)
		must(t, os.Mkdir(o.ws+"/d0", 0o755))
		for i := range 600 {
			must(t, unix.Rename(fmt.Sprintf("%s/d%d", o.ws, i), fmt.Sprintf("%s/d%d", o.ws, i+1)))
		}
		if diff := cmp.Diff(events(t, s, w), []string{"dropped 601"}); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
	})
	t.Run("SoIsAFileThatComesBack", func(t *testing.T) {
		// The kernel tells of the first move and of the third in one.
		o := newOverlay(t, t.TempDir(), nil)
		s := add(t, newGroup(t, changes.Options{}), o)
		w := watch(t, s, "/workspace", true)
		must(t, os.Symlink("x", o.ws+"/a"))
		must(t, unix.Rename(o.ws+"/a", o.ws+"/b"))
		must(t, unix.Rename(o.ws+"/b", o.ws+"/a"))
		must(t, unix.Rename(o.ws+"/a", o.ws+"/b"))
		got := events(t, s, w)
		if got[len(got)-1] != "dropped 1" {
			t.Errorf("got %v, want one that is dropped at the end", got)
		}
	})
}

func TestAWatchKeepsTheMarkThatCommandsShare(t *testing.T) {
	o := newOverlay(t, t.TempDir(), nil)
	s := add(t, newGroup(t, changes.Options{}), o)
	w := watch(t, s, "/workspace", true)
	tr := track(t, s)
	write(t, o.ws+"/one", "x")
	if diff := cmp.Diff(stop(t, tr), []string{"created one"}); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
	write(t, o.ws+"/two", "x")
	want := []string{"created /workspace/one", "modified /workspace/one", "created /workspace/two", "modified /workspace/two"}
	if diff := cmp.Diff(events(t, s, w), want); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
	must(t, w.Close())
	if n, watched := s.Open(); n != 0 || watched {
		t.Errorf("%d are open, watched %v, want nothing left", n, watched)
	}
}

// picture is what a consumer makes of the events: the names that there are.
type picture map[string]bool

// apply tells false where events are missing, so that the consumer has to look.
func (p picture) apply(e changes.Event) bool {
	switch e.Kind {
	case changes.KindCreated:
		p[e.Path] = true
	case changes.KindDeleted:
		delete(p, e.Path)
	case changes.KindRenamed:
		moved := p.take(e.From, e.Path)
		if e.Exchange {
			maps.Copy(moved, p.take(e.Path, e.From))
		}
		maps.Copy(p, moved)
	}
	return e.Kind != changes.KindDropped
}

func (p picture) take(from, to string) picture {
	taken := picture{}
	for name := range p {
		if rest, ok := strings.CutPrefix(name, from); ok && (rest == "" || rest[0] == '/') {
			delete(p, name)
			taken[to+rest] = true
		}
	}
	return taken
}

// TestWhoFollowsAWatchKnowsTheTree does random steps over a small tree, reads the
// watch at random moments, and compares what a consumer knows with a listing.
func TestWhoFollowsAWatchKnowsTheTree(t *testing.T) {
	g := newGroup(t, changes.Options{})
	base := t.TempDir()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		dir := fmt.Sprintf("%s/%d", base, runs)
		defer os.RemoveAll(dir)
		o := newOverlay(t, dir, map[string]string{"workspace/a/a": "1", "workspace/a/b/c": "2", "workspace/b": "3", "tmp/c": "4"})
		defer o.mount.Close()
		s, err := g.Add(o.mount, nil)
		must(t, err)
		defer s.Close()
		w, err := s.Watch("/", true)
		must(t, err)
		m, p := tree{}, picture{}
		for _, name := range listing(t, o.top) {
			p[name] = true
			m[strings.TrimPrefix(name, "/")] = &thing{}
		}
		var log []string
		read := func() {
			for _, e := range next(t, s, w) {
				log = append(log, "        "+line(e))
				if p.apply(e) {
					continue
				}
				clear(p)
				for _, name := range listing(t, o.top) {
					p[name] = true
				}
			}
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				read()
			case 1:
				s.Drain()
			default:
				log = append(log, m.step(rt, o.top))
			}
		}
		read()
		if diff := cmp.Diff(slices.Sorted(maps.Keys(p)), listing(t, o.top)); diff != "" {
			rt.Fatalf("known - there +\n%s\nafter:\n%s", diff, strings.Join(log, "\n"))
		}
	})
}

func listing(t testing.TB, top string) (names []string) {
	t.Helper()
	must(t, filepath.WalkDir(top+"/.", func(at string, d fs.DirEntry, err error) error {
		if rel, ok := strings.CutPrefix(at, top+"/"); ok && rel != "." && err == nil {
			names = append(names, "/"+rel)
		}
		return err
	}))
	slices.Sort(names)
	return names
}
