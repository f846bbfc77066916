// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// asked is how long a server has to answer: it bounds its checks itself.
const asked = 15 * time.Second

// doctorOf prints what the server that --server names finds of itself and of its host.
func doctorOf(ctx context.Context, a *app.App, out output.Format) error {
	cl, err := a.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, asked)
	defer cancel()
	r, err := cl.Doctor(ctx)
	if err != nil {
		return err
	}
	if out.IsData() {
		if err := output.Data(a.Stdout, out, r.Items); err != nil {
			return err
		}
	} else {
		for _, f := range r.Items {
			printFinding(a, f, "")
		}
	}
	if r.Failures > 0 {
		return &exit.Error{Status: exit.StatusFailed}
	}
	return nil
}

// printFinding prints a finding; done is how it was mended.
func printFinding(a *app.App, f v1.Finding, done string) {
	mark := map[string]string{"ok": "✓", "warning": "!", "failed": "✗"}[f.Status]
	if mark == "" {
		mark = "?" // of a later server
	}
	fmt.Fprintf(a.Stdout, "%s %-18s %s\n", mark, output.Printable(f.Name), output.Printable(f.Detail))
	if done != "" {
		fmt.Fprintf(a.Stdout, "  %-18s ⇒ %s\n", "", output.Printable(done))
	}
	if f.Remedy != "" {
		fmt.Fprintf(a.Stdout, "  %-18s → %s\n", "", output.Printable(f.Remedy))
	}
}
