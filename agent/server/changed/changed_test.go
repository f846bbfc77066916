// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package changed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/changed"
	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
)

type box struct {
	t   testing.TB
	dir string
	*changed.Tracker
}

func newBox(t testing.TB) *box { return newBoxWith(t, dirs.Root{}) }

func newBoxWith(t testing.TB, root dirs.Root) *box {
	b := &box{t: t, dir: t.TempDir()}
	root.Dir = b.dir
	if root.Do == nil {
		root.Do = func(fn func()) { fn() }
	}
	b.Tracker = changed.New(root)
	b.mkdir("w")
	return b
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

func (b *box) begin() *changed.Window {
	b.t.Helper()
	w, err := b.Begin(b.t.Context(), "/w")
	b.must(err)
	b.t.Cleanup(w.Close)
	return w
}

func (b *box) end(w *changed.Window) (lines []string, why string) {
	b.t.Helper()
	c, err := w.End(b.t.Context())
	b.must(err)
	for _, f := range c.Files {
		lines = append(lines, f.Action+" "+f.Path)
	}
	return lines, c.Why
}

func TestTheDifference(t *testing.T) {
	b := newBox(t)
	for _, p := range []string{"w/a/x", "w/gone/in/y", "w/d-e"} {
		b.mkdir(filepath.Dir(p))
		b.write(p)
	}
	b.mkdir("w/attr")
	b.must(unix.Setxattr(b.at("w/attr"), "user.x", []byte("1"), 0))
	w := b.begin()
	b.must(os.RemoveAll(b.at("w/gone")))
	b.write("w/gone") // a file in a directory's place
	b.mkdir("w/d")
	b.write("w/d/f")
	b.write("w/d.f")
	b.must(unix.Setxattr(b.at("w/attr"), "user.x", []byte("2"), 0))
	b.write("w/brief")
	b.must(os.Remove(b.at("w/brief")))
	got, why := b.end(w)
	want := []string{"modified attr", "created d", "created d.f", "created d/f", "modified gone", "deleted gone/in", "deleted gone/in/y"}
	if !slices.Equal(got, want) || why != "" {
		t.Errorf("got %q (%s), want %q", got, why, want)
	}
}

// A file of the same size that gets its old time back is told, however soon after the look it was changed.
func TestAChangeAtOnceAfterTheLookIsSeen(t *testing.T) {
	b := newBox(t)
	for n := range 100 {
		b.write("w/f")
		old := time.Unix(1, 0)
		b.must(os.Chtimes(b.at("w/f"), old, old))
		w := b.begin()
		b.must(os.WriteFile(b.at("w/f"), []byte("y"), 0o644))
		b.must(os.Chtimes(b.at("w/f"), old, old))
		got, why := b.end(w)
		w.Close()
		if !slices.Equal(got, []string{"modified f"}) || why != "" {
			t.Fatalf("round %d: got %q (%s)", n, got, why)
		}
	}
}

func TestTheDirectoryItself(t *testing.T) {
	b := newBox(t)
	b.write("w/f")
	w := b.begin()
	b.must(os.Rename(b.at("w"), b.at("v")))
	if got, why := b.end(w); !slices.Equal(got, []string{"deleted f"}) || why != "" {
		t.Errorf("moved away: got %q (%s)", got, why)
	}
	w = b.begin() // there is none
	b.mkdir("w")
	b.write("w/g")
	if got, why := b.end(w); !slices.Equal(got, []string{"created g"}) || why != "" {
		t.Errorf("made: got %q (%s)", got, why)
	}
	w = b.begin()
	b.must(os.RemoveAll(b.at("w")))
	b.must(os.Symlink("v", b.at("w")))
	if _, why := b.end(w); why == "" {
		t.Error("a link in its place is followed")
	}
}

func TestTreesThatAreMadeToBeExpensive(t *testing.T) {
	t.Run("Deep", func(t *testing.T) {
		b := newBox(t)
		b.mkdir("w/" + strings.Repeat("d/", 300))
		w := b.begin()
		b.write("w/f")
		if got, why := b.end(w); !slices.Contains(got, "created f") || why == "" {
			t.Errorf("got %q (%q)", got, why)
		}
	})
	t.Run("Wide", func(t *testing.T) {
		b := newBox(t)
		dir := b.at("w")
		for n := range changed.MaxEntries + 1 {
			b.must(unix.Mknod(fmt.Sprintf("%s/%d", dir, n), unix.S_IFREG|0o600, 0))
		}
		for range 2 { // it is not looked at again
			w := b.begin()
			b.write("w/f")
			if got, why := b.end(w); len(got) != 0 || why == "" {
				t.Errorf("got %d changes (%q)", len(got), why)
			}
			w.Close()
		}
	})
	t.Run("LinksFifosAndSockets", func(t *testing.T) {
		b := newBox(t)
		b.mkdir("out")
		b.must(os.Symlink(".", b.at("w/self")))
		b.must(os.Symlink("../out", b.at("w/link")))
		b.must(unix.Mkfifo(b.at("w/fifo"), 0o600))
		w := b.begin()
		b.write("out/f")
		b.must(os.Symlink("/", b.at("w/root")))
		b.must(unix.Mkfifo(b.at("w/other"), 0o600))
		if got, why := b.end(w); !slices.Equal(got, []string{"created other", "created root"}) || why != "" {
			t.Errorf("got %q (%s)", got, why)
		}
	})
	t.Run("Windows", func(t *testing.T) {
		b := newBox(t)
		for range changed.MaxWindows {
			b.begin()
		}
		if _, err := b.Begin(t.Context(), "/w"); !fault.Is(err, fault.Exhausted) {
			t.Errorf("one more: %v", err)
		}
	})
	t.Run("Canceled", func(t *testing.T) {
		b := newBox(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 2 * changed.MaxWindows {
			if _, err := b.Begin(ctx, "/w"); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
		}
		b.begin()
	})
}

func TestWhatMayNotBeReadMakesAnAnswerIncomplete(t *testing.T) {
	skiptest.WithoutRoot(t, "it takes on another user's rights")
	user := view.Plain(view.Identity{Name: "sandbox", UID: 1000, Credential: &syscall.Credential{Uid: 1000, Gid: 1000}})
	b := newBoxWith(t, dirs.Root{Do: user.Do})
	for dir := b.dir; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		b.must(os.Chmod(dir, 0o755))
	}
	b.mkdir("w/closed")
	b.must(os.Chmod(b.at("w/closed"), 0))
	w := b.begin()
	b.write("w/closed/secret")
	b.write("w/f")
	if got, why := b.end(w); !slices.Equal(got, []string{"created f"}) || why == "" {
		t.Errorf("got %q (%q)", got, why)
	}
}

func TestMountsAreNotEntered(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts")
	b := newBox(t)
	b.mkdir("w/proc")
	b.must(unix.Mount("none", b.at("w/proc"), "proc", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(b.at("w/proc"), unix.MNT_DETACH) })
	w := b.begin()
	b.write("w/f")
	if got, why := b.end(w); !slices.Equal(got, []string{"created f"}) || why == "" {
		t.Errorf("got %q (%q)", got, why)
	}
	w, err := b.Begin(t.Context(), "/w/proc")
	b.must(err)
	defer w.Close()
	if got, why := b.end(w); len(got) != 0 || why == "" {
		t.Errorf("proc itself: got %q (%q)", got, why)
	}
}

// BenchmarkWindow is what a window costs around nothing.
func BenchmarkWindow(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := newBox(b)
			for i := range n {
				if i%100 == 0 {
					x.mkdir(fmt.Sprintf("w/d%d", i/100))
				}
				x.write(fmt.Sprintf("w/d%d/f%d", i/100, i))
			}
			time.Sleep(20 * time.Millisecond) // past the clock's tick
			for b.Loop() {
				w := x.begin()
				if got, why := x.end(w); len(got) > 0 || why != "" {
					b.Fatal(got, why)
				}
				w.Close()
			}
		})
	}
}
