// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"slices"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
)

// attackers are programs that take all that they can get, each of something else, and never end.
var attackers = map[string]string{
	"forks":       "while :; do (sleep 60 &) 2>/dev/null; python3 -c 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass' 2>/dev/null; done",
	"memory":      "while :; do python3 -c 'b = bytearray(1 << 30)' 2>/dev/null; done",
	"disk":        "while :; do head -c 1G /dev/zero > big 2>/dev/null; rm -f big; done",
	"files":       "while :; do python3 -c 'import os\nos.makedirs(\"many\", exist_ok=True)\nfor n in range(20000): open(\"many/%d\" % n, \"w\").close()' 2>/dev/null; rm -rf many; done",
	"output":      "yes hostile",
	"connections": "python3 -c 'import socket\nl = socket.create_server((\"127.0.0.1\", 0)); k = []\nwhile True:\n  try: k.append(socket.create_connection(l.getsockname(), 1))\n  except OSError: k = []'",
	"changes":     "while :; do python3 -c 'import os\nfor n in range(500): open(\"c\", \"w\").close(); os.rename(\"c\", \"d\"); os.unlink(\"d\")'; done",
	"processor":   "while :; do :; done",
}

// Hostile sandboxes, all at once, fail no command of a neighbour's. How much longer its commands take is told, and
// not held: it depends on the host's processors, of which each sandbox may have one.
func TestHostileSandboxesAtOnceFailNoNeighbour(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	neighbour, _, err := h.client.Create(ctx, v1.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	n := length(20, 2000)
	commands := func() []time.Duration {
		took := make([]time.Duration, 0, n)
		for range n {
			began := time.Now()
			if err := h.says(ctx, neighbour.ID, "echo alive", "alive\n"); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took
	}
	commands() // what a first one makes
	quiet := commands()
	for name, command := range attackers {
		box, _, err := h.client.Create(ctx, v1.CreateSandbox{MemoryMB: new(128), DiskMB: new(128), Pids: new(64), CPUCores: new(0.1)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.client.StartProcess(ctx, box.ID, v1.StartProcess{Command: &command}); err != nil {
			t.Fatal(name, err)
		}
	}
	attacked := commands()
	half, most := n/2, n*99/100
	t.Logf("of %d commands: p50 %v, and %v beside %d hostile sandboxes (×%.1f); p99 %v, and %v (×%.1f)", n,
		quiet[half], attacked[half], len(attackers), float64(attacked[half])/float64(quiet[half]),
		quiet[most], attacked[most], float64(attacked[most])/float64(quiet[most]))
	// And they can be ended.
	if err := h.deleteAll(ctx); err != nil {
		t.Error(err)
	}
	if err := h.cycle(ctx); err != nil {
		t.Error(err)
	}
}
