// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/access"
	"sandpit.dev/api/daytona/problem"
	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine/events"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// socketPath is the path of the event socket: Engine.IO 4 with Socket.IO 5 in it, over a WebSocket from the first byte.
const socketPath = Base + "/socket.io/"

// Packets of Engine.IO, and behind message those of Socket.IO.
const (
	packetOpen    = "0"
	packetClose   = "1"
	packetPing    = "2"
	packetConnect = "40"
	packetLeave   = "41"
	packetEvent   = "42"
	packetRefused = "44"
)

const (
	pingInterval = 25 * time.Second
	pingTimeout  = 20 * time.Second
)

// socket returns the handler of socketPath. Clients send their token in the first message.
func (a *API) socket(g *guard.Guard) http.Handler {
	door := guard.Door{Via: "daytona", Credentials: []guard.Credential{guard.Bearer(), guard.FirstMessage()}, Error: problem.Answer}
	return g.Through(door, a.handler.Func(func(c *httpapi.Call) error {
		if q := c.R.URL.Query(); q.Get("EIO") != "4" || q.Get("transport") != "websocket" || !strings.EqualFold(c.R.Header.Get("Upgrade"), "websocket") {
			return fault.New(fault.NotFound, "events are told over a WebSocket by Engine.IO 4: EIO=4&transport=websocket")
		}
		c.UpgradeDetached(c.R.Context(), guard.MaxFirstMessage, func(ctx context.Context, conn *websocket.Conn) func() {
			s := &follower{API: a, r: c.R, conn: conn, stall: c.Stall()}
			return s.begin(ctx)
		})
		return nil
	}))
}

// follower is a client that follows what happens.
type follower struct {
	*API
	r     *http.Request
	conn  *websocket.Conn
	stall time.Duration
}

// send sends a packet, with JSON behind it where there is any. The client has to take it in time.
func (s *follower) send(ctx context.Context, packet string, body any) error {
	text := []byte(packet)
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = append(text, b...)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.stall)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, text); err != nil {
		return fault.Wrap(fault.Canceled, err, "the client has gone")
	}
	return nil
}

// begin has the client say who it is, and returns what follows then; nil: nothing.
func (s *follower) begin(ctx context.Context) (serve func()) {
	open := struct {
		SID          string   `json:"sid"`
		Upgrades     []string `json:"upgrades"`
		PingInterval int64    `json:"pingInterval"`
		PingTimeout  int64    `json:"pingTimeout"`
		MaxPayload   int      `json:"maxPayload"`
	}{rand.Text(), []string{}, pingInterval.Milliseconds(), pingTimeout.Milliseconds(), guard.MaxFirstMessage}
	if s.send(ctx, packetOpen, open) != nil {
		return nil
	}
	ctx, caller, done, err := s.introduce(ctx)
	if err != nil {
		s.refuse(ctx, err)
		return nil
	}
	return func() {
		defer done()
		s.serve(ctx, caller)
	}
}

func (s *follower) serve(ctx context.Context, caller access.Caller) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reading sync.WaitGroup
	defer reading.Wait()
	defer s.conn.CloseNow() // which ends the reading
	reading.Go(func() { defer cancel(); s.read(ctx) })
	begun, err := s.follow(ctx, caller)
	switch {
	case ctx.Err() != nil:
	case begun:
		_ = s.send(ctx, packetClose, nil)
	default:
		s.refuse(ctx, err)
	}
	_ = s.conn.Close(websocket.StatusNormalClosure, "")
}

// refuse ends a connection that was not taken.
func (s *follower) refuse(ctx context.Context, err error) {
	_ = s.send(ctx, packetRefused, map[string]string{"message": fault.As(err).Message})
	_ = s.conn.Close(websocket.StatusPolicyViolation, "")
}

// introduce reads the message with the token, where the request had none.
func (s *follower) introduce(ctx context.Context) (context.Context, access.Caller, func(), error) {
	_, text, err := s.conn.Read(ctx)
	if err != nil {
		return ctx, access.Caller{}, nil, fault.Wrap(fault.Unauthenticated, err, "no message with a token came")
	}
	done := func() {}
	caller, err := guard.Caller(s.r.Context())
	if err != nil {
		var m struct {
			Token string `json:"token"`
		}
		body, ok := strings.CutPrefix(string(text), packetConnect)
		if !ok || json.Unmarshal([]byte(body), &m) != nil {
			return ctx, access.Caller{}, nil, fault.New(fault.Malformed, "the first message is no 40{\"token\":…}")
		}
		known, release, err := guard.Introduce(ctx, m.Token)
		if err != nil {
			return ctx, access.Caller{}, nil, err
		}
		ctx, done = known, release
		if caller, err = guard.Caller(ctx); err != nil {
			done()
			return ctx, access.Caller{}, nil, err
		}
	}
	if err := caller.Require(access.SandboxesRead); err != nil {
		done()
		return ctx, access.Caller{}, nil, err
	}
	return ctx, caller, done, nil
}

