// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"sandpit.dev/linux/changes"
)

// thing is a file or directory of the model, whatever its names.
type thing struct {
	version int
	linked  bool // ever had two names: then only one of them is sure to be listed
}

// state of a thing at one moment.
type state struct {
	thing   *thing
	version int
}

// tree is the model: what a listing of the whole overlay would give. A step
// that the kernel refused leaves it as it was.
type tree map[string]*thing

func (m tree) snapshot() map[string]state {
	s := make(map[string]state)
	for name, it := range m {
		s[name] = state{it, it.version}
	}
	return s
}

// take removes a name and everything below it, and gives it with relative names.
func (m tree) take(name string) tree {
	out := tree{}
	for at, it := range m {
		if rest, ok := strings.CutPrefix(at, name); ok && (rest == "" || rest[0] == '/') {
			out[rest] = it
			delete(m, at)
		}
	}
	return out
}

func (m tree) put(name string, sub tree) {
	m.take(name)
	for rest, it := range sub {
		m[name+rest] = it
	}
}

// between returns the difference of two listings below workspace, without the
// names of files with several links.
func between(a, b map[string]state) []string {
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(union(a, b))) {
		rel, ok := strings.CutPrefix(name, "workspace/")
		if !ok || loose(a, b, name) {
			continue
		}
		was, had := a[name]
		is, has := b[name]
		switch {
		case !had:
			out = append(out, "created "+rel)
		case !has:
			out = append(out, "deleted "+rel)
		case was != is:
			out = append(out, "modified "+rel)
		}
	}
	return out
}

func loose(a, b map[string]state, name string) bool {
	was, had := a[name]
	is, has := b[name]
	return had && was.thing.linked || has && is.thing.linked
}

func union(a, b map[string]state) map[string]state {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// sure drops the names that between drops.
func sure(got []string, a, b map[string]state) []string {
	return slices.DeleteFunc(got, func(line string) bool {
		_, name, _ := strings.Cut(line, " ")
		return loose(a, b, "workspace/"+name)
	})
}

// step does one random system call, on disk and in the model.
func (m tree) step(t *rapid.T, top string) string {
	names := []string{"a", "b", "c"}
	pick := func(label string) string {
		dir := rapid.SampledFrom([]string{"workspace", "workspace", "workspace", "workspace", "tmp"}).Draw(t, label+" top")
		parts := rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(t, label)
		return path.Join(append([]string{dir}, parts...)...)
	}
	op := rapid.SampledFrom([]string{
		"write", "write", "append", "truncate", "chmod", "rm", "rm", "rmall", "mkdir", "mkdir",
		"rename", "rename", "rename", "exchange", "symlink", "link", "save",
	}).Draw(t, "op")
	one, two := pick("path"), ""
	if op == "rename" || op == "exchange" || op == "link" {
		two = pick("to")
	}
	m.do(op, top, one, two)
	return strings.TrimSpace(op + " " + one + " " + two)
}

// do does one step, on disk and in the model.
func (m tree) do(op, top, one, two string) {
	p, q := top+"/"+one, top+"/"+two
	touch := func(name string) {
		if it := m[name]; it != nil {
			it.version++
		} else {
			m[name] = &thing{}
		}
	}
	switch op {
	case "write":
		if os.WriteFile(p, []byte("x"), 0o644) == nil {
			touch(one)
		}
	case "append":
		if f, err := os.OpenFile(p, os.O_WRONLY|os.O_APPEND, 0); err == nil {
			f.WriteString("y")
			f.Close()
			touch(one)
		}
	case "truncate":
		if os.Truncate(p, 3) == nil {
			touch(one)
		}
	case "chmod":
		if os.Chmod(p, 0o755) == nil {
			touch(one)
		}
	case "rm":
		if os.Remove(p) == nil {
			delete(m, one)
		}
	case "rmall":
		if os.RemoveAll(p) == nil {
			m.take(one)
		}
	case "mkdir":
		if os.Mkdir(p, 0o755) == nil {
			m[one] = &thing{}
		}
	case "symlink":
		if os.Symlink("nowhere/at/all", p) == nil {
			m[one] = &thing{}
		}
	case "save": // as editors do
		tmp := path.Dir(one) + "/.tmp"
		if os.WriteFile(top+"/"+tmp, []byte("z"), 0o644) == nil {
			if unix.Rename(top+"/"+tmp, p) == nil {
				m[one] = &thing{}
			} else {
				os.Remove(top + "/" + tmp)
			}
		}
	case "rename", "exchange", "link":
		if m[one] != nil && m[one] == m[two] {
			return
		}
		switch op {
		case "rename":
			if unix.Rename(p, q) == nil {
				m.put(two, m.take(one))
			}
		case "exchange":
			if unix.Renameat2(unix.AT_FDCWD, p, unix.AT_FDCWD, q, unix.RENAME_EXCHANGE) == nil {
				x, y := m.take(one), m.take(two)
				m.put(one, y)
				m.put(two, x)
			}
		case "link":
			if os.Link(p, q) == nil {
				m[two] = m[one]
				m[one].linked = true
			}
		}
	}
}

// TestAnAnswerIsTheDifferenceOfTheTree does random steps over a small tree, in
// overlapping windows, and compares each answer with the model.
func TestAnAnswerIsTheDifferenceOfTheTree(t *testing.T) {
	g := newGroup(t, changes.Options{})
	base := t.TempDir()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		dir := fmt.Sprintf("%s/%d", base, runs)
		defer os.RemoveAll(dir)
		o := newOverlay(t, dir, map[string]string{"workspace/a/a": "1", "workspace/a/b/c": "2", "workspace/b": "3", "tmp/c": "4"})
		defer o.mount.Close()
		s, err := g.Add(o.mount, []string{dir + "/lower"})
		must(t, err)
		defer s.Close()
		m := tree{}
		for _, name := range []string{"a", "a/a", "a/b", "a/b/c", "b"} {
			m["workspace/"+name] = &thing{}
		}
		m["tmp/c"] = &thing{}

		type window struct {
			tracker *changes.Tracker
			before  map[string]state
			log     []string
		}
		var open []*window
		end := func(i int) {
			w := open[i]
			open = slices.Delete(open, i, i+1)
			after := m.snapshot()
			c, err := w.tracker.Stop(t.Context())
			if err != nil || !c.Complete || c.Truncated {
				rt.Fatalf("the answer is %+v, %v, want a whole one, after:\n%s", c, err, strings.Join(w.log, "\n"))
			}
			if diff := cmp.Diff(sure(lines(c), w.before, after), between(w.before, after)); diff != "" {
				rt.Fatalf("got - want +\n%s\nafter:\n%s", diff, strings.Join(w.log, "\n"))
			}
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				tr, err := s.Track("/workspace")
				must(t, err)
				open = append(open, &window{tracker: tr, before: m.snapshot()})
			case 1:
				if len(open) > 0 {
					end(rapid.IntRange(0, len(open)-1).Draw(rt, "which"))
				}
			case 2:
				s.Drain() // what the reader does at any time
			default:
				said := m.step(rt, o.top)
				for _, w := range open {
					w.log = append(w.log, said)
				}
			}
		}
		for len(open) > 0 {
			end(0)
		}
	})
}
