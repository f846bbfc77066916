// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
)

// processes: what runs inside, as the host tells of it.
func processes(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	m, ok := b.Instance.(runtime.ProcessMeter)
	if !ok {
		return // the driver says so where it is asked
	}
	read := func() map[string]runtime.Process {
		t.Helper()
		all, err := m.Processes(t.Context())
		if err != nil {
			t.Fatalf("Processes: %v", err)
		}
		by := make(map[string]runtime.Process)
		for _, p := range all {
			by[p.Name] = p
		}
		return by
	}
	until := func(what string, ok func(map[string]runtime.Process) bool) map[string]runtime.Process {
		t.Helper()
		for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			by := read()
			if ok(by) {
				return by
			}
			if time.Since(began) > time.Minute {
				t.Fatalf("%s: got %+v", what, by)
			}
		}
	}
	// A name may be made to look like what follows it.
	const odd = "x) R 1 1 (y"
	s.create(t, s.spec()).ok("cp $(command -v sleep) neighbour; ./neighbour 60 >/dev/null 2>&1 &")
	b.ok(`cp $(command -v sleep) "` + odd + `"; n="$(printf 'e\033[2J\nn')"; cp $(command -v sleep) "$n"; ./"` + odd + `" 60 >/dev/null 2>&1 & echo $! > pid; ./"$n" 60 >/dev/null 2>&1 &`)
	b.begin(agent.Command{Shell: burn}, "begun\n")
	by := until("what runs", func(by map[string]runtime.Process) bool {
		return by[odd].PID > 0 && by["e\x1b[2J\nn"].PID > 0 && by["python3"].CPU > 100*time.Millisecond
	})
	p := by[odd]
	if pid, _ := strconv.Atoi(strings.TrimSpace(b.ok("cat pid"))); p.PID != pid || p.State != "sleeping" || p.Threads != 1 || p.MemoryBytes <= 0 || p.Age < 0 || p.Age > time.Hour {
		t.Errorf("got %+v, want the process %d", p, pid)
	}
	if p := by["python3"]; p.MemoryBytes < 1<<20 || p.CPU > p.Age+time.Second {
		t.Errorf("got %+v", p)
	}
	for name := range by {
		if name == "neighbour" || strings.Contains(name, ".test") || strings.Contains(name, "sandpit") {
			t.Errorf("the list has %q, which is not the sandbox's", name)
		}
	}
	b.ok("kill $(cat pid)")
	until("after its end", func(by map[string]runtime.Process) bool { return by[odd].PID == 0 })
	if s.has(t, runtime.Pause) {
		b.pause()
		if by := read(); by["python3"].PID == 0 {
			t.Errorf("of one that is frozen: got %+v", by)
		}
		b.resume()
	}
	if err := b.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Processes(t.Context()); fault.Of(err) != fault.State {
		t.Errorf("of one that is down: %v", err)
	}
}
