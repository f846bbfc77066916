// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func tracks(t *testing.T, s *suite) {
	s.need(t, runtime.TrackChanges)
	t.Run("AWindowTellsTheDifference", func(t *testing.T) { trackOnce(t, s) })
	t.Run("WhateverIsDone", func(t *testing.T) { trackAnything(t, s) })
	t.Run("ByWhomever", func(t *testing.T) { trackAnybody(t, s) })
	t.Run("TenThousandFilesAreCountedAndSomeListed", func(t *testing.T) { trackMany(t, s) })
}

func trackOnce(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	tracker, ok := b.Instance.(runtime.Tracker)
	if !ok {
		t.Fatal("Probe claims track_changes and the instance is no runtime.Tracker")
	}
	b.ok("echo a > old; echo b > gone")
	w, err := tracker.Track(t.Context(), sandbox.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	b.ok("echo 12345 > new; echo more >> old; rm gone; mkdir -p d/e; echo x > d/e/f; echo not ours > /tmp/elsewhere")
	for range 2 {
		c, err := w.Close(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range c.Files {
			got = append(got, f.Action+" "+f.Path)
		}
		const want = "created d, created d/e, created d/e/f, deleted gone, created new, modified old"
		if strings.Join(got, ", ") != want || !c.Complete {
			t.Errorf("got %q (complete %v), want %q", got, c.Complete, want)
		}
		for _, f := range c.Files {
			if f.Path == "new" && f.Size != 6 {
				t.Errorf("new has size %d, want 6", f.Size)
			}
		}
	}
}

// window opens one on the workspace.
func (b *box) window() runtime.Window {
	b.t.Helper()
	w, err := b.Instance.(runtime.Tracker).Track(b.t.Context(), sandbox.Workspace)
	if err != nil {
		b.t.Fatalf("Track: %v", err)
	}
	return w
}

// changed closes a window whose answer has to be whole.
func (b *box) changed(w runtime.Window) []string {
	b.t.Helper()
	c, err := w.Close(b.t.Context())
	if err != nil || !c.Complete || c.Total != len(c.Files) {
		b.t.Fatalf("got %+v, %v, want a whole answer", c, err)
	}
	return changeLines(c)
}

func changeLines(c sandbox.Changes) []string {
	lines := []string{}
	for _, f := range c.Files {
		lines = append(lines, f.Action+" "+f.Path)
	}
	return lines
}

func (b *box) write(path string) {
	b.t.Helper()
	if _, _, err := b.agent.WriteFile(b.t.Context(), path, strings.NewReader("by the API"), sandbox.WriteFileOptions{Size: 10, MakeParents: true}); err != nil {
		b.t.Fatalf("WriteFile: %v", err)
	}
}

//go:embed changes.py
var changesProgram string

// inside runs the suite's program inside and reads what it prints.
func (b *box) inside(out any, args string) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(b.ok("python3 -S -E /tmp/changes.py "+args)), out); err != nil {
		b.t.Fatalf("%s: %v", args, err)
	}
}

