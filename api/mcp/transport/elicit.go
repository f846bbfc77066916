// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tool may ask the person in front of the client. Until the stateless era the server sends a request of its
// own and waits; since then the call is answered with what is to be asked, and the client calls again with what
// was said. What a client says is its own: whether a person has seen the question is not known.

// CanAsk reports whether the call's client can ask its person with a form.
func (c *Call) CanAsk() bool {
	if c.req == nil || c.req.Session == nil {
		return false
	}
	all := c.req.ClientCapabilities()
	if all == nil || all.Elicitation == nil {
		return false
	}
	// One that names neither kind is of the time when forms were the only one.
	return all.Elicitation.Form != nil || all.Elicitation.URL == nil
}

// AsksByResult reports whether what is to be asked goes into the call's result, which the client answers with another
// call; else Ask sends it.
func (c *Call) AsksByResult() bool {
	p := c.req.Session.InitializeParams()
	return p == nil || p.ProtocolVersion >= firstModern
}

// Ask sends a question and waits for what is said to it, as long as ctx lets it. An answer that does not fit the
// question's schema is an error.
func (c *Call) Ask(ctx context.Context, q *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return c.req.Session.Elicit(ctx, q)
}

// Said returns what was said to a question of an earlier call's result, and the state that came with that result. Nothing
// of it has been checked. ok is false if the call has no such answer.
func (c *Call) Said(question string) (said *mcp.ElicitResult, state string, ok bool) {
	if c.req == nil || c.req.Params == nil || !c.AsksByResult() {
		return nil, "", false
	}
	said, ok = c.req.Params.InputResponses[question].(*mcp.ElicitResult)
	return said, c.req.Params.RequestState, ok && said != nil
}
