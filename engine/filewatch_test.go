// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/files"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// watching is a watch that runs beside the test.
type watching struct {
	t      testing.TB
	cancel context.CancelFunc
	end    files.WatchEnd
	err    error
	over   chan struct{}

	mu    sync.Mutex
	lines []string
	news  chan struct{}
}

func (h *house) watch(ref string, r files.WatchRequest) *watching {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watching{t: h.t, cancel: cancel, over: make(chan struct{}), news: make(chan struct{}, 1)}
	begun, last := make(chan struct{}), int64(0)
	go func() {
		defer close(w.over)
		w.end, w.err = h.files.WatchFiles(ctx, alice, ref, r, func(events []sandbox.FileEvent) error {
			if events == nil {
				close(begun)
				return nil
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, e := range events {
				if last++; e.Seq != last {
					h.t.Errorf("seq: got %d, want %d", e.Seq, last)
				}
				w.lines = append(w.lines, string(e.Type)+" "+e.Path)
			}
			select {
			case w.news <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	h.t.Cleanup(func() { cancel(); <-w.over })
	select {
	case <-begun:
	case <-w.over:
		h.t.Fatalf("the watch ended before it began: %+v, %v", w.end, w.err)
	}
	return w
}

func (w *watching) until(line string) {
	w.t.Helper()
	deadline := time.After(time.Minute)
	for {
		w.mu.Lock()
		found, lines := slices.Contains(w.lines, line), slices.Clone(w.lines)
		w.mu.Unlock()
		if found {
			return
		}
		select {
		case <-w.news:
		case <-w.over:
			w.t.Fatalf("the watch ended (%+v, %v) before %q, after %q", w.end, w.err, line, lines)
		case <-deadline:
			w.t.Fatalf("no %q after %q", line, lines)
		}
	}
}

func TestWatchFiles(t *testing.T) {
	t.Run("TellsOfCommandsAndOfTheFileAPI", func(t *testing.T) {
		h := open(t, t.TempDir(), sees)
		s := h.create(engine.CreateRequest{})
		h.exec(s.Ref(), "mkdir d")
		top, all := h.watch(s.Ref(), files.WatchRequest{Path: sandbox.Workspace}), h.watch(s.Ref(), files.WatchRequest{Path: ".", Recursive: true})
		h.exec(s.Ref(), "mkdir e")
		all.until("created /workspace/e") // what comes and goes in a new directory before the fake watches it is in no list
		h.exec(s.Ref(), "echo x > d/f; mv d/f e/")
		if err := h.files.RemoveFile(t.Context(), alice, s.Ref(), "e/f", sandbox.RemoveFileOptions{}); err != nil {
			t.Fatal(err)
		}
		h.exec(s.Ref(), "mkdir last")
		all.until("created /workspace/d/f")
		all.until("deleted /workspace/e/f")
		top.until("created /workspace/last")
		if slices.Contains(top.lines, "created /workspace/d/f") {
			t.Errorf("a watch that is not recursive told %q", top.lines)
		}
	})
	t.Run("IsRefused", func(t *testing.T) {
		h := open(t, t.TempDir(), sees)
		s := h.create(engine.CreateRequest{})
		h.exec(s.Ref(), "echo > file; mkdir d; ln -s d link")
		for path, want := range map[string]fault.Code{"": fault.Invalid, "a\x00": fault.Invalid, "none": fault.NotFound, "file": fault.Invalid, "link": fault.Invalid} {
			_, err := h.files.WatchFiles(t.Context(), alice, s.Ref(), files.WatchRequest{Path: path}, nil)
			if fault.Of(err) != want {
				t.Errorf("%q: got %v, want %s", path, err, want)
			}
		}
		for _, c := range []access.Caller{{Project: "other", Scopes: []access.Scope{access.SandboxesRead}}, {Project: access.DefaultProject}} {
			if _, err := h.files.WatchFiles(t.Context(), c, s.Ref(), files.WatchRequest{Path: "d"}, nil); err == nil {
				t.Errorf("%+v may watch", c)
			}
		}
		_, err := h.engine.Stop(t.Context(), alice, s.Ref())
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.files.WatchFiles(t.Context(), alice, s.Ref(), files.WatchRequest{Path: "d"}, nil)
		if !fault.Is(err, fault.State) {
			t.Errorf("a stopped one: got %v", err)
		}
	})
	t.Run("AreBoundedForAProject", func(t *testing.T) {
		h := open(t, t.TempDir(), sees)
		h.files = files.New(h.engine, 2)
		one, two := h.create(engine.CreateRequest{}), h.create(engine.CreateRequest{})
		first := h.watch(one.Ref(), files.WatchRequest{Path: "."})
		h.watch(two.Ref(), files.WatchRequest{Path: "."})
		for _, s := range []*sandbox.Sandbox{one, two} {
			_, err := h.files.WatchFiles(t.Context(), alice, s.Ref(), files.WatchRequest{Path: "."}, nil)
			if !fault.Is(err, fault.Exhausted) || fault.As(err).Remedy == "" {
				t.Errorf("a third: got %v, want it refused with what would help", err)
			}
		}
		first.cancel()
		<-first.over
		h.watch(two.Ref(), files.WatchRequest{Path: "."}) // there is room again
	})
	t.Run("AreBoundedForEachProjectByItself", func(t *testing.T) {
		h := open(t, t.TempDir(), sees)
		h.files = files.New(h.engine, 1)
		s := h.create(engine.CreateRequest{})
		h.watch(s.Ref(), files.WatchRequest{Path: "."})
		bob := access.Caller{Project: "other", Scopes: alice.Scopes}
		theirs, _, err := h.engine.Create(t.Context(), bob, engine.CreateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		enough := errors.New("enough")
		_, err = h.files.WatchFiles(t.Context(), bob, theirs.Ref(), files.WatchRequest{Path: "."}, func([]sandbox.FileEvent) error { return enough })
		if !errors.Is(err, enough) {
			t.Errorf("another project's first: got %v, want it to begin", err)
		}
	})
	t.Run("EndsWithTheDirectory", func(t *testing.T) {
		h := open(t, t.TempDir(), sees)
		s := h.create(engine.CreateRequest{})
		h.exec(s.Ref(), "mkdir d")
		w := h.watch(s.Ref(), files.WatchRequest{Path: "d"})
		h.exec(s.Ref(), "rmdir d")
		<-w.over
		if w.err != nil || w.end.Reason != files.WatchRemoved {
			t.Errorf("got %+v, %v", w.end, w.err)
		}
	})
	t.Run("EndsWithTheSandbox", func(t *testing.T) {
		h := open(t, t.TempDir(), sees)
		s := h.create(engine.CreateRequest{})
		w := h.watch(s.Ref(), files.WatchRequest{Path: "."})
		_, err := h.engine.Stop(t.Context(), alice, s.Ref())
		if err != nil {
			t.Fatal(err)
		}
		<-w.over
		if w.err != nil || w.end.Reason != files.WatchStopped {
			t.Errorf("got %+v, %v", w.end, w.err)
		}
	})
	t.Run("EndsWithTheCallerTheSinkAndTheEngine", func(t *testing.T) {
		h := open(t, t.TempDir(), sees)
		s := h.create(engine.CreateRequest{})
		w := h.watch(s.Ref(), files.WatchRequest{Path: "."})
		w.cancel()
		<-w.over
		if !errors.Is(w.err, context.Canceled) {
			t.Errorf("the caller: got %v", w.err)
		}
		enough := errors.New("enough")
		_, err := h.files.WatchFiles(t.Context(), alice, s.Ref(), files.WatchRequest{Path: "."}, func([]sandbox.FileEvent) error { return enough })
		if !errors.Is(err, enough) {
			t.Errorf("the sink: got %v", err)
		}
		w = h.watch(s.Ref(), files.WatchRequest{Path: "."})
		h.end()
		<-w.over
		if !fault.Is(w.err, fault.Unavailable) {
			t.Errorf("the engine: got %v", w.err)
		}
	})
	t.Run("KeepsTheSandboxFromIdling", func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			h := open(t, dir, func(o *engine.Options) { o.Runtimes["memory"] = quiet{o.Runtimes["memory"]} })
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute)})
			w := h.watch(s.Ref(), files.WatchRequest{Path: "."})
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := h.get(s.ID).State; got != sandbox.Running {
				t.Errorf("watched for an hour it is %s", got)
			}
			w.cancel()
			<-w.over
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if got := h.get(s.ID).State; got != sandbox.Stopped {
				t.Errorf("two minutes after the watch it is %s", got)
			}
		})
	})
	t.Run("IsUnsupportedWhereTheRuntimeCannot", func(t *testing.T) {
		h := open(t, t.TempDir()) // the faulty driver's instances are no watchers
		s := h.create(engine.CreateRequest{})
		_, err := h.files.WatchFiles(t.Context(), alice, s.Ref(), files.WatchRequest{Path: "."}, nil)
		if !fault.Is(err, fault.Unsupported) || fault.As(err).Remedy == "" {
			t.Errorf("got %v", err)
		}
	})
}

// sees takes the wrapping off the memory runtime's driver, whose instances are watchers.
func sees(o *engine.Options) { o.Runtimes["memory"] = o.Runtimes["memory"].(*faulty).Driver }

// quiet is a driver in whose sandboxes nothing is ever seen to change. It waits
// as fake clocks can see, which the kernel does not.
type quiet struct{ runtime.Driver }

func (q quiet) Create(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
	i, err := q.Driver.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return quietInstance{i}, nil
}

type quietInstance struct{ runtime.Instance }

func (quietInstance) Watch(context.Context, string, runtime.WatchOptions) (runtime.Watch, error) {
	return quietWatch{}, nil
}

type quietWatch struct{}

func (quietWatch) Close() error { return nil }

func (quietWatch) Next(ctx context.Context) ([]sandbox.FileEvent, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
