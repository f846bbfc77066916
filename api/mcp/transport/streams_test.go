// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestStreams holds what is kept of streams, and that its memory is bounded.
func TestStreams(t *testing.T) {
	kept := func() *streams { return newStreams(newSessions(func(string) bool { return false }, func(string) {})) }
	after := func(st *streams, session, id string, n int) (got []string, err error) {
		for data, err := range st.After(t.Context(), session, id, n) {
			if err != nil {
				return got, err
			}
			got = append(got, string(data))
		}
		return got, nil
	}
	add := func(t *testing.T, st *streams, session, id string, data []byte) {
		t.Helper()
		if err := st.Append(t.Context(), session, id, data); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("GivesWhatCameAfter", func(t *testing.T) {
		st := kept()
		_ = st.Open(t.Context(), "s", "a")
		for i := range 5 {
			add(t, st, "s", "a", fmt.Append(nil, i))
		}
		for n, want := range map[int]string{-1: "[0 1 2 3 4]", 0: "[1 2 3 4]", 3: "[4]", 4: "[]", 99: "[]"} {
			if got, err := after(st, "s", "a", n); err != nil || fmt.Sprint(got) != want {
				t.Errorf("after %d: %v, %v; want %s", n, got, err, want)
			}
		}
		for _, other := range [][2]string{{"s", "b"}, {"other", "a"}} {
			if got, err := after(st, other[0], other[1], 0); !errors.Is(err, mcp.ErrEventsPurged) {
				t.Errorf("%v: %v, %v", other, got, err)
			}
		}
	})

	t.Run("NeverGivesAStreamWithAHole", func(t *testing.T) {
		st := kept()
		st.ofSession = 10_000
		_ = st.Open(t.Context(), "s", "a")
		for i := range 100 {
			add(t, st, "s", "a", append(bytes.Repeat([]byte("x"), 1000), fmt.Append(nil, i)...))
		}
		if st.bytes > st.ofSession || st.bytes < st.ofSession/2 {
			t.Errorf("%d bytes are kept, the bound is %d", st.bytes, st.ofSession)
		}
		if _, err := after(st, "s", "a", 0); !errors.Is(err, mcp.ErrEventsPurged) {
			t.Errorf("what has gone: %v", err)
		}
		if got, err := after(st, "s", "a", 97); err != nil || len(got) != 2 || got[1][1000:] != "99" {
			t.Errorf("what is there: %d events, %v", len(got), err)
		}
		// A stream that went as a whole has lost its numbers.
		add(t, st, "s", "b", make([]byte, 9_000))
		add(t, st, "s", "a", []byte("late"))
		if got, err := after(st, "s", "a", 99); !errors.Is(err, mcp.ErrEventsPurged) {
			t.Errorf("after it went: %v, %v", got, err)
		}
	})

	t.Run("TakesFromTheOldestOfAllSessions", func(t *testing.T) {
		st := kept()
		st.inAll = 100_000
		for i := range 1000 {
			session := fmt.Sprint("s", i)
			_ = st.Open(t.Context(), session, "")
			_ = st.Open(t.Context(), session, "a")
			add(t, st, session, "a", make([]byte, 1000))
			if st.bytes > st.inAll {
				t.Fatalf("%d bytes after %d sessions", st.bytes, i)
			}
		}
		if _, err := after(st, "s0", "a", -1); err == nil {
			t.Error("the oldest is there still")
		}
		if got, err := after(st, "s999", "a", -1); err != nil || len(got) != 1 {
			t.Errorf("the newest: %d, %v", len(got), err)
		}
	})

	t.Run("ForgetsASessionThatEnds", func(t *testing.T) {
		st := kept()
		for _, session := range []string{"s", "other"} {
			_ = st.Open(t.Context(), session, "")
			_ = st.Open(t.Context(), session, "a")
			add(t, st, session, "a", make([]byte, 1000))
		}
		for _, session := range []string{"s", "s", "other"} {
			_ = st.SessionClosed(t.Context(), session)
		}
		if st.bytes != 0 || len(st.kept) != 0 || len(st.size) != 0 || st.old.Len() != 0 {
			t.Errorf("%d bytes, %d sessions, %d sizes, %d streams are left", st.bytes, len(st.kept), len(st.size), st.old.Len())
		}
	})

	t.Run("KeepsOneAnswerThatIsLargerThanTheBound", func(t *testing.T) {
		st := kept()
		st.ofSession = 1000
		_ = st.Open(t.Context(), "s", "a")
		add(t, st, "s", "a", nil)
		add(t, st, "s", "a", make([]byte, 5000))
		if got, err := after(st, "s", "a", 0); err != nil || len(got) != 1 || len(got[0]) != 5000 {
			t.Errorf("got %d events, %v", len(got), err)
		}
	})
}
