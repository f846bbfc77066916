// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
)

func TestSandboxes(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	a, created, err := h.Create(ctx, v1.CreateSandbox{Key: new("a b/c"[:3]), Metadata: map[string]string{"n": "1"}})
	must(t, err)
	again, createdAgain, err := h.Create(ctx, v1.CreateSandbox{Key: new("a b")})
	must(t, err)
	checktest.Equal(t, "created", created, true)
	checktest.Equal(t, "createdAgain", createdAgain, false)
	checktest.Equal(t, "ID", again.ID, a.ID)
	checktest.Equal(t, "a.Ref()", a.Ref(), "a b")
	for _, key := range []string{"...", "ü?#%2F", "+", "日本"} {
		s, _, err := h.Create(ctx, v1.CreateSandbox{Key: &key})
		must(t, err)
		if got, err := h.Get(ctx, key); err != nil || got.ID != s.ID {
			t.Errorf("%q: got %v, %v", key, got, err)
		}
	}
	if s, err := h.Stop(ctx, a.ID); err != nil || s.Status != "stopped" {
		t.Errorf("got %v, %v", s, err)
	}
	if s, err := h.Update(ctx, a.ID, v1.UpdateSandbox{Env: map[string]string{}, MemoryMB: new(256)}); err != nil || s.MemoryMB != 256 {
		t.Errorf("got %v, %v", s, err)
	}
	if s, err := h.Start(ctx, a.ID); err != nil || s.Status != "running" {
		t.Errorf("got %v, %v", s, err)
	}
	n := 0
	for s, err := range h.List(ctx, client.ListQuery{Limit: 2, Oldest: true}) {
		must(t, err)
		if n == 0 && s.ID != a.ID {
			t.Errorf("the oldest: got %s, want %s", s.ID, a.ID)
		}
		n++
	}
	if n != 5 {
		t.Errorf("got %d, want 5", n)
	}
	for s, err := range h.List(ctx, client.ListQuery{Metadata: map[string]string{"n": "1"}, Search: "A B", Image: "python", Status: []string{"running", "stopped"}}) {
		if err != nil || s.ID != a.ID {
			t.Errorf("got %v, %v", s, err)
		}
	}
	var types []string
	for ev, err := range h.Activity(ctx, a.ID, client.ActivityQuery{Limit: 1, Oldest: true}) {
		must(t, err)
		types = append(types, ev.Type)
	}
	if !slices.Contains(types, "sandbox.updated") || types[0] != "sandbox.created" {
		t.Errorf("got %v", types)
	}
	must(t, h.Delete(ctx, a.ID))
	_, err = h.Get(ctx, a.ID)
	wantCode(t, err, fault.NotFound)
}

