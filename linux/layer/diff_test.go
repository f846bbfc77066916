// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/mount"
)

// mounted mounts a layer over an image as the driver does, calls f with a path to the
// mount, and takes it down.
func mounted(tb testing.TB, image *os.File, l *Layer, f func(root string)) {
	tb.Helper()
	if err := l.FreshWork(); err != nil {
		tb.Fatal(err)
	}
	var m *os.File
	var err error
	layers, done := overlaid(tb, image, l)
	defer done()
	until(tb, "the layer is free", func() bool {
		m, err = mount.New("overlay", 0, append(layers,
			mount.Param{Key: "index", Value: "on"},
			mount.Param{Key: "nfs_export", Value: "on"},
			mount.Param{Key: "redirect_dir", Value: "nofollow"})...)
		return !errors.Is(err, unix.EBUSY)
	})
	skipWithoutClones(tb, err)
	if err != nil {
		tb.Fatal(err)
	}
	defer m.Close()
	f(at(int(m.Fd()), "."))
}

// overlaid returns what an overlay of the layer over the image is made of. Older kernels
// (see mount.Namespace) take paths, of what is attached in the host's namespace. done closes it.
func overlaid(tb testing.TB, image *os.File, l *Layer) (params []mount.Param, done func()) {
	tb.Helper()
	byPath, err := mount.NeedsNamespace()
	if err != nil {
		tb.Fatal(err)
	}
	if byPath {
		return []mount.Param{
			{Key: "lowerdir", Value: at(int(image.Fd()), "")},
			{Key: "upperdir", Value: at(l.Fd(), "upper")},
			{Key: "workdir", Value: at(l.Fd(), "work")},
		}, func() {}
	}
	clone, err := mount.CloneAt(l.Fd(), "")
	if err != nil {
		tb.Fatal(err)
	}
	held := []*os.File{clone}
	params = []mount.Param{{Key: "lowerdir+", File: image}}
	for _, part := range [][2]string{{"upperdir", "upper"}, {"workdir", "work"}} {
		fd, err := unix.Openat(int(clone.Fd()), part[1], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			tb.Fatal(err)
		}
		dir := os.NewFile(uintptr(fd), part[1])
		held = append(held, dir)
		params = append(params, mount.Param{Key: part[0], File: dir})
	}
	return params, func() {
		for _, f := range held {
			_ = f.Close()
		}
	}
}

