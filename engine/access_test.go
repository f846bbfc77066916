// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/files"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/sandbox"
)

// verbs are all that can be done with one sandbox, and the scope it needs.
func verbs() map[string]struct {
	scope access.Scope
	do    func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error
} {
	type verb = struct {
		scope access.Scope
		do    func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error
	}
	const read, write = access.SandboxesRead, access.SandboxesWrite
	return map[string]verb{
		"Get": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Get(ctx, c, ref)
			return err
		}},
		"Update": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Update(ctx, c, ref, update.Patch{Metadata: &map[string]string{"a": "b"}})
			return err
		}},
		"SetSecret": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := secrets.NewService(e).SetSecret(ctx, c, ref, secrets.Request{Name: "A", Value: "a value"})
			return err
		}},
		"Secrets": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := secrets.NewService(e).Secrets(ctx, c, ref)
			return err
		}},
		"Secret": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := secrets.NewService(e).Secret(ctx, c, ref, "A")
			return err
		}},
		"DeleteSecret": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			return secrets.NewService(e).DeleteSecret(ctx, c, ref, "A")
		}},
		"Start": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Start(ctx, c, ref)
			return err
		}},
		"Exec": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Exec(ctx, c, ref, engine.ExecRequest{Shell: "true"}, nil)
			return err
		}},
		"Terminal": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			t, err := e.Terminal(ctx, c, ref, engine.TerminalRequest{Shell: "true"})
			if err == nil {
				_ = t.Close()
			}
			return err
		}},
		"Process": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Process(ctx, c, ref, sandbox.NewProcessID())
			return err
		}},
		"Processes": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Processes(ctx, c, ref)
			return err
		}},
		"ListProcesses": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.ListProcesses(ctx, c, ref, process.Query{})
			return err
		}},
		"WaitProcess": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.WaitProcess(ctx, c, ref, sandbox.NewProcessID(), time.Millisecond)
			return err
		}},
		"Follow": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			f, err := e.Follow(ctx, c, ref, sandbox.NewProcessID(), engine.FollowRequest{})
			if err == nil {
				f.Close()
			}
			return err
		}},
		"StartProcess": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.StartProcess(ctx, c, ref, engine.StartRequest{Shell: "true"})
			return err
		}},
		"SignalProcess": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			return e.SignalProcess(ctx, c, ref, sandbox.NewProcessID(), 15, false)
		}},
		"ResizeProcess": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			return e.ResizeProcess(ctx, c, ref, sandbox.NewProcessID(), 80, 24)
		}},
		"WriteInput": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.WriteInput(ctx, c, ref, sandbox.NewProcessID(), engine.InputRequest{})
			return err
		}},
		"KillProcess": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			return e.KillProcess(ctx, c, ref, sandbox.NewProcessID())
		}},
		"KillAll": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			return e.KillAll(ctx, c, ref)
		}},
		"ReadFile": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, r, err := files.New(e, 0).ReadFile(ctx, c, ref, "f", sandbox.ReadFileOptions{})
			if err == nil {
				_ = r.Close()
			}
			return err
		}},
		"WriteFile": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, _, err := files.New(e, 0).WriteFile(ctx, c, ref, "f", strings.NewReader("x"), sandbox.WriteFileOptions{})
			return err
		}},
		"StatFile": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := files.New(e, 0).StatFile(ctx, c, ref, ".", "")
			return err
		}},
		"ListFiles": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, _, err := files.New(e, 0).ListFiles(ctx, c, ref, ".", sandbox.ListFilesOptions{})
			return err
		}},
		"Departed": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Departed(ctx, c, ref)
			return err
		}},
		"SearchFiles": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, _, _, err := files.New(e, 0).SearchFiles(ctx, c, ref, ".", sandbox.SearchFilesOptions{Pattern: "x"})
			return err
		}},
		"ChangeFile": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := files.New(e, 0).ChangeFile(ctx, c, ref, ".", sandbox.ChangeFileOptions{Attributes: map[string]string{"k": "v"}})
			return err
		}},
		"ReplaceInFiles": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := files.New(e, 0).ReplaceInFiles(ctx, c, ref, []string{"none"}, sandbox.ReplaceFilesOptions{Pattern: "x"})
			return err
		}},
		"MakeDir": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			return files.New(e, 0).MakeDir(ctx, c, ref, "d", sandbox.MakeDirOptions{Parents: true})
		}},
		"MoveFile": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			return files.New(e, 0).MoveFile(ctx, c, ref, "d", "e", sandbox.MoveFileOptions{})
		}},
		"RemoveFile": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			return files.New(e, 0).RemoveFile(ctx, c, ref, "e", sandbox.RemoveFileOptions{Recursive: true})
		}},
		"Activity": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, _, err := e.Activity(ctx, c, ref, engine.ActivityRequest{})
			return err
		}},
		"CreateSnapshot": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.CreateSnapshot(ctx, c, ref, engine.SnapshotRequest{})
			return err
		}},
		"Rollback": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Rollback(ctx, c, ref, "base")
			return err
		}},
		"Reset": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Reset(ctx, c, ref)
			return err
		}},
		"Restart": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Restart(ctx, c, ref)
			return err
		}},
		"Fork": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Fork(ctx, c, ref, engine.ForkRequest{})
			return err
		}},
		"Snapshots": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Snapshots(ctx, c, snapshot.Query{Sandbox: ref})
			return err
		}},
		"Diff": {read, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Diff(ctx, c, ref, engine.DiffRequest{})
			return err
		}},
		"Stop": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			_, err := e.Stop(ctx, c, ref)
			return err
		}},
		"Delete": {write, func(ctx context.Context, e *engine.Engine, c access.Caller, ref string) error {
			return e.Delete(ctx, c, ref)
		}},
	}
}

