// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"context"

	"sandpit.dev/agent/serve"
)

// Relay connects standard input and output with the agent's socket at path, until either ends. It is told
// no key: what it carries is sealed.
func Relay(ctx context.Context, path string) error {
	nc, err := serve.Stdio()
	if err != nil {
		return err
	}
	return serve.Relay(ctx, nc, path)
}