// imageDir makes the root of an image.
func imageDir(tb testing.TB) *os.File {
	tb.Helper()
	needRoot(tb)
	dir := tb.TempDir()
	for i := range 6 {
		sub := fmt.Sprintf("%s/d%d/e/f", dir, i)
		if err := os.MkdirAll(sub, 0o755); err != nil {
			tb.Fatal(err)
		}
		for j := range 3 {
			for _, in := range []string{sub, filepath.Dir(sub), filepath.Dir(filepath.Dir(sub)), dir} {
				if err := os.WriteFile(fmt.Sprintf("%s/f%d", in, j), []byte(fmt.Sprint(i, j)), 0o644); err != nil {
					tb.Fatal(err)
				}
			}
		}
		if err := os.Symlink("target", fmt.Sprintf("%s/d%d/link", dir, i)); err != nil {
			tb.Fatal(err)
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return f
}

// upset changes a tree by n random steps.
func upset(tb testing.TB, r *rand.Rand, root string, n int) {
	tb.Helper()
	for range n {
		path := root
		for range 1 + r.IntN(4) {
			path += "/" + []string{"d0", "d1", "d2", "e", "f", "f0", "f1", "link", "new", "odd\xff", "a.b", "a"}[r.IntN(12)]
		}
		other := fmt.Sprintf("%s/%s", root, []string{"d0/e", "d1/new", "d3/f0", "moved", "d4"}[r.IntN(5)])
		switch r.IntN(12) {
		case 0, 1:
			os.RemoveAll(path)
		case 2, 3:
			os.MkdirAll(path, 0o755)
		case 4, 5:
			os.WriteFile(path, []byte(fmt.Sprint(r.IntN(1000))), 0o644)
		case 6:
			os.Chmod(path, os.FileMode(0o700+r.IntN(0o77)))
		case 7:
			os.Rename(path, other)
		case 8:
			os.Link(path, other)
		case 9:
			os.Symlink(fmt.Sprint(r.IntN(5)), path)
		case 10:
			unix.Setxattr(path, "user.x", []byte{byte(r.IntN(3))}, 0)
		case 11: // replaced by another of the same name
			os.RemoveAll(path)
			os.MkdirAll(path+"/inner", 0o755)
		}
	}
}

// seen is what Diff is about, of a mounted tree.
func seen(tb testing.TB, root string) map[string]string {
	tb.Helper()
	tree := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == "." {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		s := fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			s += fmt.Sprint(st.Mtim, st.Size, string(data))
		case unix.S_IFLNK:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			s += fmt.Sprint(st.Mtim, to)
		}
		if x := make([]byte, 10); true {
			n, _ := unix.Lgetxattr(path, "user.x", x)
			s += string(x[:max(n, 0)])
		}
		tree["/"+rel] = fmt.Sprint(st.Size*int64(b2i(st.Mode&unix.S_IFMT == unix.S_IFREG)), "|", s)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return tree
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// expected compares two trees the plain way.
func expected(from, to map[string]string) []Change {
	changes := []Change{}
	size := func(s string) (n int64) { fmt.Sscan(s, &n); return n }
	for path, s := range to {
		was, ok := from[path]
		if !ok {
			changes = append(changes, Change{Path: path, Action: Created, Size: size(s)})
		} else if was != s {
			changes = append(changes, Change{Path: path, Action: Modified, Size: size(s)})
		}
	}
	for path := range from {
		if _, ok := to[path]; !ok {
			changes = append(changes, Change{Path: path, Action: Deleted})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	for i, c := range changes {
		if strings.Contains(c.Path, "\xff") {
			changes[i].Path, changes[i].Escaped = strings.ReplaceAll(c.Path, "\xff", `\xff`), true
		}
	}
	return changes
}

// Whatever was done through real overlay mounts, the answer is what comparing the
// mounted trees, path by path, gives.
func TestDiffIsWhatComparingTheMountedTreesGives(t *testing.T) {
	eachKind(t, func(t *testing.T, opts Options) {
		image := imageDir(t)
		s := mustOpen(t, opts)
		rounds := 6
		if os.Getenv("SANDPIT_SOAK") != "" {
			rounds = 300
		}
		for round := range rounds {
			seed := uint64(round)
			r := rand.New(rand.NewPCG(seed, 7))
			views := map[Point]map[string]string{}
			a := fmt.Sprintf("layera%04d", round)
			l := mustCreate(t, s, a, 0)
			// A layer, its snapshots on the way, what was made of one, and a stranger.
			points := []Point{""}
			keep := func(id string) {
				mustSnapshot(t, s, a, id)
				points = append(points, Point(id))
			}
			mounted(t, image, l, func(root string) {
				views[""] = seen(t, root)
				upset(t, r, root, 20)
				first := fmt.Sprintf("snapone%04d", round)
				keep(first)
				views[Point(first)] = seen(t, root)
				upset(t, r, root, 8)
				second := fmt.Sprintf("snaptwo%04d", round)
				keep(second)
				views[Point(second)] = seen(t, root)
				upset(t, r, root, 8)
				views[Point(a)] = seen(t, root)
			})
			points = append(points, Point(a))
			for i, from := range []string{string(points[1]), ""} {
				id := fmt.Sprintf("other%d%04d", i, round)
				var c *Layer
				if from == "" {
					c = mustCreate(t, s, id, 0)
				} else {
					c = mustCreateFrom(t, s, id, from, 0)
				}
				mounted(t, image, c, func(root string) {
					upset(t, r, root, 10)
					views[Point(id)] = seen(t, root)
				})
				points = append(points, Point(id))
			}
			for _, from := range points {
				for _, to := range points {
					got, err := s.Diff(t.Context(), image, from, to, 10_000)
					if err != nil {
						t.Fatal(err)
					}
					want := Changes{Files: expected(views[from], views[to]), Complete: true}
					want.Total = len(want.Files)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("round %d: Diff(%q, %q) (-want +got):\n%s", round, from, to, diff)
					}
				}
			}
		}
	})
}

func TestDiffListsTheFirstAndCountsAll(t *testing.T) {
	image := imageDir(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
	l := mustCreate(t, s, "manyfiles", 0)
	for _, i := range rand.Perm(3000) {
		writeFile(t, at(l.Fd(), fmt.Sprintf("upper/n%04d", i)), nil)
	}
	got, err := s.Diff(t.Context(), image, "", "manyfiles", 3)
	want := Changes{Files: []Change{{Path: "/n0000", Action: Created}, {Path: "/n0001", Action: Created}, {Path: "/n0002", Action: Created}}, Total: 3000, Complete: true}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Diff: %v (-want +got):\n%s", err, diff)
	}
	if got, err := s.Diff(t.Context(), image, "manyfiles", "", 0); err != nil || got.Total != 3000 || len(got.Files) != 0 {
		t.Errorf("Diff with no room = %d of %d, %v", len(got.Files), got.Total, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Diff(ended, image, "", "manyfiles", 3); !errors.Is(err, context.Canceled) {
		t.Errorf("Diff after the end = %v", err)
	}
	if _, err := s.Diff(t.Context(), image, "", "missinglayer", 3); !fault.Is(err, fault.NotFound) {
		t.Errorf("Diff with nothing = %v, want not found", err)
	}
	if _, err := s.Diff(t.Context(), image, "../../../etc", "", 3); !fault.Is(err, fault.Invalid) {
		t.Errorf("Diff with a path = %v, want invalid", err)
	}
}

// Two files that were written in the same tick of the clock, with the same number and
// size, in disks that know nothing of each other, are told apart by what is in them.
func TestDiffIsNotTakenInByEqualInodes(t *testing.T) {
	needLoop(t)
	image := imageDir(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	stamp := []unix.Timespec{{Sec: 1000}, {Sec: 1000}}
	mustCreate(t, s, "sourcelayer", 0)
	mustSnapshot(t, s, "sourcelayer", "sourcesnapshot")
	for round := range 20 {
		var ids [2]string
		var ls [2]*Layer
		for i := range ids {
			ids[i] = fmt.Sprintf("twin%d%04d", i, round)
			ls[i] = mustCreateFrom(t, s, ids[i], "sourcesnapshot", 0)
		}
		for i, l := range ls {
			writeFile(t, at(l.Fd(), "upper/result"), []byte{byte('a' + i)})
		}
		for _, l := range ls {
			if err := unix.UtimesNanoAt(l.Fd(), "upper/result", stamp, 0); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Diff(t.Context(), image, Point(ids[0]), Point(ids[1]), 3)
		want := Changes{Files: []Change{{Path: "/result", Action: Modified, Size: 1}}, Total: 1, Complete: true}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Diff: %v (-want +got):\n%s", err, diff)
		}
	}
}

// What never changed since a snapshot is not read: a file of a size that no disk has
// would take hours.
func TestDiffDoesNotReadWhatCannotHaveChanged(t *testing.T) {
	needRoot(t)
	image := imageDir(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
	for _, id := range []string{"hugelayer1", "hugelayer2"} {
		l := mustCreate(t, s, id, 0)
		f, err := os.Create(at(l.Fd(), "upper/huge"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte("x"), 1<<42)
		if err := errors.Join(err, f.Close(), os.Chtimes(at(l.Fd(), "upper/huge"), time.Unix(1, 0), time.Unix(1, 0))); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Diff(t.Context(), image, "hugelayer1", "hugelayer2", 3); err != nil || got.Total != 0 {
		t.Errorf("Diff = %+v, %v; want nothing", got, err)
	}
}

func TestDiffOfDeepTreesNeedsFewDescriptors(t *testing.T) {
	needLoop(t)
	image := imageDir(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	const depth = 10_000
	var ls [2]*Layer
	for i := range ls {
		ls[i] = mustCreate(t, s, fmt.Sprintf("deeplayer%d", i), 0)
		upper, err := openDir(ls[i].Fd(), "upper")
		if err != nil {
			t.Fatal(err)
		}
		dig(t, upper, depth)
		unix.Close(upper)
	}
	lowDescriptors(t, 6*maxChain, func() {
		got, err := s.Diff(t.Context(), image, "deeplayer0", "deeplayer1", 10)
		if err != nil || got.Total != depth || !got.Complete { // the files, by their times
			t.Errorf("Diff = %d changes, complete %t, %v; want %d", got.Total, got.Complete, err, depth)
		}
		got, err = s.Diff(t.Context(), image, "deeplayer0", "", 20_000)
		if err != nil || got.Total != 2*depth || len(got.Files) > got.Total {
			t.Errorf("Diff = %d changes, %v; want %d", got.Total, err, 2*depth)
		}
	})
}
