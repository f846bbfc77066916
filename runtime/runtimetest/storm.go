// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandpit.dev/runtime"
)

// stormWatches are as many watches as a sandbox may have.
const stormWatches = 32

// storms has one sandbox make and remove files without end, under as many watches as it
// may have, half of them read as fast as they go and half never. Each of the other's
// commands is answered with all that it changed, and a watch on it tells all of it.
func storms(t *testing.T, s *suite) {
	for _, f := range []runtime.Feature{runtime.TrackChanges, runtime.WatchFiles} {
		s.need(t, f)
	}
	loud, quiet := s.create(t, s.spec()), s.create(t, s.spec())
	loud.holds(t, fileStorm, "sandbox")
	var reading sync.WaitGroup
	defer reading.Wait()
	for n := range stormWatches {
		w := loud.watch(".", true)
		defer func() { _ = w.Close() }()
		if n%2 == 0 {
			reading.Go(func() {
				for {
					if _, err := w.Next(t.Context()); err != nil {
						return // it was closed
					}
				}
			})
		}
	}
	told := quiet.watch(".", true)
	var want []string
	for n := range 20 {
		name := fmt.Sprintf("file%d", n)
		w := quiet.window()
		quiet.ok("echo x > " + name)
		if got := quiet.changed(w); !slices.Equal(got, []string{"created " + name}) {
			t.Errorf("while another sandbox changes files, a command that made %s changed %q", name, got)
		}
		want = append(want, "created "+name)
	}
	lines := told.until(want[len(want)-1])
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("a watch does not tell %q while another sandbox changes files", line)
		}
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "dropped") {
			t.Errorf("a watch lost events to another sandbox: %q", line)
		}
	}
}

// fileStorm makes and removes files until its sandbox ends.
const fileStorm = `
os.mkdir('/workspace/storm'); os.chdir('/workspace/storm')
if os.fork() == 0:
    while True:
        for n in range(200): os.close(os.open('f%d' % n, os.O_CREAT | os.O_WRONLY))
        for n in range(200): os.unlink('f%d' % n)
`
