// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/engine/ports"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// listener is an echo server; the memory runtime's sandboxes share its loopback.
func listener(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				_, _ = io.Copy(nc, nc)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func (h *house) dialPort(s *sandbox.Sandbox, port int) *ports.Conn {
	h.t.Helper()
	nc, err := h.ports.DialPort(h.t.Context(), alice, string(s.ID), port)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = nc.Close() })
	return nc
}

func say(t *testing.T, nc net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != text {
		t.Fatalf("got %q, %v; want %q", got, err, text)
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	t.Run("AreListedAndReached", func(t *testing.T) {
		h := open(t, t.TempDir())
		s, port := h.create(engine.CreateRequest{}), listener(t)
		list, _, err := h.ports.Ports(t.Context(), alice, string(s.ID))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, p := range list {
			found = found || p.Port == port && p.Protocol == "tcp" && p.Address.String() == "127.0.0.1"
		}
		if !found {
			t.Errorf("port %d is not in %+v", port, list)
		}
		say(t, h.dialPort(s, port), "hello")
	})
	t.Run("AreTheirOwnersAlone", func(t *testing.T) {
		h := open(t, t.TempDir())
		s, port := h.create(engine.CreateRequest{Key: "web"}), listener(t)
		for _, ref := range []string{string(s.ID), "web"} {
			_, err := h.ports.DialPort(t.Context(), mary, ref, port)
			wantCode(t, err, fault.NotFound)
			_, _, err = h.ports.Ports(t.Context(), mary, ref)
			wantCode(t, err, fault.NotFound)
			_, err = h.ports.CreatePreview(t.Context(), mary, ref, port, 0)
			wantCode(t, err, fault.NotFound)
			wantCode(t, h.ports.ReachPreview(t.Context(), mary, ref), fault.NotFound)
			wantCode(t, h.ports.PreviewOpened(t.Context(), mary, ref, "l", port), fault.NotFound)
		}
		reader := alice
		reader.Scopes = []access.Scope{access.SandboxesRead}
		_, err := h.ports.DialPort(t.Context(), reader, "web", port)
		wantCode(t, err, fault.Denied)
		_, err = h.ports.CreatePreview(t.Context(), reader, "web", port, 0)
		wantCode(t, err, fault.Denied)
	})
	t.Run("OfNoUseAreRefused", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{})
		for _, port := range []int{0, -1, 65536} {
			_, err := h.ports.DialPort(t.Context(), alice, string(s.ID), port)
			wantCode(t, err, fault.Invalid)
			_, err = h.ports.CreatePreview(t.Context(), alice, string(s.ID), port, 0)
			wantCode(t, err, fault.Invalid)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		_, err = h.ports.DialPort(t.Context(), alice, string(s.ID), port)
		wantCode(t, err, fault.Unavailable)
		if !strings.Contains(err.Error(), "nothing listens") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("CloseWithTheirSandbox", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{})
		port := listener(t)
		nc := h.dialPort(s, port)
		say(t, nc, "x")
		if _, err := h.engine.Stop(t.Context(), alice, string(s.ID)); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("got %v; a connection that was cut off must not look complete", err)
		}
		_, err := h.ports.DialPort(t.Context(), alice, string(s.ID), port)
		wantCode(t, err, fault.State)
		wantCode(t, h.ports.ReachPreview(t.Context(), alice, string(s.ID)), fault.State)
	})
	t.Run("CloseWithTheEngine", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{})
		nc := h.dialPort(s, listener(t))
		say(t, nc, "x")
		h.end() // which waits for what is in use
		if _, err := nc.Read(make([]byte, 1)); err == nil {
			t.Error("the connection outlives the engine")
		}
	})
	t.Run("AreBoundedAndGivenBack", func(t *testing.T) {
		h := open(t, t.TempDir())
		s, port := h.create(engine.CreateRequest{}), listener(t)
		boxes, _, _, _ := h.engine.Held()
		var all []*ports.Conn
		for range agent.MaxPortConns {
			all = append(all, h.dialPort(s, port))
		}
		_, err := h.ports.DialPort(t.Context(), alice, string(s.ID), port)
		wantCode(t, err, fault.Exhausted)
		for _, nc := range all {
			_ = nc.Close()
			_ = nc.Close()
		}
		for { // the agent hears of it in its own time
			nc, err := h.ports.DialPort(t.Context(), alice, string(s.ID), port)
			if err == nil {
				_ = nc.Close()
				break
			}
			wantCode(t, err, fault.Exhausted)
			if t.Failed() {
				return
			}
		}
		if now, _, _, _ := h.engine.Held(); now != boxes {
			t.Errorf("%d boxes are held, %d were", now, boxes)
		}
	})
	t.Run("AreNoUseWhileTheySayNothing", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Second)})
		h.dialPort(s, listener(t))
		h.await("it is stopped with a connection open", func() bool {
			return h.get(s.ID).State == sandbox.Stopped
		})
		if got := h.get(s.ID).StopCause; got != sandbox.CauseIdle {
			t.Errorf("cause: %s", got)
		}
	})
	t.Run("AreInUseWhileBytesFlow", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{})
		nc := h.dialPort(s, listener(t))
		last := func() time.Time { // a list is no use
			page, err := h.engine.List(t.Context(), alice, engine.SandboxesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			return page.Items[0].LastActivity
		}
		for before := last(); !last().After(before); {
			say(t, nc, "more")
		}
	})
	t.Run("WakeWhatIdlenessStopped", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Second)})
		h.await("it is stopped", func() bool { return h.get(s.ID).State == sandbox.Stopped })
		if err := h.ports.ReachPreview(t.Context(), alice, string(s.ID)); err != nil {
			t.Fatal(err)
		}
		h.await("it is started", func() bool {
			evs := h.events(s.ID)
			return evs[len(evs)-1].Type == sandbox.EventStarted || len(evs) > 4
		})
	})
}

func TestPreviewsAreOnRecord(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "web"})
	p, err := h.ports.CreatePreview(t.Context(), alice, "web", 8000, 90*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(p.ExpiresAt); p.Sandbox != s.ID || p.Project != "default" || p.Port != 8000 || left <= 0 || left > 92*time.Second || p.Link == "" {
		t.Errorf("got %+v", p)
	}
	for _, d := range []time.Duration{-1, time.Millisecond, ports.MaxPreview + 1} {
		_, err := h.ports.CreatePreview(t.Context(), alice, "web", 8000, d)
		wantCode(t, err, fault.Invalid)
	}
	for range 2 {
		if err := h.ports.PreviewOpened(t.Context(), alice, string(s.ID), p.Link, p.Port); err != nil {
			t.Fatal(err)
		}
	}
	h.restart()
	if err := h.ports.PreviewOpened(t.Context(), alice, string(s.ID), p.Link, p.Port); err != nil {
		t.Fatal(err)
	}
	evs := h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventPreview, sandbox.EventPreviewOpened)
	if ev := evs[2]; ev.ProcessID != p.Link || !strings.Contains(ev.Detail, "port 8000") || ev.Actor != "alice" {
		t.Errorf("got %+v", ev)
	}
	if err := h.engine.Delete(t.Context(), alice, "web"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, h.ports.ReachPreview(t.Context(), alice, string(s.ID)), fault.NotFound)
	wantCode(t, h.ports.PreviewOpened(t.Context(), alice, string(s.ID), p.Link, p.Port), fault.NotFound)
}
