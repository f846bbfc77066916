// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"sync"
	"time"
)

// session is what the old era keeps between messages.
type session struct {
	id         string // the server's; empty: none
	version    string // of the protocol, agreed on
	initialize []byte // the client's first message, to open it anew
	generation int
}

// set sets the headers of a request within the session.
func (s *session) set(h http.Header) {
	if s.id != "" {
		h.Set("Mcp-Session-Id", s.id)
	}
	if s.version != "" {
		h.Set("Mcp-Protocol-Version", s.version)
	}
}

func (b *bridge) current() session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session
}

// opened notes the session that an answer to initialize opened.
func (b *bridge) opened(x *attempt, data []byte) {
	var m struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	if json.Unmarshal(x.reply, &m) != nil || m.Result.Version == "" {
		return // an error: the server opened no session
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session = session{id: x.newID, version: m.Result.Version, initialize: data, generation: b.session.generation + 1}
}

// renew opens a session in place of old, as the client opened the first. Calls
// that find the same session gone share one renewal.
func (b *bridge) renew(ctx context.Context, old session) error {
	for {
		b.mu.Lock()
		if b.session.generation != old.generation {
			b.mu.Unlock()
			return nil
		}
		if b.session.initialize == nil {
			b.mu.Unlock()
			return errors.New("the client has not initialized one")
		}
		wait := b.renewal
		if wait == nil {
			b.renewal = make(chan struct{})
		}
		b.mu.Unlock()
		if wait == nil {
			break
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() {
		b.mu.Lock()
		close(b.renewal)
		b.renewal = nil
		b.mu.Unlock()
	}()
	b.log.Info("the server does not know the session any more; opening a new one")
	var first map[string]json.RawMessage
	if err := json.Unmarshal(old.initialize, &first); err != nil {
		return err
	}
	// An id that no client's call can have at the same time.
	first["id"] = json.RawMessage(fmt.Sprintf(`"sandpit-bridge-%d"`, old.generation+1))
	data, err := json.Marshal(first)
	if err != nil {
		return err
	}
	m, err := parse(data)
	if err != nil {
		return err
	}
	x := &attempt{b: b, m: m, private: true}
	if err := x.post(ctx, data); err != nil {
		return err
	}
	before := b.current().generation
	b.opened(x, old.initialize)
	if b.current().generation == before {
		return errors.New("the server refused to initialize it")
	}
	ready := []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	x = &attempt{b: b, m: &message{Method: methodReady}, session: b.current()}
	if err := x.post(ctx, ready); err != nil {
		return err
	}
	b.listen()
	return nil
}

// listen has the stream opened on which the server says what answers no call.
func (b *bridge) listen() {
	s := b.current()
	if s.id == "" {
		return
	}
	select { // a waiter there is of an older session
	case <-b.heard:
	default:
	}
	select {
	case b.heard <- s:
	default:
	}
}

// listening follows the stream of the newest session until ctx is done.
func (b *bridge) listening(ctx context.Context) {
	stop := func() {}
	defer func() { stop() }()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-b.heard:
			stop()
			sctx, cancel := context.WithCancel(ctx)
			var wg sync.WaitGroup
			wg.Go(func() { b.follow(sctx, s) })
			stop = func() { cancel(); wg.Wait() }
		}
	}
}

// follow opens the stream again and again, where the server offers one.
func (b *bridge) follow(ctx context.Context, s session) {
	pause := firstPause
	for b.hear(ctx, s) {
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
		pause = min(2*pause, 10*longPause)
	}
}

// hear follows the stream until it breaks, and reports whether to try again.
func (b *bridge) hear(ctx context.Context, s session) bool {
	if ctx.Err() != nil {
		return false
	}
	req, err := b.request(ctx, http.MethodGet, nil)
	if err != nil {
		return false
	}
	req.Header.Set("Accept", "text/event-stream")
	s.set(req.Header)
	resp, err := b.http.Do(req)
	if err != nil {
		return ctx.Err() == nil
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || media != "text/event-stream" {
		// It offers none, or the session is gone: then the next call opens one anew.
		return resp.StatusCode == http.StatusServiceUnavailable
	}
	err = events(resp.Body, b.most, func(_ string, data []byte) {
		if _, err := parse(data); err == nil {
			b.out.write(data)
		}
	})
	b.log.Debug("the server's stream ended", "error", err)
	return ctx.Err() == nil
}

// unsubscribe ends the calls that would go on for ever.
func (b *bridge) unsubscribe() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.flights {
		if f.method == methodListen {
			f.cancelled.Store(true)
			f.cancel()
		}
	}
}

func base64Text(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
