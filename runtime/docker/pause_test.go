// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// flush has as many threads as a sandbox may have wait for its disk, nearly all of the time.
const flush = `exec python3 -u -c '
import os, threading
x = b"x" * 16000000
def write(n):
    f = os.open("s%d" % n, os.O_RDWR | os.O_CREAT)
    while True:
        os.pwrite(f, x, 0)
        os.fsync(f)
for n in range(24): threading.Thread(target=write, args=(n,)).start()
print("begun", flush=True)
'`

// A process that waits for a disk cannot be frozen. One that does all the time is, in an instant between.
func freezesWriters(t *testing.T, p *place) {
	ctx := t.Context()
	i, spec, _ := p.create()
	w, err := agent.NewClient(i.Dial).Start(ctx, agent.Command{ID: sandbox.NewProcessID(), Shell: flush})
	p.must(err)
	defer w.Close()
	if f, err := w.Next(ctx); err != nil || !strings.HasPrefix(string(f.Data), "begun") {
		t.Fatalf("got %q, %v", f.Data, err)
	}
	for range 6 { // without another try half of them fail on a host with version 1 of cgroups
		p.must(i.(runtime.Pauser).Pause(ctx))
		p.must(i.(runtime.Pauser).Resume(ctx))
	}
	p.must(p.driver.RemoveSnapshot(ctx, p.keep(spec.ID)))
	p.must(i.Remove(ctx))
}
