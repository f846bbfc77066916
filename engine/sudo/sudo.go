// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package sudo keeps the agents of sandboxes told of who may use sudo. It knows no record and no verb.
package sudo

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/singleflight"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
)

// Policy is who may use sudo in a sandbox.
func Policy(on, forbidRoot bool) string {
	switch {
	case !on:
		return agent.SudoOff
	case forbidRoot:
		return agent.SudoForbidden
	}
	return agent.SudoOn
}

// unknown is what an agent that an earlier server started may have been told.
const unknown = "unknown"

// Told is what one agent was told. Its zero value is of one that has just been started, and lets nobody.
// It is safe for concurrent use.
type Told struct {
	telling singleflight.Group // one at a time, so that the last word is the last policy; all who wait share an error
	is      atomic.Pointer[string]
}

// Forget notes that it is not known what the agent was told.
func (t *Told) Forget() { t.is.Store(new(unknown)) }

// Differs reports whether the agent was told something else.
func (t *Told) Differs(policy string) bool {
	is := t.is.Load()
	if is == nil {
		return policy != agent.SudoOff
	}
	return policy != *is
}

// Fresh reports whether the agent was told nothing yet: it is, before the first command.
func (t *Told) Fresh() bool { return t.is.Load() == nil }

// Tell tells the agent what policy returns, which is asked when nobody else tells it. An agent that does not answer
// is waited for once, whoever else has come meanwhile.
func (t *Told) Tell(ctx context.Context, c *agent.Client, policy func() string) error {
	for t.Differs(policy()) {
		told := t.telling.DoChan("", func() (any, error) { // ends with the client's bound, or with the client
			return nil, t.tell(context.WithoutCancel(ctx), c, policy())
		})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-told:
			if r.Err != nil {
				return r.Err
			}
		}
	}
	return nil
}

func (t *Told) tell(ctx context.Context, c *agent.Client, p string) error {
	err := c.SetSudo(ctx, p)
	old := fault.Is(err, fault.Unsupported) // of an earlier build, which lets nobody, whoever tells it
	if err == nil || old {
		t.is.Store(&p)
	}
	if old && p != agent.SudoOn {
		return nil
	}
	return err
}
