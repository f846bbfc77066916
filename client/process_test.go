// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// heard is the output of a followed process.
type heard struct {
	stdout, stderr bytes.Buffer
	seqs           []int64
	gaps           []v1.OutputGap
	exit           *v1.Process
}

func hear(t testing.TB, p *client.Process, o client.FollowOptions) *heard {
	t.Helper()
	g := new(heard)
	for out, err := range p.Follow(t.Context(), o) {
		must(t, err)
		switch {
		case out.Gap != nil:
			g.gaps = append(g.gaps, *out.Gap)
		case out.Exit != nil:
			g.exit = out.Exit
		default:
			g.seqs = append(g.seqs, out.Seq)
			if out.Stderr {
				g.stderr.Write(out.Data)
			} else {
				g.stdout.Write(out.Data)
			}
		}
	}
	return g
}

func TestProcess(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.box()
	start := func(t *testing.T, r v1.StartProcess) *client.Process {
		t.Helper()
		p, err := h.StartProcess(t.Context(), id, r)
		must(t, err)
		return p
	}
	t.Run("IsWrittenToFollowedAndWaitedFor", func(t *testing.T) {
		p := start(t, v1.StartProcess{Command: new("cat; echo over >&2; exit 3"), StreamStdin: new(true)})
		n, err := p.Write(t.Context(), []byte("a\x00\xff"))
		if err != nil || n != 3 {
			t.Errorf("Write: %d, %v", n, err)
		}
		in := p.Stdin(t.Context())
		_, err = io.WriteString(in, "more")
		must(t, err)
		must(t, in.Close())
		must(t, in.Close())
		done, err := p.Wait(t.Context())
		must(t, err)
		if *done.ExitCode != 3 || done.ProcessID != p.ID() {
			t.Errorf("got %+v", done)
		}
		g := hear(t, h.OpenProcess(id, p.ID()), client.FollowOptions{})
		if g.stdout.String() != "a\x00\xffmore" || g.stderr.String() != "over\n" || g.exit == nil || *g.exit.ExitCode != 3 {
			t.Errorf("got %q %q %+v", g.stdout.String(), g.stderr.String(), g.exit)
		}
		rest := hear(t, p, client.FollowOptions{Cursor: g.seqs[0]})
		if len(rest.seqs) != len(g.seqs)-1 {
			t.Errorf("after the first: %v of %v", rest.seqs, g.seqs)
		}
		if _, err := p.Write(t.Context(), []byte("x")); !fault.Is(err, fault.State) {
			t.Errorf("to a dead one: %v", err)
		}
		if err := p.Signal(t.Context(), "TERM", false); !fault.Is(err, fault.State) {
			t.Errorf("a signal to a dead one: %v", err)
		}
	})
	t.Run("IsFoundByItsNameItsNumberAndItsLabels", func(t *testing.T) {
		p := start(t, v1.StartProcess{Command: new("exec sleep 600"), Name: new("a name"), Labels: map[string]string{"k": "v"}})
		rec, err := h.OpenProcess(id, client.ByName("a name")).Get(t.Context())
		must(t, err)
		if rec.ProcessID != p.ID() || rec.Name != "a name" || rec.Labels["k"] != "v" {
			t.Errorf("got %+v", rec)
		}
		_, err = h.StartProcess(t.Context(), id, v1.StartProcess{Command: new("true"), Name: new("a name")})
		if !fault.Is(err, fault.Exists) {
			t.Errorf("a second one: %v", err)
		}
		for query, n := range map[*client.ProcessQuery]int{
			{Labels: map[string]string{"k": "v"}}: 1, {Labels: map[string]string{"k": "w"}}: 0, {Name: "a name"}: 1, {Name: "none"}: 0,
		} {
			got := 0
			for one, err := range h.ListProcesses(t.Context(), id, *query) {
				must(t, err)
				if got++; one.ProcessID != p.ID() {
					t.Errorf("%+v: got %+v", query, one)
				}
			}
			if got != n {
				t.Errorf("%+v: got %d, want %d", query, got, n)
			}
		}
		must(t, h.OpenProcess(id, client.ByNumber(rec.PID)).Kill(t.Context()))
		if done, err := p.Wait(t.Context()); err != nil || done.Cause != "killed" {
			t.Errorf("got %+v, %v", done, err)
		}
	})
	t.Run("AllAreKilledInOne", func(t *testing.T) {
		p := start(t, v1.StartProcess{Command: new("exec sleep 600")})
		must(t, h.KillAll(t.Context(), id))
		if done, err := p.Wait(t.Context()); err != nil || done.Cause != "killed" {
			t.Errorf("got %+v, %v", done, err)
		}
	})
	t.Run("OnceDoesNotWaitAndALoopMayBeLeft", func(t *testing.T) {
		p := start(t, v1.StartProcess{Command: new("echo one; exec sleep 600")})
		for out, err := range p.Follow(t.Context(), client.FollowOptions{}) {
			must(t, err)
			if string(out.Data) != "one\n" {
				t.Errorf("got %q", out.Data)
			}
			break
		}
		if g := hear(t, p, client.FollowOptions{Once: true}); g.stdout.String() != "one\n" || g.exit != nil {
			t.Errorf("got %q, %+v", g.stdout.String(), g.exit)
		}
		must(t, p.Signal(t.Context(), "SIGKILL", true))
		if g := hear(t, p, client.FollowOptions{}); g.exit == nil || g.exit.Signal != "SIGKILL" {
			t.Errorf("got %+v", g.exit)
		}
	})
	t.Run("TellsWhatIsMissing", func(t *testing.T) {
		p := start(t, v1.StartProcess{Command: new("printf 0123456789"), MaxStdoutBytes: new(int64(4))})
		g := hear(t, p, client.FollowOptions{})
		if len(g.gaps) != 1 || g.gaps[0].Bytes != 6 || g.gaps[0].Stream != "stdout" || g.stdout.String() != "0123" {
			t.Errorf("got %q, %+v", g.stdout.String(), g.gaps)
		}
	})
	t.Run("WhatCannotBeIsAnErrorAtOnce", func(t *testing.T) {
		p := start(t, v1.StartProcess{Command: new("true")})
		_, err := p.Wait(t.Context())
		must(t, err)
		for name, c := range map[string]struct {
			p      *client.Process
			cursor int64
			code   fault.Code
		}{
			"Future": {p, 99, fault.Invalid}, "NoProcess": {h.OpenProcess(id, "nosuchprocess000"), 0, fault.NotFound},
			"NoSandbox": {h.OpenProcess("nosuch", p.ID()), 0, fault.NotFound}, "Odd": {h.OpenProcess(id, "../x"), 0, fault.NotFound},
		} {
			n := 0
			for _, err := range c.p.Follow(t.Context(), client.FollowOptions{Cursor: c.cursor}) {
				if n++; !fault.Is(err, c.code) {
					t.Errorf("%s: got %v", name, err)
				}
			}
			if n != 1 {
				t.Errorf("%s: %d items", name, n)
			}
		}
		if err := p.Resize(t.Context(), 0, 0); !fault.Is(err, fault.Invalid) {
			t.Errorf("0 by 0: got %v", err)
		}
	})
	t.Run("EndsWithItsContext", func(t *testing.T) {
		p := start(t, v1.StartProcess{Command: new("exec sleep 600")})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		for _, err := range p.Follow(ctx, client.FollowOptions{}) {
			if !fault.Is(err, fault.Timeout) {
				t.Errorf("got %v", err)
			}
		}
		if _, err := p.Wait(ctx); !fault.Is(err, fault.Timeout) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AStreamedCommandIsKnownBeforeItsOutput", func(t *testing.T) {
		var p *client.Process
		enough := errors.New("enough")
		_, err := h.ExecStarted(t.Context(), id, v1.Exec{Command: new("echo up; exec sleep 600")}, func(q *client.Process) { p = q }, func(client.Frame) error {
			if p == nil {
				t.Error("the id came after the output")
			}
			return enough
		})
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
		must(t, p.Kill(t.Context()))
		done, err := p.Wait(t.Context())
		if err != nil || done.Cause != "killed" {
			t.Errorf("got %+v, %v", done, err)
		}
	})
	t.Run("AreListed", func(t *testing.T) {
		p := start(t, v1.StartProcess{Command: new("exec sleep 600")})
		var running []string
		for q, err := range h.ListProcesses(t.Context(), id, client.ProcessQuery{Running: true, Newest: true}) {
			must(t, err)
			running = append(running, q.ProcessID)
		}
		if len(running) == 0 || running[0] != p.ID() {
			t.Errorf("got %v, want %s first", running, p.ID())
		}
	})
}