func TestEveryVerb(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	refs := map[string]string{"id": string(s.ID), "key": "box", "no id": string(sandbox.NewID()), "no key": "nobody", "no name": "a/b"}
	nobody := access.Caller{Project: "default", Actor: "nobody"}
	reader := access.Caller{Project: "default", Actor: "reader", Scopes: []access.Scope{access.SandboxesRead}}
	before := len(h.events(s.ID))
	for _, name := range slices.Sorted(maps.Keys(verbs())) {
		verb := verbs()[name]
		t.Run(name+"/FindsNothingOfAnotherProject", func(t *testing.T) {
			var messages []string
			for _, what := range []string{"id", "key"} {
				err := verb.do(t.Context(), h.engine, mary, refs[what])
				wantCode(t, err, fault.NotFound)
				messages = append(messages, strings.ReplaceAll(fault.As(err).Message, strconv.Quote(refs[what]), "X"))
			}
			for _, what := range []string{"no id", "no key", "no name"} {
				err := verb.do(t.Context(), h.engine, alice, refs[what])
				wantCode(t, err, fault.NotFound)
				messages = append(messages, strings.ReplaceAll(fault.As(err).Message, strconv.Quote(refs[what]), "X"))
			}
			if c := slices.Compact(messages); len(c) != 1 {
				t.Errorf("a foreign sandbox can be told from a missing one: %q", c)
			}
		})
		t.Run(name+"/NeedsItsScope", func(t *testing.T) {
			wantCode(t, verb.do(t.Context(), h.engine, nobody, "box"), fault.Denied)
			if verb.scope == access.SandboxesWrite {
				wantCode(t, verb.do(t.Context(), h.engine, reader, "box"), fault.Denied)
			} else if err := verb.do(t.Context(), h.engine, reader, "box"); fault.Is(err, fault.Denied) {
				t.Errorf("reading is enough: %v", err)
			}
		})
	}
	for _, ev := range h.events(s.ID)[before:] {
		if ev.Actor != "reader" {
			t.Errorf("a refused call left an event: %+v", ev)
		}
	}
	t.Run("Create/NeedsItsScope", func(t *testing.T) {
		_, _, err := h.engine.Create(t.Context(), reader, engine.CreateRequest{})
		wantCode(t, err, fault.Denied)
	})
	t.Run("List/IsOfTheProject", func(t *testing.T) {
		p, err := h.engine.List(t.Context(), mary, engine.SandboxesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		checktest.Len(t, "Items", p.Items, 0)
		checktest.Equal(t, "Total", p.Total, 0)
		p, err = h.engine.List(t.Context(), reader, engine.SandboxesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		checktest.Len(t, "Items", p.Items, 1)
		checktest.Equal(t, "Total", p.Total, 1)
		checktest.Equal(t, "Counts[sandbox.Running]", p.Counts[sandbox.Running], 1)
		_, err = h.engine.List(t.Context(), nobody, engine.SandboxesRequest{})
		wantCode(t, err, fault.Denied)
	})
	t.Run("List/ChecksItsFields", func(t *testing.T) {
		for _, q := range []engine.SandboxesRequest{{Limit: -1}, {Limit: engine.MaxPage + 1}, {Offset: -1}, {States: []sandbox.State{"odd"}}} {
			_, err := h.engine.List(t.Context(), alice, q)
			wantCode(t, err, fault.Invalid)
		}
	})
	t.Run("Images/NeedTheirScopes", func(t *testing.T) {
		_, err := h.images().Images(t.Context(), nobody)
		wantCode(t, err, fault.Denied)
		_, err = h.images().BuildImage(t.Context(), alice, "python")
		wantCode(t, err, fault.Denied)
		_, err = h.images().PullImage(t.Context(), alice, "debian")
		wantCode(t, err, fault.Denied)
		_, err = h.images().ImportImages(t.Context(), alice, nil, "")
		wantCode(t, err, fault.Denied)
		_, err = h.images().PullImage(t.Context(), chief, "debian") // the test's images are no store
		wantCode(t, err, fault.Unsupported)
		st, err := h.images().BuildImage(t.Context(), chief, "")
		if err != nil || st.Name != "python" {
			t.Errorf("got %+v, %v", st, err)
		}
	})
	t.Run("Info/TellsWhatWorks", func(t *testing.T) {
		_, err := h.engine.Info(t.Context(), nobody)
		wantCode(t, err, fault.Denied)
		info, err := h.engine.Info(t.Context(), reader)
		if err != nil {
			t.Fatal(err)
		}
		checktest.Len(t, "Runtimes", info.Runtimes, 1)
		checktest.Equal(t, "Runtimes[0].Name", info.Runtimes[0].Name, "memory")
		checktest.Equal(t, "Counts[sandbox.Running]", info.Counts[sandbox.Running], 1)
	})
}

func TestFiles(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	_, created, err := h.files.WriteFile(t.Context(), alice, "box", "dir/f", strings.NewReader("hello"), sandbox.WriteFileOptions{MakeParents: true})
	if err != nil || !created {
		t.Fatalf("WriteFile: created %v, %v", created, err)
	}
	info, r, err := h.files.ReadFile(t.Context(), alice, "box", "dir/f", sandbox.ReadFileOptions{Offset: 1, Length: 3})
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil || string(data) != "ell" || info.Size != 5 {
		t.Errorf("got %q of %d bytes, %v", data, info.Size, err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := h.files.ReadFile(t.Context(), alice, "box", "missing", sandbox.ReadFileOptions{}); fault.Of(err) != fault.NotFound {
		t.Errorf("a missing file: %v", err)
	}
	if err := h.files.MoveFile(t.Context(), alice, "box", "dir/f", "g", sandbox.MoveFileOptions{}); err != nil {
		t.Error(err)
	}
	if err := h.files.MakeDir(t.Context(), alice, "box", "d", sandbox.MakeDirOptions{}); err != nil {
		t.Error(err)
	}
	if err := h.files.RemoveFile(t.Context(), alice, "box", "d", sandbox.RemoveFileOptions{}); err != nil {
		t.Error(err)
	}
	list, more, err := h.files.ListFiles(t.Context(), alice, "box", ".", sandbox.ListFilesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, "more", more, false)
	checktest.Len(t, "list", list, 2)
	if info, err := h.files.StatFile(t.Context(), alice, "box", "g", ""); err != nil || info.Size != 5 {
		t.Errorf("got %+v, %v", info, err)
	}
	evs := h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventUpload, sandbox.EventDownload,
		sandbox.EventDownload, sandbox.EventFileMove, sandbox.EventFileMkdir, sandbox.EventFileDelete)
	for i, want := range []struct {
		path, to string
		bytes    int64
		ok       bool
	}{
		{"dir/f", "", 5, true}, {"dir/f", "", 3, true}, {"missing", "", 0, false}, {"dir/f", "g", 0, true}, {"d", "", 0, true}, {"d", "", 0, true},
	} {
		ev := evs[2+i]
		if ev.Path != want.path || ev.To != want.to || ev.Bytes != want.bytes || ev.OK != want.ok || ev.User != "sandbox" || ev.Actor != "alice" {
			t.Errorf("event %d: %+v; want %+v", i, ev, want)
		}
	}
	if got := h.get(s.ID); got.BytesUploaded != 5 || got.BytesDownloaded != 3 {
		t.Errorf("counters: %d up, %d down", got.BytesUploaded, got.BytesDownloaded)
	}
	_, _, err = h.files.WriteFile(t.Context(), alice, "box", "", strings.NewReader(""), sandbox.WriteFileOptions{User: "a/b"})
	wantCode(t, err, fault.Invalid)
	if n := len(fault.As(err).Fields); n != 2 {
		t.Errorf("%d fields: %v", n, err)
	}
}
