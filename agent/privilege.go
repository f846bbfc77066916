// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"sandpit.dev/agent/wire"
)

// Who may use sudo in a sandbox: nobody, as its record says; its user; nobody, as the server says.
const (
	SudoOff       = wire.SudoOff
	SudoOn        = wire.SudoOn
	SudoForbidden = wire.SudoForbidden
)

// SetSudo says who may use sudo from now on. It may be called again. An agent that knows no sudo is
// fault.Unsupported, and lets nobody.
func (c *Client) SetSudo(ctx context.Context, policy string) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpSudo, Sudo: policy}, nil)
}
