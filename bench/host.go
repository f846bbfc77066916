// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"os/exec"
	"time"
)

// host is no sandbox at all: the program is started on the host, by fork and exec,
// and waited for. Nothing that starts a process can be faster: it is the floor.
type host struct{ parts peerParts }

func openHost(_ context.Context, parts peerParts) (Peer, error) {
	return host{parts}, nil
}

func (host) Version() string { return "a process of the host's /bin/true" }

func (host) Close() error { return nil }

func (h host) FirstCommand(ctx context.Context) (took, cpu time.Duration, err error) {
	return spent(ctx, h.parts.dir, func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "/bin/true") })
}

// Exec is the same: there is nothing that would run before.
func (h host) Exec(ctx context.Context) (time.Duration, error) {
	took, _, err := h.FirstCommand(ctx)
	return took, err
}
