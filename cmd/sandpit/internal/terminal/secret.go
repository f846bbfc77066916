// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"sandpit.dev/cmd/sandpit/internal/output"
)

// AskSecret asks a person at the terminal keys for what is named, by prompt, without an echo. An
// interrupt ends it, with the echo back on.
func AskSecret(ctx context.Context, keys *os.File, prompt io.Writer, what string) ([]byte, error) {
	fd := int(keys.Fd())
	was, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	type answer struct {
		text []byte
		err  error
	}
	got := make(chan answer, 1)
	_, _ = fmt.Fprintf(prompt, "%s: ", output.Printable(what))
	defer func() { _, _ = fmt.Fprintln(prompt) }()
	go func() { // a read of a terminal cannot be ended; the process ends instead
		text, err := term.ReadPassword(fd)
		got <- answer{text, err}
	}()
	select {
	case x := <-got:
		return x.text, x.err
	case <-ctx.Done():
		_ = term.Restore(fd, was)
		return nil, ctx.Err()
	}
}
