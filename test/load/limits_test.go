// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// exhaust forks until it is refused, and takes its children along.
const exhaust = `exec python3 -c '
import os, signal, sys
kids = []
try:
    for _ in range(200):
        pid = os.fork()
        if pid == 0:
            signal.pause()
        kids.append(pid)
except OSError as e:
    print(e, file=sys.stderr)
    for pid in kids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    sys.exit(1)
'`

// A full disk, exhausted pids and an out-of-memory kill are reported to the sandbox that caused
// them, and no other notices.
func TestLimitsHarmNoNeighbour(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	info, err := h.client.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, needs, command, cause string
	}{
		{"ADiskThatIsFull", "limit_disk", "head -c 200M /dev/zero > big", "disk"},
		{"PidsThatAreUsedUp", "limit_pids", exhaust, "pids"},
		{"MemoryThatIsUsedUp", "limit_memory", "python3 -c 'b = bytearray(400 << 20); print(len(b))'", "oom"},
	} {
		t.Run(c.name, func(t *testing.T) {
			able := v1.Capability{}
			for _, r := range info.Runtimes {
				if r.Name == info.Runtime {
					able = r.Capabilities[c.needs]
				}
			}
			if !able.Supported {
				t.Skipf("this host cannot enforce it: %s (%s)", able.Reason, able.Remedy)
			}
			box, _, err := h.client.Create(ctx, v1.CreateSandbox{MemoryMB: new(64), DiskMB: new(64), Pids: new(40)})
			if err != nil {
				t.Fatal(err)
			}
			neighbour, _, err := h.client.Create(ctx, v1.CreateSandbox{})
			if err != nil {
				t.Fatal(err)
			}
			// The neighbour works all the while on what the other runs out of.
			live, end := context.WithCancel(ctx)
			defer end()
			began := make(chan struct{})
			worked := make(chan error, 1)
			go func() {
				const work = "head -c 4M /dev/zero > f && sh -c 'sleep 0.01 & wait' && python3 -c 'print(len(bytearray(64 << 20)))'"
				var err error
				for n := 0; live.Err() == nil && err == nil; n++ {
					err = h.says(ctx, neighbour.ID, work, "67108864\n")
					if n == 0 {
						close(began)
					}
				}
				worked <- err
			}()
			<-began
			r, err := h.client.Exec(ctx, box.ID, v1.Exec{Command: &c.command, TimeoutSeconds: new(50.0)})
			end()
			if nerr := <-worked; nerr != nil {
				t.Errorf("the neighbour was harmed: %v", nerr)
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.Cause != c.cause || r.CauseDetail == "" || r.ExitCode == nil || *r.ExitCode == 0 {
				t.Errorf("got %s, cause %q (%q), stderr %.200q; want a failure with cause %q and its evidence", code(r.ExitCode), r.Cause, r.CauseDetail, r.Stderr, c.cause)
			}
			row, err := h.client.ActivityPage(ctx, box.ID, client.ActivityQuery{ProcessID: r.ProcessID})
			if err != nil {
				t.Fatal(err)
			}
			if len(row.Items) != 1 || row.Items[0].Cause != c.cause {
				t.Errorf("the activity has %+v, want one row with cause %q", row.Items, c.cause)
			}
			// It goes on itself, too.
			if err := h.says(ctx, box.ID, "rm -f big; echo small > after; cat after", "small\n"); err != nil {
				t.Errorf("the sandbox does not go on: %v", err)
			}
			if strings.Contains(r.CauseDetail, "/sys/fs/cgroup") {
				t.Errorf("the evidence tells of the host: %q", r.CauseDetail)
			}
		})
	}
}
