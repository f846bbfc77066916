// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func watches(t *testing.T, s *suite) {
	s.need(t, runtime.WatchFiles)
	t.Run("TellWhatCommandsAndTheFileAPIDo", func(t *testing.T) {
		b := s.create(t, s.spec())
		b.ok("mkdir -p deep/er; echo x > old; echo x > outside; mv outside ../tmp/")
		flat, all := b.watch(".", false), b.watch(".", true)
		b.ok("mkdir new; mv old deep/er/old; : > deep/er/made; rm deep/er/made; chmod 600 deep/er/old")
		all.until("attributes deep/er/old") // a directory that moves before its events are read may be told at its new place
		b.ok("mv deep/er shallow; mv ../tmp/outside inside; echo more >> shallow/old")
		if _, _, err := b.agent.WriteFile(t.Context(), "shallow/by-api", strings.NewReader("x"), sandbox.WriteFileOptions{Size: 1}); err != nil {
			t.Fatal(err)
		}
		b.ok("echo > last")
		want := []string{
			"created new/", "renamed old > deep/er/old", "created deep/er/made", "deleted deep/er/made", "attributes deep/er/old",
			"renamed deep/er/ > shallow/", "created inside", "modified shallow/old", "created last",
		}
		got := flatOrder(all.until("created last"), want)
		if !slices.Equal(got, want) {
			t.Errorf("recursive: got %q, want %q", got, want)
		}
		want = []string{"created new/", "deleted old", "created shallow/", "created inside", "created last"}
		got = flatOrder(flat.until("created last"), want)
		if !slices.Equal(got, want) {
			t.Errorf("not recursive: got %q, want %q", got, want)
		}
		for _, line := range flat.lines {
			if _, name, _ := strings.Cut(line, " "); strings.Contains(strings.TrimSuffix(name, "/"), "/") {
				t.Errorf("a watch that is not recursive tells %q", line)
			}
		}
	})
	t.Run("AreRefusedWhereThereIsNothingToWatch", func(t *testing.T) {
		b := s.create(t, s.spec())
		b.ok("echo > file; ln -s /etc etc; mkdir real; ln -s real link")
		w := b.Instance.(runtime.Watcher)
		for dir, want := range map[string]fault.Code{
			"/workspace/none": fault.NotFound, "/workspace/file": fault.Invalid, "/workspace/etc": fault.Invalid, "/workspace/link": fault.Invalid,
			"/workspace/../../../../workspace/none": fault.NotFound,
		} {
			_, err := w.Watch(t.Context(), dir, runtime.WatchOptions{})
			wantCode(t, dir, err, want)
		}
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		_, err := w.Watch(t.Context(), "/workspace", runtime.WatchOptions{})
		wantCode(t, "one that is down", err, fault.State)
	})
	t.Run("EndWithTheirDirectory", func(t *testing.T) {
		b := s.create(t, s.spec())
		b.ok("mkdir a b")
		gone, moved := b.watch("a", true), b.watch("b", true)
		b.ok("echo > a/f; rm -r a; mkdir a; mv b c")
		gone.wantEnd(fault.NotFound)
		moved.wantEnd(fault.NotFound)
	})
	t.Run("EndWithTheirSandbox", func(t *testing.T) {
		b := s.create(t, s.spec())
		w := b.watch(".", true)
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		w.wantEnd(fault.State)
	})
	t.Run("EndWithTheirCaller", func(t *testing.T) {
		b := s.create(t, s.spec())
		w := b.watch(".", true)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		b.ok("echo > still")
		w.until("created still")
		for range 2 {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
		w.wantEnd(fault.State)
	})
	t.Run("LoseNothingOfThousandsOfFiles", func(t *testing.T) {
		b := s.create(t, s.spec())
		const n = 5000
		w := b.watch(".", true)
		var wg sync.WaitGroup
		wg.Go(func() {
			o := b.run(fmt.Sprintf("python3 -c 'import os\nfor i in range(%d): os.close(os.open(f\"f{i}\", os.O_CREAT|os.O_WRONLY))\nos.mkdir(\"end\")'", n))
			if o.ExitCode != 0 {
				t.Errorf("%+v", o)
			}
		})
		made := 0
		for _, line := range w.until("created end/") {
			if strings.HasPrefix(line, "created f") {
				made++
			}
			if strings.HasPrefix(line, "dropped") {
				t.Error(line)
			}
		}
		wg.Wait()
		if made != n {
			t.Errorf("%d were told, want %d", made, n)
		}
	})
}

// flatOrder keeps of got what is in want.
func flatOrder(got, want []string) []string {
	return slices.DeleteFunc(slices.Clone(got), func(line string) bool { return !slices.Contains(want, line) })
}

// follower is a watch in a test, with what it told so far.
type follower struct {
	runtime.Watch
	t     *testing.T
	lines []string
}

func (b *box) watch(dir string, recursive bool) *follower {
	b.t.Helper()
	dir = strings.TrimSuffix(sandbox.Workspace+"/"+strings.TrimPrefix(dir, "."), "/")
	w, err := b.Instance.(runtime.Watcher).Watch(b.t.Context(), dir, runtime.WatchOptions{Recursive: recursive})
	if err != nil {
		b.t.Fatalf("Watch: %v", err)
	}
	b.t.Cleanup(func() { _ = w.Close() })
	return &follower{Watch: w, t: b.t}
}

// until reads up to a line, and gives all so far.
func (f *follower) until(line string) []string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	for !slices.Contains(f.lines, line) {
		events, err := f.Next(ctx)
		if err != nil {
			f.t.Fatalf("waiting for %q: %v, after %q", line, err, f.lines)
		}
		f.took(events)
	}
	return f.lines
}

func (f *follower) took(events []sandbox.FileEvent) {
	for _, e := range events {
		slash := ""
		if e.IsDir {
			slash = "/"
		}
		short := func(name string) string { return strings.TrimPrefix(name, sandbox.Workspace+"/") + slash }
		line := string(e.Type) + " " + short(e.Path)
		if e.From != "" {
			line = string(e.Type) + " " + short(e.From) + " > " + short(e.Path)
		}
		f.lines = append(f.lines, line)
	}
}

// wantEnd reads to the end of the watch.
func (f *follower) wantEnd(code fault.Code) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	for {
		events, err := f.Next(ctx)
		if err != nil {
			wantCode(f.t, "the end of a watch", err, code)
			return
		}
		f.took(events)
	}
}