// trackAnything does random steps in one window after another, and compares each
// answer that is Complete with the tree before and after. What a step was about may be told as
// modified though it is the same in the end (a mode set back); nothing else may be
// too much, and nothing too few.
func trackAnything(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	if _, _, err := b.agent.WriteFile(t.Context(), "/tmp/changes.py", strings.NewReader(changesProgram), sandbox.WriteFileOptions{Size: int64(len(changesProgram))}); err != nil {
		t.Fatal(err)
	}
	const rounds, steps = 20, 60
	first := int64(rand.Uint32())
	var before map[string]string
	b.inside(&before, "scan")
	partial := 0
	for round := range int64(rounds) {
		outside, byAPI := fmt.Sprintf("outside-%d", round), fmt.Sprintf("by-api-%d", round)
		b.write(outside)
		w := b.window()
		var about []string
		b.inside(&about, fmt.Sprint("steps ", first+round, " ", steps))
		b.write(byAPI)
		c, err := w.Close(t.Context())
		if err != nil || c.Total != len(c.Files) {
			t.Fatalf("got %+v, %v, want all that changed", c, err)
		}
		got := changeLines(c)
		var after map[string]string
		b.inside(&after, "scan")
		if !c.Complete { // it says so itself; it must not be the rule
			if partial++; partial > rounds/5 {
				t.Fatalf("%d of %d answers are not complete", partial, round+1)
			}
			before = after
			continue
		}
		before[outside] = after[outside]

		want, may := map[string]bool{}, map[string]bool{}
		for name, is := range after {
			was, had := before[name]
			switch {
			case !had:
				want["created "+name] = true
			case was != is:
				want["modified "+name] = true
			case name != outside:
				may["modified "+name] = slices.ContainsFunc(about, func(a string) bool {
					return a == name || strings.HasPrefix(name, a+"/") // it may have been made anew
				})
			}
		}
		for name := range before {
			if _, has := after[name]; !has {
				want["deleted "+name] = true
			}
		}
		if !want["created "+byAPI] {
			t.Fatal("the scan does not see what the API wrote")
		}
		for _, line := range got {
			if !want[line] && !may[line] {
				t.Errorf("seed %d: %q is told and did not happen", first+round, line)
			}
			delete(want, line)
		}
		for line := range want {
			t.Errorf("seed %d: %q happened and is not told", first+round, line)
		}
		if t.Failed() {
			return
		}
		before = after
	}
}

// trackAnybody has others than the command that a window is for change files in
// its time, and out of it.
func trackAnybody(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	b.ok("mkdir d; echo x > d/old")
	p, err := b.agent.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: `while read -r name; do
		echo x > "$name"; rm -f /tmp/done; echo > /tmp/done; done`, StreamStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	background := func(name string) {
		t.Helper()
		b.ok("rm -f /tmp/done")
		if _, err := p.Write([]byte(name + "\n")); err != nil {
			t.Fatal(err)
		}
		b.ok("while ! [ -e /tmp/done ]; do sleep 0.01; done")
	}
	background("before")
	b.write("api-before")
	w := b.window()
	b.ok("echo x > mine")
	background("d/background")
	b.write("d/old")
	if o := b.asRoot("echo x > /workspace/by-root; chown 0 /workspace/mine"); o.ExitCode != 0 {
		t.Errorf("%+v", o)
	}
	if err := b.agent.Move(t.Context(), "d", "moved", sandbox.MoveFileOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"created by-root", "deleted d", "deleted d/old", "created mine", "created moved", "created moved/background", "created moved/old",
	}
	if got := b.changed(w); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	background("after")
	b.write("api-after")
	if got := b.changed(b.window()); len(got) != 0 {
		t.Errorf("got %q of a window in which nothing was done", got)
	}
}

// trackMany makes more files than an answer lists.
func trackMany(t *testing.T, s *suite) {
	spec := s.spec()
	b := s.create(t, spec)
	const n = 10_000
	w := b.window()
	b.ok(fmt.Sprintf("python3 -c 'import os\nfor i in range(%d): os.close(os.open(f\"f{i}\", os.O_CREAT|os.O_WRONLY))'", n))
	c, err := w.Close(t.Context())
	if err != nil || !c.Complete || c.Total != n || len(c.Files) == 0 || len(c.Files) >= n {
		t.Errorf("got %d of %d, complete %v, %v; want some of %d", len(c.Files), c.Total, c.Complete, err, n)
	}
	w = b.window()
	b.ok("find . -name 'f*' -delete")
	if c, err := w.Close(t.Context()); err != nil || !c.Complete || c.Total != n || c.Files[0].Action != "deleted" {
		t.Errorf("got %d of %d, complete %v, %v; want %d deleted", len(c.Files), c.Total, c.Complete, err, n)
	}
}
