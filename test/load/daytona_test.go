// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestDaytonasClientsSurviveKill9 kills the server at random moments under 200 clients that speak the wire of Daytona's.
// What was answered holds afterwards: sandboxes, files, and what was deleted of them; sessions and terminals are found
// again, with their variables; what followed something is told that it ended; and nothing is left on the host.
func TestDaytonasClientsSurviveKill9(t *testing.T) {
	openAt(t, fixedAddress(t)).survivesClients(160, 40, length(4, 300), nil)
}

// survivesClients kills a server so many times under clients, watchers, and SDKs that say themselves what is wrong.
func (h *host) survivesClients(clients, watchers, rounds int, sdks []*sdk) {
	h.t.Helper()
	t, ctx := h.t, h.t.Context()
	w := h.wire("/daytona", clients)
	before := h.warmed(ctx, w, newDaytonaAnswers(w, 2).act)

	a := newDaytonaAnswers(w, length(10, 24))
	streams := 0
	for round := range rounds {
		if err := say(sdks, "work"); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		n, killed, err := h.killedUnderClients(ctx, a, round, clients, watchers)
		if err != nil {
			t.Fatalf("round %d, before the kill: %v", round, err)
		}
		streams += n
		w.http.CloseIdleConnections()
		h.start()
		if err := say(sdks, fmt.Sprint("rest ", killed.UnixMilli())); err != nil {
			t.Fatalf("round %d, at the kill: %v", round, err)
		}
		if err := errors.Join(a.kept(ctx), say(sdks, "look")); err != nil {
			t.Fatalf("round %d, after the kill: %v", round, err)
		}
	}
	t.Logf("%d kills under %d clients: %d answers, %d of them that there is too much at once; %v; %d streams ended; %d times a command had not begun; at the end %d sandboxes, %d deleted",
		rounds, clients+watchers, a.calls, a.many, a.kinds, streams, a.never, len(a.boxes), len(a.dead))
	endSDKs(t, sdks)
	if len(sdks) == 0 {
		h.endsAsClientsUnderstand(ctx, a)
	}
	if err := h.deleteAll(ctx); err != nil {
		t.Fatal(err)
	}
	w.http.CloseIdleConnections()
	h.holdNothingBeyond(before)
}

// killedUnderClients kills the server at a random moment of a random call. It returns how many streams ended by that, and when
// that was.
func (h *host) killedUnderClients(ctx context.Context, a *daytonaAnswers, round, clients, watchers int) (int, time.Time, error) {
	var streams atomic.Int64
	g := group{limit: clients + watchers}
	doomed := untilKilled(ctx, &g, round, clients, a.act)
	for n := range watchers {
		g.do(func() error {
			conn, err := a.watch(ctx, n)
			if err != nil || conn == nil {
				return err
			}
			defer conn.CloseNow()
			for err == nil {
				_, _, err = conn.Read(ctx)
			}
			if ctx.Err() == nil {
				streams.Add(1)
			}
			return ctx.Err()
		})
	}
	<-doomed
	time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond)))) // within a call
	killed := time.Now()
	h.kill()
	err := g.wait()
	return int(streams.Load()), killed, err
}

// untilKilled has clients call act in g, each with a name of its own, until it says that the server is broken. The channel is
// closed at a random call, or where one fails: then the server is to be killed.
func untilKilled(ctx context.Context, g *group, round, clients int, act func(ctx context.Context, name string) error) <-chan struct{} {
	at := int64(clients + rand.IntN(4*clients))
	var calls atomic.Int64
	doomed := make(chan struct{})
	doom := sync.OnceFunc(func() { close(doomed) })
	for n := range clients {
		g.do(func() error {
			for {
				if calls.Add(1) >= at {
					doom()
				}
				err := act(ctx, fmt.Sprintf("r%d-c%d-%d", round, n, calls.Load()))
				if _, gone := err.(broken); gone {
					doom()
					return nil
				}
				if err != nil {
					doom()
					return err
				}
			}
		})
	}
	return doomed
}

// watch opens a stream; nil: there is nothing to follow, or the server is gone.
func (a *daytonaAnswers) watch(ctx context.Context, n int) (conn *websocket.Conn, err error) {
	if n%2 == 0 {
		conn, err = a.wire.events(ctx)
	} else if b := a.some(); b != nil {
		if s := one(a, b.shells, 1); s != "" {
			conn, err = a.wire.terminal(ctx, b.id, s)
		}
		err = a.counted("watch", &b.replied, err)
	}
	if _, gone := err.(broken); gone {
		return nil, nil
	}
	return conn, err
}

// endsAsClientsUnderstand has a server end as it is asked to, and looks how streams are closed: terminals and logs as going
// away, which is no end of what they follow.
func (h *host) endsAsClientsUnderstand(ctx context.Context, a *daytonaAnswers) {
	h.t.Helper()
	must := func(err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
	}
	b, err := a.wire.create(ctx, "last")
	must(err)
	for path, in := range map[string]object{"session": {"sessionId": "s"}, "pty": {"id": "t"}} {
		_, err = a.wire.call(ctx, "POST", inside(b.ID)+"/process/"+path, in, nil)
		must(err)
	}
	r, err := a.wire.inSession(ctx, b.ID, "s", "echo begun; sleep 600", true)
	must(err)
	terminal, err := a.wire.terminal(ctx, b.ID, "t")
	must(err)
	logs, err := a.wire.dial(ctx, inside(b.ID)+"/process/session/s/command/"+r.CmdID+"/logs?follow=true")
	must(err)
	events, err := a.wire.events(ctx)
	must(err)
	must(h.cmd.Process.Signal(syscall.SIGTERM))
	for what, s := range map[string]struct {
		conn *websocket.Conn
		want websocket.StatusCode
	}{"the terminal": {terminal, websocket.StatusGoingAway}, "the logs": {logs, websocket.StatusGoingAway}, "the events": {events, websocket.StatusNormalClosure}} {
		var err error
		for err == nil {
			_, _, err = s.conn.Read(ctx)
		}
		if got := websocket.CloseStatus(err); got != s.want {
			h.t.Errorf("%s of a server that ends: closed with %d, %v; want %d", what, got, err, s.want)
		}
		_ = s.conn.CloseNow()
	}
	<-h.ended
	h.http.CloseIdleConnections()
	a.wire.http.CloseIdleConnections()
	h.start()
	conn, err := a.wire.terminal(ctx, b.ID, "t")
	must(err)
	must(typed(ctx, conn, "echo $((6*7))", "42"))
	must(conn.Close(websocket.StatusNormalClosure, ""))
	var c struct{ ExitCode *int }
	if _, err := a.wire.call(ctx, "GET", inside(b.ID)+"/process/session/s/command/"+r.CmdID, nil, &c); err != nil || c.ExitCode != nil {
		h.t.Errorf("the command that was followed: %v, %v", c.ExitCode, err)
	}
}
