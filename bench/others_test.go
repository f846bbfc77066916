// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

// What another process spends is seen, and nothing that the benchmark's own did, whoever waits for them.
func TestOthersAreWhoWasNotStarted(t *testing.T) {
	look := func() spenders {
		t.Helper()
		s, err := lookAround()
		if errors.Is(err, errUnseen) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	other := exec.Command("sh", "-c", "while :; do :; done")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	before := look()
	for id, s := range before {
		switch id.pid {
		case os.Getpid():
			t.Error("the benchmark itself is among the others")
		case os.Getppid(), 1:
			if s.reaps {
				t.Errorf("what process %d waits for counts, and may be the benchmark's", id.pid)
			}
		}
	}
	for began := time.Now(); look().since(before) < 500*time.Millisecond; <-time.After(50 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("another process keeps a processor busy, and %v are seen of it after a minute", look().since(before))
		}
	}
}

func TestSpentSince(t *testing.T) {
	a, b, c, d := process{10, "1"}, process{11, "2"}, process{12, "3"}, process{11, "9"}
	s := time.Second
	before := spenders{
		a: {time: 5 * s, reaps: true}, b: {parent: a, time: 3 * s, reaps: true}, c: {parent: process{1, "0"}, time: 7 * s, reaps: true},
	}
	for name, test := range map[string]struct {
		after spenders
		want  time.Duration
	}{
		"nothing happens":             {before, 0},
		"one works":                   {spenders{a: {time: 9 * s, reaps: true}, b: before[b], c: before[c]}, 4 * s},
		"one is new":                  {spenders{a: before[a], b: before[b], c: before[c], d: {time: 2 * s}}, 2 * s},
		"one ends, its parent waits":  {spenders{a: {time: 9 * s, reaps: true}, c: before[c]}, 1 * s},
		"one ends, nobody tells":      {spenders{a: before[a], b: before[b]}, 0},
		"another has its number":      {spenders{a: {time: 8 * s, reaps: true}, d: {parent: a, time: s}, c: before[c]}, s},
		"its parent waits for nobody": {spenders{a: {time: 6 * s}, c: before[c]}, 1 * s},
	} {
		if got := test.after.since(before); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
