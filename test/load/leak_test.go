// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/leaktest"
)

// cycle is a whole life: create, a command that leaves a file, delete.
func (h *host) cycle(ctx context.Context) error {
	box, created, err := h.client.Create(ctx, v1.CreateSandbox{})
	if err != nil {
		return err
	}
	if !created {
		return errors.New("a create without a key gave a sandbox that was there")
	}
	err = h.says(ctx, box.ID, "echo life > f; cat f", "life\n")
	return errors.Join(err, h.client.Delete(ctx, box.ID))
}

// says holds what a command prints.
func (h *host) says(ctx context.Context, ref, command, want string) error {
	r, err := h.client.Exec(ctx, ref, v1.Exec{Command: &command})
	if err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	if r.ExitCode == nil || *r.ExitCode != 0 || r.Stdout != want {
		return fmt.Errorf("%s: %q gave %s, %q, %q, cause %q; want %q", ref, command, code(r.ExitCode), r.Stdout, r.Stderr, r.Cause, want)
	}
	return nil
}

func code(c *int) string {
	if c == nil {
		return "no exit code"
	}
	return fmt.Sprint("exit code ", *c)
}

// sees holds that the instrument is not blind: with a sandbox alive there is
// more of what each has.
func (h *host) sees(before leaktest.Snapshot) {
	h.t.Helper()
	grown := strings.Join(h.look().Beyond(before, nil), "\n")
	for _, k := range []leaktest.Kind{
		leaktest.Processes, leaktest.Mounts, leaktest.Cgroups, leaktest.Namespaces, leaktest.Descriptors, leaktest.Directories,
	} {
		if !strings.Contains("\n"+grown, "\n"+string(k)+" ") {
			h.t.Errorf("of a sandbox that is alive no %s is seen; this test would miss one that leaks\n%s", k, grown)
		}
	}
}

const workers = 8

func TestLeakAfterCycles(t *testing.T) {
	h := open(t)
	n := length(100, 2000)
	turn := func(n int) {
		t.Helper()
		g := group{limit: workers}
		for range n {
			g.do(func() error { return h.cycle(t.Context()) })
		}
		if err := g.wait(); err != nil {
			t.Fatal(err)
		}
	}
	turn(2 * workers) // what a server keeps once it has worked is there before
	h.http.CloseIdleConnections()
	before := h.rest()

	box, _, err := h.client.Create(t.Context(), v1.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	h.sees(before)
	if err := h.client.Delete(t.Context(), box.ID); err != nil {
		t.Fatal(err)
	}

	serverBefore, err := leaktest.PSS(h.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	cpuBefore, err := leaktest.CPU(h.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	turn(n)
	took := time.Since(began)
	cpuAfter, err := leaktest.CPU(h.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	serverAfter, err := leaktest.PSS(h.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d cycles of create, exec, delete by %d workers in %v: %.1f a second, %.2f ms of processor time each; the server's memory went from %.1f to %.1f MB",
		n, workers, took.Round(time.Millisecond), float64(n)/took.Seconds(), (cpuAfter-cpuBefore).Seconds()*1000/float64(n), mb(serverBefore), mb(serverAfter))
	h.holdNothingBeyond(before)
}

func mb(b int64) float64 { return float64(b) / (1 << 20) }

// rest looks once nothing of a sandbox is there any more.
func (h *host) rest() leaktest.Snapshot {
	h.t.Helper()
	none := leaktest.Snapshot{leaktest.Mounts: h.empty[leaktest.Mounts]} // the data directory may be one
	// Everything that a server without sandboxes has; what sandboxes have is not
	// in it, so waiting for it is waiting for their end.
	bounds := []leaktest.Cache{
		{Kind: leaktest.Descriptors, Most: 1 << 20}, {Kind: leaktest.Directories, Most: 1 << 20},
		{Kind: leaktest.Loops, Most: 1}, {Kind: leaktest.Cgroups, Most: 1}, {Kind: leaktest.Sockets, Part: "@sandpit-", Most: 1},
		{Kind: leaktest.Sockets, Part: "/sandpit/sudo.sock", Most: 64},
	}
	limit, cancel := context.WithTimeout(h.t.Context(), settleTime)
	defer cancel()
	left, now, err := leaktest.Settle(limit, h.scope(), none, bounds)
	if err != nil || len(left) > 0 {
		h.t.Fatalf("a server without sandboxes holds (%v):\n%s", err, strings.Join(left, "\n"))
	}
	return now
}
