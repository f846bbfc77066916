// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"sandpit.dev/agent/wire"
)

// Held is a command that the agent has received and does not start before Start, or Run. So the caller
// can prepare the command's run while the agent gets ready. End it by Start or Drop, from one
// goroutine.
type Held struct {
	c   *Client
	s   *stream
	cmd Command
}

// Hold sends a command to the agent. Start may return an error of it, too: only then is the
// agent's answer to the command read. ctx bounds the sending and the start.
func (c *Client) Hold(ctx context.Context, cmd Command) (*Held, error) {
	if err := cmd.checkText(); err != nil {
		return nil, err
	}
	st := cmd.wire()
	st.Held = true
	s, err := c.send(ctx, &cmd, st)
	if err != nil {
		return nil, err
	}
	return &Held{c: c, s: s, cmd: cmd}, nil
}

// Start starts the command, as [Client.Start] does.
func (h *Held) Start() (*Process, error) { return h.start(wire.Append(nil, wire.End, nil)) }

func (h *Held) start(word []byte) (*Process, error) {
	if err := h.s.send(word); err != nil {
		defer h.s.close()
		return nil, h.s.refused(err)
	}
	return h.c.follow(h.s, h.cmd.ID, 0, h.cmd.output())
}

// Drop ends the call instead of starting the command, which then never runs and is not recorded.
func (h *Held) Drop() { h.s.close() }