// read waits for the end of the client. It says nothing but that it is alive.
func (s *follower) read(ctx context.Context) {
	silent := time.AfterFunc(pingInterval+pingTimeout, func() { _ = s.conn.CloseNow() })
	defer silent.Stop()
	steady := context.WithoutCancel(ctx) // a context that ends breaks the connection
	for {
		_, text, err := s.conn.Read(steady)
		if err != nil || string(text) == packetClose || string(text) == packetLeave {
			return
		}
		silent.Reset(pingInterval + pingTimeout)
	}
}

// updated is the body of an event about a sandbox's state.
type updated struct {
	Sandbox  wire.Sandbox `json:"sandbox"`
	OldState string       `json:"oldState"`
	NewState string       `json:"newState"`
}

// follow tells of the sandboxes of the caller's project until ctx is done. begun reports whether the client was told that it is
// connected: what is committed from then on it hears of.
func (s *follower) follow(ctx context.Context, caller access.Caller) (begun bool, err error) {
	states := make(map[string]string) // the last that were told, as far as they are known
	err = s.Events.Follow(ctx, caller, events.Query{Types: []string{string(events.Sandbox), string(events.Template)}}, events.Follower{
		Begun: func(string, bool) error {
			begun = true
			return s.send(ctx, packetConnect, map[string]string{"sid": rand.Text()})
		},
		Gap:   func(string) error { return nil },                    // clients look by themselves, too
		Beat:  func() error { return s.send(ctx, packetPing, nil) }, // what the client answers, read reads in time
		Every: pingInterval,
		Told: func(all []*events.Event, _ string) error {
			for _, e := range all {
				if strings.HasPrefix(e.Type, string(events.Template)+".") {
					if err := s.tellSnapshot(ctx, caller, e, states); err != nil {
						return err
					}
					continue
				}
				box, ok, err := s.sandboxOf(ctx, caller, e)
				if err != nil {
					return err
				}
				if !ok {
					continue
				}
				u := updated{Sandbox: box, OldState: states[box.ID], NewState: box.State}
				name, body := "sandbox.state.updated", any(u)
				if e.Type == "sandbox.created" {
					name, body = "sandbox.created", box
				}
				remember(states, box.ID, box.State, box.State == wire.StateDestroyed)
				if err := s.send(ctx, packetEvent, []any{name, body}); err != nil {
					return err
				}
			}
			return nil
		},
	})
	return begun, err
}

// maxStates bounds the sandboxes and snapshots whose last state a follower knows.
const maxStates = 10_000

// sandboxOf returns the sandbox of an event as it is now, in the state that it came to with the event: clients are told of each state,
// also of a delete that memory does not have yet. ok is false where it is gone, and this is an earlier event.
func (s *follower) sandboxOf(ctx context.Context, caller access.Caller, e *events.Event) (box wire.Sandbox, ok bool, err error) {
	var then struct {
		Status sandbox.State `json:"status"`
	}
	if err := json.Unmarshal(e.Object, &then); err != nil {
		return wire.Sandbox{}, false, fault.Wrap(fault.Internal, err, "an event cannot be read")
	}
	now, err := s.Sandboxes.Inspect(ctx, caller, e.Subject)
	switch {
	case fault.Is(err, fault.NotFound) && e.Type == "sandbox.deleted":
		now = &sandbox.Sandbox{ID: sandbox.ID(e.Subject), Project: e.Project, State: sandbox.Deleted, CreatedAt: e.At, UpdatedAt: e.At, LastActivity: e.At}
	case fault.Is(err, fault.NotFound): // the event of that comes
		return wire.Sandbox{}, false, nil
	case err != nil:
		return wire.Sandbox{}, false, err
	}
	now.State = then.Status
	return wire.Sandbox{ListItem: s.item(s.r, now), Env: map[string]string{}}, true, nil
}
