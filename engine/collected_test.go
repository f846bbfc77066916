// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/sandbox"
)

// zeros writes so many NUL bytes to each stream.
const zeros = "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2"

func TestCollectedOutputCountsUntilItsRoomIsClosed(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{})
	b := budget.New(budget.Options{Total: 1 << 30})
	room := b.Open("p")
	res, err := h.engine.Exec(t.Context(), alice, string(s.ID), engine.ExecRequest{Shell: zeros, Room: room}, nil)
	if err != nil || !bytes.Equal(res.Stdout, make([]byte, 1e6)) || !bytes.Equal(res.Stderr, make([]byte, 1e6)) || res.StdoutTruncated {
		t.Fatalf("got %d and %d bytes, truncated %v, %v", len(res.Stdout), len(res.Stderr), res.StdoutTruncated, err)
	}
	if most, used := int64(2*engine.DefaultOutput), b.Used(); used < most-1<<16 || used > 2*most {
		t.Errorf("%d bytes are counted, for streams of %d", used, most)
	}
	room.Close()
	small := b.Open("p")
	defer small.Close()
	if _, err := h.engine.Exec(t.Context(), alice, string(s.ID), engine.ExecRequest{Shell: "echo hello", Room: small}, nil); err != nil || b.Used() != 0 {
		t.Errorf("a small output: %d bytes are counted, %v", b.Used(), err)
	}
}

func TestOutputBeyondTheBudgetIsCutOffAndStaysInTheLog(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{})
	const total = 1 << 20
	for name, c := range map[string]struct {
		taken int64 // by another answer of the project's
		least int   // bytes of each stream that are answered nevertheless
	}{
		"OfAnAnswer":   {0, 64 << 10},
		"OfTheProject": {total / 8 * 4, 32 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget.New(budget.Options{Total: total, Wait: time.Millisecond})
			for left := c.taken; left > 0; left -= total / 8 {
				other := b.Open("p")
				defer other.Close()
				if _, err := other.Take(t.Context(), total/8); err != nil {
					t.Fatal(err)
				}
			}
			room := b.Open("p")
			defer room.Close()
			res, err := h.engine.Exec(t.Context(), alice, string(s.ID), engine.ExecRequest{Shell: zeros, Room: room}, nil)
			if err != nil || res.ExitCode != 0 {
				t.Fatalf("got %+v, %v", res.Result, err)
			}
			for stream, got := range map[string]struct {
				data  []byte
				cut   bool
				bytes int64
			}{"stdout": {res.Stdout, res.StdoutTruncated, res.StdoutBytes}, "stderr": {res.Stderr, res.StderrTruncated, res.StderrBytes}} {
				if len(got.data) < c.least || len(got.data) >= total/8 || !got.cut || got.bytes != 1e6 {
					t.Errorf("%s: got %d bytes, truncated %v, of %d", stream, len(got.data), got.cut, got.bytes)
				}
			}
			var logged int
			g, err := h.engine.Follow(t.Context(), alice, string(s.ID), res.ProcessID, engine.FollowRequest{})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			if _, err := g.Run(t.Context(), engine.FollowSink{Frame: func(f sandbox.Frame) error { logged += len(f.Data); return nil }}); err != nil || logged != 2e6 {
				t.Errorf("the log has %d bytes, %v", logged, err)
			}
		})
	}
}

func TestACallerWhoWaitsForRoomCanLeave(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{})
	b := budget.New(budget.Options{Total: 1 << 20, Wait: time.Hour})
	for range 4 {
		other := b.Open("p")
		defer other.Close()
		if _, err := other.Take(t.Context(), 1<<17); err != nil {
			t.Fatal(err)
		}
	}
	room := b.Open("p")
	defer room.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := h.engine.Exec(ctx, alice, string(s.ID), engine.ExecRequest{Shell: zeros, Room: room}, nil)
		done <- err
	}()
	for deadline := time.Now().Add(time.Minute); b.Waiting() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the command does not wait for room")
		}
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !fault.Is(err, fault.Canceled) || b.Waiting() != 0 {
		t.Errorf("got %v, and %d wait", err, b.Waiting())
	}
}
