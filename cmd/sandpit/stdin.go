// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

const (
	stdinRead  = 64 << 10 // bytes of one read: what a pipe holds
	stdinAhead = 16       // reads that may wait for the server
)

// fed runs a command with m.input for its standard input. An input that cannot be read, or
// not be handed on, ends the command: it would wait for the rest, or take a part for all.
func (m *command) fed(ctx context.Context, a *app, started func(*client.Process), run func(context.Context, func(*client.Process)) (*v1.ExecOutcome, error)) (*v1.ExecOutcome, error) {
	if m.input == nil {
		return run(ctx, started)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var begun *client.Process
	out, err := run(ctx, func(p *client.Process) {
		begun = p
		started(p)
		// It stays in its last read when the command has ended, which is right before our
		// own end: a read of a terminal or a pipe cannot be called back.
		go func() {
			if err := feed(ctx, p, m.input); err != nil {
				cancel(inputFailed{err})
			}
		}()
	})
	if failed, ok := errors.AsType[inputFailed](context.Cause(ctx)); ok && err != nil {
		a.kill(ctx, begun)
		return nil, failed.error
	}
	return out, err
}

// inputFailed is the cause of a context that ends for want of input.
type inputFailed struct{ error }

// feed sends r to the process until either ends. A process that ends first is not an error.
func feed(ctx context.Context, p *client.Process, r io.Reader) error {
	pieces := make(chan []byte, stdinAhead)
	var broken error
	go func() {
		defer close(pieces)
		for {
			b := make([]byte, stdinRead)
			n, err := r.Read(b)
			if n > 0 {
				select {
				case pieces <- b[:n]:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					broken = unreadable(err)
				}
				return
			}
		}
	}()
	in := p.Stdin(ctx)
	for b := range pieces {
		for more := true; more && len(b) < stdinRead*stdinAhead; { // what came meanwhile goes along
			select {
			case next, ok := <-pieces:
				b, more = append(b, next...), ok
			default:
				more = false
			}
		}
		if _, err := in.Write(b); err != nil {
			return unlessOver(ctx, err)
		}
	}
	if broken != nil || ctx.Err() != nil {
		return broken
	}
	return unlessOver(ctx, in.Close())
}

// unlessOver returns an error of a command's input, but for those of one that needs none.
func unlessOver(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || fault.Is(err, fault.State) || fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
