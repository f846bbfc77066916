// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/sandbox"
)

// noZombies fails if a dead process is not reaped within a while.
func noZombies(t *testing.T, c *agent.Client) {
	t.Helper()
	if got := sh(t, c, `n=100; while [ $n -gt 0 ] && grep -q '^State:.Z' /proc/[0-9]*/status 2>/dev/null; do sleep 0.05; n=$((n-1)); done
		grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l`); got != "0\n" {
		t.Errorf("zombies are left: %s", got)
	}
}

// testSameEnd has commands end in the instant in which orphans do, theirs and others', and
// in which there are ones whose program cannot be executed.
func testSameEnd(t *testing.T, c *agent.Client, o Options) {
	const many, rounds = 8, 6
	for round := range rounds {
		var all sync.WaitGroup
		for i := range many {
			code := 1 + round*many + i
			all.Go(func() {
				cmd := agent.Command{Shell: fmt.Sprintf("%s; exit %d", orphans(2*code), code)}
				if res, err := result(t, c, cmd, false); err != nil || res.ExitCode != code {
					t.Errorf("one that exits with %d: %+v %v", code, res, err)
				}
			})
			all.Go(func() {
				if res, err := result(t, c, agent.Command{Argv: []string{"/no/such/program"}}, false); err != nil || res.ExitCode != 127 {
					t.Errorf("a program that is not there: %+v %v", res, err)
				}
			})
			all.Go(func() {
				cmd := agent.Command{Shell: orphans(2*code+1) + "; echo up; sleep 600"}
				if res, err := result(t, c, cmd, true); err != nil || res.Signal != "SIGKILL" || res.Cause != sandbox.CauseKilled {
					t.Errorf("one that is killed: %+v %v", res, err)
				}
			})
		}
		all.Wait()
	}
	awaitIdle(t, c)
	if o.IsPID1 {
		noZombies(t, c)
	}
}

// orphans is a line of shell that makes some, which end with the shell: until then it holds
// the other end of the pipe that they read.
func orphans(n int) string {
	return fmt.Sprintf("mkfifo f%[1]d; exec 7<>f%[1]d 8<f%[1]d; for i in 1 2 3 4 5 6; do (sh -c 'read x; exit 99' <&8 7>&- 8<&- &); done", n)
}

// result runs a command to its end. With kill it is killed once it has written something.
func result(t *testing.T, c *agent.Client, cmd agent.Command, kill bool) (sandbox.Result, error) {
	ctx := within(t)
	cmd.ID = sandbox.NewProcessID()
	p, err := c.Start(ctx, cmd)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer p.Close()
	for {
		switch _, err := p.Next(ctx); {
		case errors.Is(err, io.EOF):
			return p.Result(), nil
		case err != nil:
			return sandbox.Result{}, err
		}
		if kill {
			kill = false
			if err := c.Kill(ctx, p.ID(), ""); err != nil {
				return sandbox.Result{}, err
			}
		}
	}
}

// siblings is a program whose children are at once the agent's own, as commands are.
const siblings = `import os, platform, time
try:
    import ctypes
except ImportError:
    os._exit(9)
clone, parent, chld = {"x86_64": 56, "aarch64": 220}[platform.machine()], 0x8000, 17
for i in range(50):
    if ctypes.CDLL(None).syscall(clone, parent | chld, 0, 0, 0, 0) == 0:
        time.sleep(i / 1000)
        os._exit(77)
os._exit(5)`

func testSiblings(t *testing.T, c *agent.Client) {
	for range 3 {
		switch out := run(t, c, agent.Command{Argv: []string{"python3", "-c", siblings}}); out.ExitCode {
		case 5:
		case 9:
			t.Skip("python3 has no ctypes here, by which it asks for CLONE_PARENT")
		default:
			t.Errorf("%+v %s", out.Result, out.stderr)
		}
	}
	awaitIdle(t, c)
	noZombies(t, c)
}
