// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	v1 "sandpit.dev/api/v1"
)

// MCP is what the protocol costs: the same command by REST and by MCP in both its
// eras, in turn.
type MCP struct {
	REST      *Figures `json:"rest"`
	Stateless *Figures `json:"stateless"` // 2026-07-28
	Session   *Figures `json:"session"`   // 2025-11-25
	// The Added are what MCP adds to its neighbour by REST: the median over the pairs, in
	// milliseconds.
	AddedStateless *float64 `json:"added_stateless_ms"`
	AddedSession   *float64 `json:"added_session_ms"`
}

// speaker is an MCP client that does no more than it must.
type speaker struct {
	http    *http.Client
	url     string
	token   string
	session string
}

// say sends a message and gives the answer, whole.
func (s *speaker) say(ctx context.Context, header http.Header, body []byte) ([]byte, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	for name, v := range header {
		req.Header[name] = v
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %s", resp.Status, data)
	}
	return data, resp.Header, err
}

const sessionEra, statelessEra = "2025-11-25", "2026-07-28"

// hello opens a session.
func (s *speaker) hello(ctx context.Context) error {
	_, h, err := s.say(ctx, nil, []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+sessionEra+`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`))
	if err != nil {
		return err
	}
	if s.session = h.Get("Mcp-Session-Id"); s.session == "" {
		return errors.New("the server opened no session")
	}
	_, _, err = s.say(ctx, s.within(), []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	return err
}

func (s *speaker) within() http.Header {
	return http.Header{"Mcp-Session-Id": {s.session}, "Mcp-Protocol-Version": {sessionEra}}
}

// run runs a command that has to end with 0.
func (s *speaker) run(ctx context.Context, ref, command string, stateless bool) error {
	params := map[string]any{"name": "run_command", "arguments": map[string]any{"sandbox": ref, "command": command}}
	header := s.within()
	if stateless {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion": statelessEra, "io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}
		header = http.Header{"Mcp-Protocol-Version": {statelessEra}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"run_command"}}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
	if err != nil {
		return err
	}
	answer, _, err := s.say(ctx, header, body)
	if err == nil && !bytes.Contains(answer, []byte(`"text":"exit 0 `)) {
		err = fmt.Errorf("the command ended with %.200s", answer)
	}
	return err
}

// mcp times n commands by REST, each with the same by MCP right after or before it.
func (o *ours) mcp(ctx context.Context, s *server, n int) (_ *MCP, err error) {
	box, _, err := o.client.Create(ctx, v1.CreateSandbox{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.client.Delete(ctx, box.ID)) }()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	by := &speaker{http: &http.Client{Transport: transport}, url: s.url + "/mcp", token: s.token}
	if err := by.hello(ctx); err != nil {
		return nil, err
	}
	sides := []func() error{
		func() error { return o.exec(ctx, box.ID, byShell) },
		func() error { return by.run(ctx, box.ID, "true", true) },
		func() error { return by.run(ctx, box.ID, "true", false) },
	}
	times := make([]series, len(sides))
	var added [3][]float64
	for i := range n + warmUp {
		var took [3]time.Duration
		var failed [3]error
		for k := range sides {
			side := (i + k) % len(sides)
			began := time.Now()
			failed[side] = sides[side]()
			took[side] = time.Since(began)
		}
		if i < warmUp {
			if err := errors.Join(failed[:]...); err != nil {
				return nil, err
			}
			continue
		}
		for side := range sides {
			times[side].add(took[side], failed[side])
			if failed[0] == nil && failed[side] == nil {
				added[side] = append(added[side], ms(took[side]-took[0]))
			}
		}
	}
	return &MCP{
		REST: times[0].figures(), Stateless: times[1].figures(), Session: times[2].figures(),
		AddedStateless: median(added[1]), AddedSession: median(added[2]),
	}, ctx.Err()
}