// rough is a network that cuts every connection after some bytes.
type rough struct {
	l  net.Listener
	to string
	wg sync.WaitGroup
	mu sync.Mutex
	n  int // connections that were cut
	up []net.Conn
}

func newRough(t *testing.T, to string) *rough {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r := &rough{l: l, to: to}
	r.wg.Go(r.serve)
	t.Cleanup(func() {
		_ = l.Close()
		r.mu.Lock()
		for _, c := range r.up {
			_ = c.Close()
		}
		r.mu.Unlock()
		r.wg.Wait()
	})
	return r
}

func (r *rough) serve() {
	for {
		in, err := r.l.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.up = append(r.up, in)
		r.mu.Unlock()
		r.wg.Go(func() {
			defer in.Close()
			out, err := net.Dial("tcp", r.to)
			if err != nil {
				return
			}
			defer out.Close()
			var both sync.WaitGroup
			both.Go(func() { _, _ = io.CopyN(out, in, 600+rand.Int64N(100<<10)); _ = in.Close(); _ = out.Close() })
			both.Go(func() { _, _ = io.CopyN(in, out, 300+rand.Int64N(200<<10)); _ = in.Close(); _ = out.Close() })
			both.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			r.n++
		})
	}
}

func TestAProcessOverARoughNetwork(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.box()
	net := newRough(t, strings.TrimPrefix(h.url, "http://"))
	far := client.New("http://"+net.l.Addr().String(), adminToken, client.Options{})
	p, err := h.StartProcess(t.Context(), id, v1.StartProcess{Command: new("cat"), StreamStdin: new(true)})
	must(t, err)
	p = far.OpenProcess(id, p.ID())
	var want bytes.Buffer
	for i := range 400_000 {
		fmt.Fprintln(&want, i)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		in := p.Stdin(t.Context())
		for rest := want.Bytes(); len(rest) > 0; {
			n := min(len(rest), 1+rand.IntN(20<<10))
			if _, err := in.Write(rest[:n]); err != nil {
				t.Error(err)
				return
			}
			rest = rest[n:]
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	g := hear(t, p, client.FollowOptions{})
	wg.Wait()
	if !bytes.Equal(g.stdout.Bytes(), want.Bytes()) {
		t.Errorf("got %d bytes, want %d, or they differ", g.stdout.Len(), want.Len())
	}
	for i, seq := range g.seqs {
		if seq != int64(i+1) {
			t.Fatalf("frame %d has the number %d", i, seq)
		}
	}
	net.mu.Lock()
	defer net.mu.Unlock()
	if net.n < 10 {
		t.Errorf("only %d connections were cut", net.n)
	}
	t.Logf("%d connections were cut", net.n)
}
