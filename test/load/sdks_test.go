// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	w := h.wire("", clients)
	before := h.warmed(ctx, w, newSDKAnswers(w, 2).act)

	a := newSDKAnswers(w, length(8, 24))
	rounds := length(4, 300)
	for round := range rounds {
		if err := h.killedUnderSDKs(ctx, a, round, clients); err != nil {
			t.Fatalf("round %d, before the kill: %v", round, err)
		}
		w.http.CloseIdleConnections()
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
	w.http.CloseIdleConnections()
	h.holdNothingBeyond(before)
}

// killedUnderSDKs kills the server at a random moment of a random call.
func (h *host) killedUnderSDKs(ctx context.Context, a *sdkAnswers, round, clients int) error {
	g := group{limit: clients}
	doomed := untilKilled(ctx, &g, round, clients, a.act)
	<-doomed
	time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond)))) // within a call
	h.kill()
	return g.wait()
}

// kept holds a server that was started again to all that was answered, by both wires.
func (a *sdkAnswers) kept(ctx context.Context) error {
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
	return a.held(there, "running", looks[*sdkBox]{
		works: func(id string) error { return a.exec(ctx, orkestrPath(id), "unanswered") },
		kept: func(b *sdkBox) error {
			if b.key != "" && !slices.Contains(keys, b.key) {
				return fmt.Errorf("it was created with the key %s, which is not there", b.key)
			}
			return a.keptOf(ctx, b)
		},
		gone: func(id string) error {
			for _, path := range []string{orkestrPath(id), gatewayPath(id)} {
				_, err := a.wire.call(ctx, "GET", path, nil, nil)
				if err := unlessMissing(err, missing); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

func (a *sdkAnswers) keptOf(ctx context.Context, b *sdkBox) error {
	for _, exec := range []func(context.Context, *sdkBox, string) error{a.orkestrExec, a.gatewayExec} {
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
func (a *sdkAnswers) keptCommand(ctx context.Context, b *sdkBox, id string, c background) error {
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
