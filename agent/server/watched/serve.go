// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package watched

import (
	"context"
	"path"

	"sandpit.dev/agent/wire"
)

// Serve answers a call for a watch until ctx ends, a send fails, or the watch ends, whose reason it
// returns.
func (h *Hub) Serve(ctx context.Context, dir string, recursive bool, send func(wire.Type, any) error) error {
	w, err := h.Watch(ctx, path.Clean(dir), recursive)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := send(wire.Reply, struct{}{}); err != nil {
		return err
	}
	for {
		events, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if err := send(wire.Item, events); err != nil {
			return err
		}
	}
}
