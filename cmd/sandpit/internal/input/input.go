// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package input reads what a person types: as a stream for a command that runs, or as a bounded text.
package input

import (
	"context"
	"errors"
	"io"

	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// Unreadable is the failure of reading standard input.
func Unreadable(err error) error {
	return fault.Wrap(fault.Unavailable, err, "standard input cannot be read")
}

const (
	stdinRead  = 64 << 10 // bytes of one read: what a pipe holds
	stdinAhead = 16       // reads that may wait for the server
)

// Feed sends r to the process until either ends. A process that ends first is not an error.
func Feed(ctx context.Context, p *client.Process, r io.Reader) error {
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
					broken = Unreadable(err)
				}
				return
			}
		}
	}()
	in := p.Stdin(ctx)
	for b := range pieces {
		if len(pieces) > 0 {
			b = append(make([]byte, 0, stdinRead*stdinAhead), b...)
		}
		for more := true; more && len(b) <= stdinRead*(stdinAhead-1); { // what came meanwhile goes along
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
