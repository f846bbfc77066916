// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestTheSDKsClientsSurviveKill9 kills the server at random moments under clients that speak the wires of Orkestr's SDK and of
// the MCP Gateway's, of the same sandboxes. What was answered by one holds afterwards by both: sandboxes, files, and what was
// deleted of them; commands in the background are found again, with all of their logs; each error is one that the SDK has a
// class for; and nothing is left on the host.
func TestTheSDKsClientsSurviveKill9(t *testing.T) {
	const clients = 32
	h := openAt(t, fixedAddress(t))
	ctx := t.Context()
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	w := &wire{base: "http://" + h.listen, token: h.token, http: &http.Client{Transport: transport}}

	warm := newTold(w, 2)
	for n := range 20 {
		if err := warm.act(ctx, fmt.Sprint("warm-", n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.deleteAll(ctx); err != nil {
		t.Fatal(err)
	}
	transport.CloseIdleConnections()
	before := h.rest()

	a := newTold(w, length(8, 24))
	rounds := length(4, 300)
	for round := range rounds {
		if err := h.killedUnderSDKs(ctx, a, round, clients); err != nil {
			t.Fatalf("round %d, before the kill: %v", round, err)
		}
		transport.CloseIdleConnections()
		h.start()
		if err := a.kept(ctx); err != nil {
			t.Fatalf("round %d, after the kill: %v", round, err)
		}
	}
	if a.calls < rounds*clients/4 || len(a.kinds) < 8 {
		t.Errorf("but %d answers, of %v", a.calls, a.kinds)
	}
	t.Logf("%d kills under %d clients: %d answers, %d of them that there is too much at once; %v; %d commands looked at; at the end %d sandboxes, %d deleted",
		rounds, clients, a.calls, a.many, a.kinds, a.looked, len(a.boxes), len(a.dead))
	if err := h.deleteAll(ctx); err != nil {
		t.Fatal(err)
	}
	transport.CloseIdleConnections()
	h.holdNothingBeyond(before)
}

// killedUnderSDKs kills the server at a random moment of a random call.
func (h *host) killedUnderSDKs(ctx context.Context, a *told, round, clients int) error {
	g := group{limit: clients}
	doomed := untilKilled(ctx, &g, round, clients, a.act)
	<-doomed
	time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond)))) // within a call
	h.kill()
	return g.wait()
}

// kept holds a server that was started again to all that was answered, by both wires.
func (a *told) kept(ctx context.Context) error {
	there, err := a.wire.orkestrList(ctx)
	if err != nil {
		return err
	}
	keys, err := a.wire.gatewayList(ctx)
	if err != nil {
		return err
	}
	if len(there) != len(keys) {
		return fmt.Errorf("one wire lists %d sandboxes, the other %d", len(there), len(keys))
	}
	g := group{limit: 8}
	for id, status := range there {
		switch {
		case a.dead[id]:
			g.do(func() error { return fmt.Errorf("%s was deleted, and is %s", id, status) })
		case status != "running":
			g.do(func() error { return fmt.Errorf("%s is %s after a restart", id, status) })
		case a.boxes[id] == nil: // its create was not answered; what is there is whole
			g.do(func() error { return a.orkestrExec(ctx, &toldBox{id: id}, "unanswered") })
		}
	}
	for id, b := range a.boxes {
		if b.leaving && there[id] == "" {
			delete(a.boxes, id)
			a.dead[id] = true
			continue
		}
		b.leaving = false // the delete was not begun
		g.do(func() error {
			if there[id] == "" {
				return fmt.Errorf("%s was created, and is not there", id)
			}
			if b.key != "" && !slices.Contains(keys, b.key) {
				return fmt.Errorf("%s was created with the key %s, which is not there", id, b.key)
			}
			if err := a.keptOf(ctx, b); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			return nil
		})
	}
	for id := range a.dead {
		for _, path := range []string{orkestrPath(id), gatewayPath(id)} {
			if _, err := a.wire.call(ctx, "GET", path, nil, nil); !missing(err) {
				g.do(func() error { return fmt.Errorf("%s was deleted, and a get says %w", id, err) })
			}
		}
	}
	return g.wait()
}

func (a *told) keptOf(ctx context.Context, b *toldBox) error {
	for _, exec := range []func(context.Context, *toldBox, string) error{a.orkestrExec, a.gatewayExec} {
		if err := exec(ctx, b, "here"); err != nil {
			return err
		}
	}
	for path, want := range b.files {
		one, err := a.wire.orkestrRead(ctx, b.id, path)
		if err != nil {
			return err
		}
		other, err := a.wire.gatewayRead(ctx, b.id, path)
		if err != nil {
			return err
		}
		if one != want || other != want {
			return fmt.Errorf("the file %s has %d and %d bytes by the wires, and %d were written", path, len(one), len(other), len(want))
		}
	}
	for _, path := range b.noFiles {
		if _, err := a.wire.gatewayRead(ctx, b.id, path); !missing(err) {
			return fmt.Errorf("the file %s was deleted: %w", path, err)
		}
	}
	for id, c := range b.commands {
		if err := a.keptCommand(ctx, b, id, c); err != nil {
			return fmt.Errorf("the command %s: %w", id, err)
		}
	}
	return nil
}

// keptCommand waits for the end of a command in the background, and reads its log.
func (a *told) keptCommand(ctx context.Context, b *toldBox, id string, c toldCommand) error {
	path := orkestrPath(b.id) + "/commands/" + id
	if _, _, stream, err := a.wire.send(ctx, "GET", path+"/logs?follow=true", "", nil); err != nil {
		return err
	} else if err := endsWell(stream); err != nil {
		return err
	}
	var r struct {
		Status   string
		ExitCode *int `json:"exit_code"`
	}
	if _, err := a.wire.call(ctx, "GET", path, nil, &r); err != nil {
		return err
	}
	if r.Status != "exited" || r.ExitCode == nil || *r.ExitCode != c.code {
		return fmt.Errorf("it is %s with %v, and not %d", r.Status, r.ExitCode, c.code)
	}
	var log struct{ Content string }
	if _, err := a.wire.call(ctx, "GET", path+"/logs", nil, &log); err != nil {
		return err
	}
	if log.Content != c.says {
		return fmt.Errorf("its log is %q, and not %q", log.Content, c.says)
	}
	a.did(func() { a.looked++ })
	return nil
}