func TestCreateExec(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	r := v1.CreateExec{Exec: v1.Exec{Command: new("echo x >> f; cat f")}, Sandbox: v1.CreateSandbox{Key: new("k")}}
	first, err := h.CreateExec(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, "SandboxCreated", first.SandboxCreated, true)
	checktest.Equal(t, "Stdout", first.Stdout, "x\n")
	var where string
	var p *client.Process
	var out strings.Builder
	second, err := h.CreateExecStarted(ctx, r, func(sandbox string, started *client.Process) { where, p = sandbox, started }, func(f client.Frame) error {
		out.Write(f.Data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, "SandboxCreated", second.SandboxCreated, false)
	checktest.Equal(t, "SandboxID", second.SandboxID, first.SandboxID)
	checktest.Equal(t, "where", where, first.SandboxID)
	checktest.Equal(t, "ExitCode", *second.ExitCode, 0)
	checktest.Equal(t, "out.String()", out.String(), "x\nx\n")
	if p == nil || p.ID() != second.ProcessID {
		t.Errorf("told %+v", p)
	}
	if _, err := h.CreateExec(ctx, v1.CreateExec{Sandbox: r.Sandbox}); fault.Of(err) != fault.Invalid {
		t.Errorf("without a command: got %v", err)
	}
}

func TestExec(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	id := h.box()
	t.Run("OutputIsExact", func(t *testing.T) {
		data := []byte("a\x00\xff\xfeä")
		r, err := h.Exec(ctx, id, v1.Exec{Argv: []string{"sh", "-c", "tee /dev/stderr; exit 3"}, StdinBase64: new("YQD//sOk")})
		must(t, err)
		out, err := client.Stdout(r)
		must(t, err)
		errOut, err := client.Stderr(r)
		must(t, err)
		if !bytes.Equal(out, data) || !bytes.Equal(errOut, data) || *r.ExitCode != 3 {
			t.Errorf("got %q, %q, %d", out, errOut, *r.ExitCode)
		}
	})
	t.Run("StreamsAreExactAndInOrder", func(t *testing.T) {
		var got bytes.Buffer
		last := int64(0)
		o, err := h.ExecStream(ctx, id, v1.Exec{Command: new("i=0; while [ $i -lt 20000 ]; do printf 'ä\\377%s' $i; i=$((i+1)); done; echo e >&2; exit 4")}, func(f client.Frame) error {
			if f.Seq <= last {
				t.Errorf("the frame %d comes after %d", f.Seq, last)
			}
			if last = f.Seq; !f.Stderr {
				got.Write(f.Data)
			}
			return nil
		})
		must(t, err)
		var want bytes.Buffer
		for i := range 20000 {
			fmt.Fprintf(&want, "ä\xff%d", i)
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) || *o.ExitCode != 4 || o.StderrBytes != 2 {
			t.Errorf("got %d bytes, want %d; %+v", got.Len(), want.Len(), o)
		}
	})
	t.Run("AnErrorOfTheCallbackEndsTheStreamNotTheCommand", func(t *testing.T) {
		stop := errors.New("enough")
		_, err := h.ExecStream(ctx, id, v1.Exec{Command: new("echo x; sleep 600")}, func(client.Frame) error { return stop })
		if !errors.Is(err, stop) {
			t.Fatalf("got %v", err)
		}
		ps, err := h.Processes(ctx, id)
		must(t, err)
		i := slices.IndexFunc(ps, func(p v1.Process) bool { return p.Status == "running" })
		if i < 0 {
			t.Fatalf("got %+v, want one that runs", ps)
		}
		must(t, h.Kill(ctx, id, ps[i].ProcessID))
		if p, err := h.Process(ctx, id, ps[i].ProcessID); err != nil || p.Cause != "killed" {
			t.Errorf("got %+v, %v", p, err)
		}
	})
	t.Run("ErrorsAreTheServers", func(t *testing.T) {
		_, err := h.ExecStream(ctx, id, v1.Exec{Command: new("")}, nil)
		e := wantCode(t, err, fault.Invalid)
		if diff := cmp.Diff(e.Fields, []fault.Field{{Name: "command", Message: "is empty"}}); diff != "" {
			t.Error(diff)
		}
		_, _, err = h.Create(ctx, v1.CreateSandbox{Image: new("nosuch")})
		if e := wantCode(t, err, fault.NotFound); e.Remedy != "use one of: python, node" {
			t.Errorf("remedy: got %q", e.Remedy)
		}
		_, _, err = h.Create(ctx, v1.CreateSandbox{NetworkEnabled: new(true)})
		wantCode(t, err, fault.Unsupported)
	})
	t.Run("ManyAtOnce", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				r, err := h.Exec(ctx, id, v1.Exec{Command: new(fmt.Sprintf("echo %d", i))})
				if err != nil || r.Stdout != fmt.Sprintf("%d\n", i) {
					t.Errorf("%d: got %+v, %v", i, r, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestFiles(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	id := h.box()
	must(t, h.WriteFile(ctx, id, "d/ü x", strings.NewReader("0123456789"), client.WriteOptions{Mode: 0o600}))
	must(t, h.WriteFile(ctx, id, "empty", strings.NewReader(""), client.WriteOptions{}))
	must(t, h.WriteFile(ctx, id, "piped", io.LimitReader(strings.NewReader("abc"), 2), client.WriteOptions{}))
	read := func(path string, o client.ReadOptions) string {
		t.Helper()
		f, err := h.ReadFile(ctx, id, path, o)
		must(t, err)
		defer f.Close()
		data, err := io.ReadAll(f)
		must(t, err)
		if f.Size != int64(len(data)) || f.ModifiedAt.IsZero() {
			t.Errorf("%s: got %+v for %d bytes", path, f, len(data))
		}
		return string(data)
	}
	for _, c := range []struct {
		path, want string
		o          client.ReadOptions
	}{
		{"d/ü x", "0123456789", client.ReadOptions{}}, {"d/ü x", "34", client.ReadOptions{Offset: 3, Length: 2}}, {"d/ü x", "789", client.ReadOptions{Offset: 7}},
		{"/workspace/piped", "ab", client.ReadOptions{}}, {"empty", "", client.ReadOptions{}}, {"piped", "a", client.ReadOptions{Length: 1}},
	} {
		if got := read(c.path, c.o); got != c.want {
			t.Errorf("%s %+v: got %q, want %q", c.path, c.o, got, c.want)
		}
	}
	_, err := h.ReadFile(ctx, id, "d/ü x", client.ReadOptions{Offset: 10})
	wantCode(t, err, fault.Invalid)
	_, err = h.ReadFile(ctx, id, "d", client.ReadOptions{})
	wantCode(t, err, fault.Invalid)
	_, err = h.ReadFile(ctx, id, "../x", client.ReadOptions{})
	wantCode(t, err, fault.Invalid)
	if i, err := h.Stat(ctx, id, "d/ü x", ""); err != nil {
		t.Error(err)
	} else {
		checktest.Equal(t, "Mode", i.Mode, "0600")
		checktest.Equal(t, "Size", i.Size, 10)
		checktest.Equal(t, "Path", i.Path, "/workspace/d/ü x")
	}
	must(t, h.Mkdir(ctx, id, v1.MakeDir{Path: "e/f"}))
	must(t, h.Move(ctx, id, v1.MoveFile{From: "d/ü x", To: "e/f/g"}))
	names := func(path string, limit int) (out []string, more bool) {
		t.Helper()
		fs, more, err := h.ListFiles(ctx, id, path, "", limit)
		must(t, err)
		for _, f := range fs {
			out = append(out, f.Type+" "+f.Name)
		}
		slices.Sort(out)
		return out, more
	}
	if got, more := names("/workspace", 0); more || !slices.Equal(got, []string{"dir d", "dir e", "file empty", "file piped"}) {
		t.Errorf("got %v %v", got, more)
	}
	if got, more := names(".", 2); !more || len(got) != 2 {
		t.Errorf("got %v %v, want two and more", got, more)
	}
	_, _, err = h.ListFiles(ctx, id, "piped", "", 0)
	wantCode(t, err, fault.Invalid)
	wantCode(t, h.Remove(ctx, id, "e", "", false), fault.State)
	must(t, h.Remove(ctx, id, "e", "", true))
	wantCode(t, h.Remove(ctx, id, "e", "", true), fault.NotFound)
	t.Run("LargeOnesArriveWhole", func(t *testing.T) {
		data := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
		must(t, h.WriteFile(ctx, id, "large", io.MultiReader(bytes.NewReader(data)), client.WriteOptions{}))
		if got := read("large", client.ReadOptions{}); got != string(data) {
			t.Errorf("got %d bytes that differ", len(got))
		}
	})
}

func TestAdministration(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	made, err := h.CreateToken(ctx, v1.CreateToken{Name: "x/y", Project: new("p"), Scopes: []string{"sandboxes:read"}, ExpiresInSeconds: new(int64(60))})
	must(t, err)
	other := client.New(h.url+"/api/v1/", made.Secret, client.Options{})
	if p, err := other.ListPage(ctx, client.ListQuery{}); err != nil || p.Total != 0 {
		t.Errorf("got %+v, %v", p, err)
	}
	_, _, err = other.Create(ctx, v1.CreateSandbox{})
	wantCode(t, err, fault.Denied)
	if who, err := other.Whoami(ctx); err != nil {
		t.Error(err)
	} else {
		checktest.Equal(t, "Name", who.Name, "x/y")
		checktest.Equal(t, "Project", who.Project, "p")
		checktest.Some(t, "TokenID", who.TokenID)
		checktest.Some(t, "ExpiresAt", who.ExpiresAt)
	}
	if l, err := h.Tokens(ctx, "p"); err != nil {
		t.Error(err)
	} else {
		checktest.Len(t, "l", l, 1)
		checktest.Equal(t, "Name", l[0].Name, "x/y")
		checktest.Some(t, "ExpiresAt", l[0].ExpiresAt)
	}
	rotated, err := h.RotateToken(ctx, "p", "x/y", v1.RotateToken{GraceSeconds: new(int64(0))})
	must(t, err)
	checktest.Equal(t, "ID", rotated.ID, made.ID)
	if rotated.OldUntil != nil {
		t.Errorf("old secrets are valid until %v", rotated.OldUntil)
	}
	_, err = other.ListPage(ctx, client.ListQuery{})
	wantCode(t, err, fault.Unauthenticated)
	other = client.New(h.url, rotated.Secret, client.Options{})
	if _, err := other.ListPage(ctx, client.ListQuery{}); err != nil {
		t.Error(err)
	}
	must(t, h.DeleteToken(ctx, "p", "x/y"))
	_, err = other.ListPage(ctx, client.ListQuery{})
	wantCode(t, err, fault.Unauthenticated)
	if l, err := h.Images(ctx); err != nil {
		t.Error(err)
	} else {
		checktest.Len(t, "l", l, 1)
		checktest.Equal(t, "Status", l[0].Status, "ready")
		checktest.Equal(t, "Default", l[0].Default, true)
	}
	if i, err := h.BuildImage(ctx, "python", time.Second); err != nil || i.Status != "ready" {
		t.Errorf("got %+v, %v", i, err)
	}
	if i, err := h.PullImage(ctx, "debian:12-slim", time.Second); err != nil || i.Status != "ready" {
		t.Errorf("pulled %+v, %v", i, err)
	}
	_, err = h.PullImage(ctx, "nosuch", time.Second)
	wantCode(t, err, fault.NotFound)
	if l, err := h.ImportImages(ctx, strings.NewReader("an archive"), client.ImportImageOptions{Name: "a:1"}); err != nil || len(l) != 1 || l[0].Status != "ready" {
		t.Errorf("imported %+v, %v", l, err)
	}
	if i, err := h.Info(ctx); err != nil || i.Version != "v0.0.0-test" || i.Runtime != "memory" || len(i.Runtimes[0].Capabilities) == 0 {
		t.Errorf("got %+v, %v", i, err)
	}
	if l, err := h.Limits(ctx); err != nil || len(l.Sizes) != 3 {
		t.Errorf("got %+v, %v", l, err)
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	id := h.box()
	term := func(t *testing.T, o client.TerminalOptions) *client.Terminal {
		t.Helper()
		tm, err := h.Terminal(ctx, id, o)
		must(t, err)
		t.Cleanup(func() { _ = tm.Close() })
		return tm
	}
	// until reads up to want; what came after it in the same read is kept.
	kept := make(map[*client.Terminal]string)
	until := func(t *testing.T, tm *client.Terminal, want string) {
		t.Helper()
		seen, buf := kept[tm], make([]byte, 1024)
		for !strings.Contains(seen, want) {
			n, err := tm.Read(buf)
			if seen += string(buf[:n]); err != nil && !strings.Contains(seen, want) {
				t.Fatalf("got %q, %v, want %q", seen, err, want)
			}
		}
		_, kept[tm], _ = strings.Cut(seen, want)
	}
	t.Run("TypesResizesAndEnds", func(t *testing.T) {
		tm := term(t, client.TerminalOptions{Command: "stty size; read x; stty size; echo got $x; exit 5", Cols: 100, Rows: 30})
		until(t, tm, "30 100")
		must(t, tm.Resize(120, 40))
		_, err := io.WriteString(tm, "hello\n")
		must(t, err)
		until(t, tm, "40 120")
		until(t, tm, "got hello")
		if _, err := io.Copy(io.Discard, tm); err != nil {
			t.Errorf("the end: got %v", err)
		}
		if e, err := tm.Wait(); err != nil || e.ExitCode != 5 {
			t.Errorf("got %+v, %v", e, err)
		}
	})
	t.Run("Signals", func(t *testing.T) {
		tm := term(t, client.TerminalOptions{Command: "trap 'echo caught; exit 6' INT; echo ready; while :; do sleep 0.05; done"})
		until(t, tm, "ready")
		must(t, tm.Signal("SIGINT"))
		if e, err := tm.Wait(); err != nil || e.ExitCode != 6 {
			t.Errorf("got %+v, %v", e, err)
		}
	})
	t.Run("ANonsenseMessageEndsIt", func(t *testing.T) {
		tm := term(t, client.TerminalOptions{Command: "sleep 600"})
		must(t, tm.Signal("SIGNOSUCH"))
		_, err := tm.Wait()
		wantCode(t, err, fault.Invalid)
	})
	t.Run("WhatIsWrongIsAnAnswer", func(t *testing.T) {
		_, err := h.Terminal(ctx, "nosuch", client.TerminalOptions{})
		wantCode(t, err, fault.NotFound)
		_, err = h.Terminal(ctx, id, client.TerminalOptions{Cwd: "/nosuch"})
		wantCode(t, err, fault.Invalid)
		_, err = client.New(h.url, "wrong", client.Options{}).Terminal(ctx, id, client.TerminalOptions{})
		wantCode(t, err, fault.Unauthenticated)
	})
	t.Run("TheServersEndIsTold", func(t *testing.T) {
		tm := term(t, client.TerminalOptions{Command: "echo ready; sleep 600"})
		until(t, tm, "ready")
		h.api.Close()
		_, err := tm.Wait()
		wantCode(t, err, fault.Unavailable)
	})
}

func TestFailures(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	t.Run("NoServer", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		url := "http://" + l.Addr().String()
		must(t, l.Close())
		_, err = client.New(url, "x", client.Options{}).Info(ctx)
		e := wantCode(t, err, fault.Unavailable)
		if e.Message != "no server answers at "+url || !strings.Contains(e.Remedy, "sandpit serve") || !strings.Contains(e.Remedy, "SANDPIT_URL") {
			t.Errorf("got %q, %q", e.Message, e.Remedy)
		}
		_, err = client.New(url, "x", client.Options{}).Terminal(ctx, "a", client.TerminalOptions{})
		if e := wantCode(t, err, fault.Unavailable); !strings.Contains(e.Remedy, "sandpit serve") {
			t.Errorf("terminal: got %q", e.Remedy)
		}
	})
	t.Run("NoURL", func(t *testing.T) {
		for _, url := range []string{"", "127.0.0.1:8080", "ftp://x", "http://", "http://x/?a=b", "http://\x00"} {
			_, err := client.New(url, "x", client.Options{}).Info(ctx)
			if e := wantCode(t, err, fault.Invalid); !strings.Contains(e.Remedy, "SANDPIT_URL") {
				t.Errorf("%q: got %q", url, e.Remedy)
			}
		}
	})
	t.Run("AnotherServer", func(t *testing.T) {
		for status, code := range map[int]fault.Code{302: fault.Malformed, 404: fault.NotFound, 418: fault.Malformed, 502: fault.Unavailable, 500: fault.Internal, 200: fault.Unavailable} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "<html>")
			}))
			_, err := client.New(srv.URL, "x", client.Options{}).Info(ctx)
			if e := wantCode(t, err, code); e.Remedy == "" {
				t.Errorf("%d: no remedy", status)
			}
			srv.Close()
		}
	})
	t.Run("TheCallersContext", func(t *testing.T) {
		h := open(t)
		id := h.box()
		ctx, cancel := context.WithCancel(ctx)
		_, err := h.ExecStream(ctx, id, v1.Exec{Command: new("echo x; sleep 600")}, func(client.Frame) error { cancel(); return nil })
		wantCode(t, err, fault.Canceled)
		ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = h.Exec(ctx, id, v1.Exec{Command: new("sleep 600")})
		wantCode(t, err, fault.Timeout)
	})
	t.Run("AStreamThatBreaks", func(t *testing.T) {
		for _, body := range []string{"", "event: stdout\nid: 1\ndata: {}\n\n", "event: exit\ndata: {", "event: exit\ndata: {\n\n", "event: stdout\ndata: {\"data_base64\":\"%\"}\n\n"} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, body) }))
			_, err := client.New(srv.URL, "x", client.Options{}).ExecStream(ctx, "a", v1.Exec{}, func(client.Frame) error { return nil })
			wantCode(t, err, fault.Unavailable)
			srv.Close()
		}
	})
}
