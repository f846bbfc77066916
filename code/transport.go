// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"

	"sandpit.dev/engine"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
)

// transport is the [kernel.Transport] of a kernel that is a process of a sandbox.
type transport struct {
	*engine.Background
	fresh bool // it was just started, and was told nothing
}

// Write writes the first words without waiting for them to be taken: the kernel answers to them.
func (t *transport) Write(ctx context.Context, b []byte) error {
	if t.fresh {
		t.fresh = false
		return t.Greet(ctx, b)
	}
	return t.Background.Write(ctx, b)
}

func (t *transport) Next(ctx context.Context) (kernel.Chunk, error) {
	fr, err := t.Background.Next(ctx)
	if err != nil {
		return kernel.Chunk{}, err
	}
	return kernel.Chunk{Seq: fr.Seq, Stderr: fr.Stream == sandbox.Stderr, Data: fr.Data, At: fr.At}, nil
}

func (t *transport) Exit() kernel.Exit { return exitOf(t.Result()) }

func exitOf(res sandbox.Result) kernel.Exit {
	return kernel.Exit{Code: res.ExitCode, Signal: res.Signal, Cause: string(res.Cause)}
}
