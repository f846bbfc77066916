// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/coder/websocket"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// TerminalOptions configure a terminal. The zero value runs a login shell.
type TerminalOptions struct {
	Command    string // shell text
	Cols, Rows int    // 1 to 1000; zero: 80 and 24
	Term       string // the kind of terminal; empty: xterm-256color
	User       string // an account of the sandbox, by name or number; empty: who commands run as
	Cwd        string // empty: /workspace
	Stays      bool   // it belongs to the sandbox: Close leaves it, and AttachTerminal joins it again
}

// Terminal is a command at a terminal. Read and Wait may be called concurrently with the other
// methods, but not with each other. Close hangs up, unless the terminal is to stay.
type Terminal struct {
	conn *websocket.Conn
	id   string

	mu   sync.Mutex // held while reading
	rest []byte     // read and not yet given
	over bool
	exit v1.TerminalExit
	err  error
}

// maxTerminalMessage bounds one message of the server.
const maxTerminalMessage = 4 << 20

// Terminal starts a command at a terminal. ctx bounds only the start.
func (c *Client) Terminal(ctx context.Context, ref string, o TerminalOptions) (*Terminal, error) {
	if c.err != nil {
		return nil, c.err
	}
	q := make(url.Values)
	set(q, "command", o.Command)
	set(q, "term", o.Term)
	set(q, "user", o.User)
	set(q, "cwd", o.Cwd)
	if o.Cols != 0 {
		q.Set("cols", strconv.Itoa(o.Cols))
	}
	if o.Rows != 0 {
		q.Set("rows", strconv.Itoa(o.Rows))
	}
	if o.Stays {
		q.Set("stays", "true")
	}
	return c.joinTerminal(ctx, of(ref, "/terminal"), q)
}

// AttachTerminal joins a terminal that stays. Read first returns about recent bytes of what it
// has shown last; zero: 64 KiB. ctx bounds only the start.
func (c *Client) AttachTerminal(ctx context.Context, ref, processID string, recent int) (*Terminal, error) {
	if c.err != nil {
		return nil, c.err
	}
	q := make(url.Values)
	if recent != 0 {
		q.Set("recent", strconv.Itoa(recent))
	}
	return c.joinTerminal(ctx, of(ref, "/terminals/"+seg(processID)), q)
}

// Terminals returns the terminals of a sandbox whose command runs. The sequence ends after an
// error.
func (c *Client) Terminals(ctx context.Context, ref string) iter.Seq2[*v1.Process, error] {
	return c.processPages(ctx, of(ref, "/terminals"), url.Values{"limit": {"1000"}})
}

func (c *Client) joinTerminal(ctx context.Context, path string, q url.Values) (*Terminal, error) {
	h := make(http.Header)
	c.authorize(h)
	conn, resp, err := websocket.Dial(ctx, c.base+path+"?"+q.Encode(), &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: h})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, errorOf(resp, readSome(resp.Body))
		}
		return nil, c.unanswered(ctx, err)
	}
	conn.SetReadLimit(maxTerminalMessage)
	return &Terminal{conn: conn, id: resp.Header.Get("Sandpit-Process-Id")}, nil
}

// ID is the id of the terminal's process.
func (t *Terminal) ID() string { return t.id }

// Read returns what the command shows; io.EOF when it has ended.
func (t *Terminal) Read(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.rest) == 0 {
		if err := t.moreLocked(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// moreLocked reads one message.
func (t *Terminal) moreLocked() error {
	if t.over {
		if t.err != nil {
			return t.err
		}
		return io.EOF
	}
	kind, data, err := t.conn.Read(context.Background())
	switch {
	case err != nil:
		t.over = true
		t.err = fault.Wrap(fault.Unavailable, err, "the terminal's connection broke").
			WithRemedy("open another, or join it again if it stays; else what ran in it has been hung up on")
		return t.err
	case kind == websocket.MessageBinary:
		t.rest = data
		return nil
	}
	var m v1.TerminalControl
	if err := json.Unmarshal(data, &m); err != nil {
		return garbled(err)
	}
	switch {
	case m.Exit != nil:
		t.over, t.exit = true, *m.Exit
		return io.EOF
	case m.Refused != nil: // the terminal goes on
	case m.Error != nil:
		t.over, t.err = true, faultOf(m.Error, "")
		return t.err
	}
	return nil // of a newer server
}

// Wait waits for the end of the command, and returns it. It drops output that was not read.
func (t *Terminal) Wait() (v1.TerminalExit, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		if err := t.moreLocked(); errors.Is(err, io.EOF) {
			return t.exit, nil
		} else if err != nil {
			return v1.TerminalExit{}, err
		}
	}
}

// Write types p.
func (t *Terminal) Write(p []byte) (int, error) {
	// The server bounds one message; a long paste is several.
	const most = 256 << 10
	for n := 0; n < len(p); n += most {
		if err := t.conn.Write(context.Background(), websocket.MessageBinary, p[n:min(n+most, len(p))]); err != nil {
			return n, fault.Wrap(fault.Unavailable, err, "the terminal's connection broke")
		}
	}
	return len(p), nil
}

// Resize sets the size of the command's terminal.
func (t *Terminal) Resize(cols, rows int) error {
	if cols < 1 || cols > 1000 || rows < 1 || rows > 1000 {
		return fault.InvalidField("resize", "%d by %d is outside 1 to 1000", cols, rows)
	}
	return t.control(v1.TerminalControl{Resize: &v1.TerminalSize{Cols: uint16(cols), Rows: uint16(rows)}})
}

// Signal sends a signal by name ("SIGINT").
func (t *Terminal) Signal(name string) error {
	return t.control(v1.TerminalControl{Signal: &name})
}

func (t *Terminal) control(m v1.TerminalControl) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := t.conn.Write(context.Background(), websocket.MessageText, data); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the terminal's connection broke")
	}
	return nil
}

// Close hangs up on the command if it still runs and is not to stay. Calling it twice is fine.
func (t *Terminal) Close() error {
	_ = t.conn.CloseNow() // the connection has no other user left
	return nil
}
