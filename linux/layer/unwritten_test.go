// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/fault"
)

func TestUnwrittenIsWhatWaitsForTheDisk(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	needLimits(t, s)
	l := mustCreate(t, s, "firstlayer", 0)
	mustCreate(t, s, "otherlayer", 0)
	if got := s.Unwritten("firstlayer"); got != 0 {
		t.Errorf("of an empty layer: %d", got)
	}
	const size = 4 << 20
	if err := os.WriteFile(at(l.Fd(), "upper/file"), bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.Unwritten("firstlayer"); got < size || got > 2*size {
		t.Errorf("of a layer with %d bytes that were just written: %d", size, got)
	}
	if got := s.Unwritten("otherlayer"); got != 0 {
		t.Errorf("of its neighbour: %d", got)
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Unwritten("firstlayer"); got != 0 {
		t.Errorf("after Sync: %d", got)
	}
	for _, id := range []string{"nosuchlayer", "../layers"} {
		if got := s.Unwritten(id); got != -1 {
			t.Errorf("of %s: %d", id, got)
		}
	}
}

// A flush of a layer does not wait for its neighbours, nor commit what they do.
func TestFlushWritesOneLayer(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	needLimits(t, s)
	const size = 4 << 20
	layers := map[string]*Layer{}
	for _, id := range []string{"firstlayer", "otherlayer"} {
		layers[id] = mustCreate(t, s, id, 0)
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		if err := os.WriteFile(at(l.Fd(), "upper/file"), bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commits, bytes := committed(t, s), written(t, s)
	for range 2 {
		if err := s.Flush(t.Context(), "firstlayer"); err != nil {
			t.Fatal(err)
		}
		if got := written(t, s) - bytes; got < size || got >= 2*size {
			t.Errorf("%d bytes were written, and the layer has %d", got, size)
		}
	}
	if got := s.Unwritten("otherlayer"); got < size {
		t.Errorf("of its neighbour, %d bytes are unwritten", got)
	}
	if after := committed(t, s); after != commits {
		t.Errorf("%d transactions were committed", after-commits)
	}
	if got, err := names(s.flush); err != nil || len(got) != 1 {
		t.Errorf("the directory for flushes holds %q, %v", got, err)
	}
	for id, want := range map[string]fault.Code{"nosuchlayer": fault.NotFound, "../layers": fault.Invalid} {
		if err := s.Flush(t.Context(), id); !fault.Is(err, want) {
			t.Errorf("of %s: %v", id, err)
		}
	}
}

// committed counts the transactions that the store's file system committed.
func committed(t *testing.T, s *Store) (n int) {
	t.Helper()
	text, err := os.ReadFile("/sys/fs/btrfs/" + s.fsid + "/commit_stats")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(text), "commits %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// written counts the bytes that were written to the store's device.
func written(t *testing.T, s *Store) int64 {
	t.Helper()
	text, err := os.ReadFile("/sys/block/" + filepath.Base(s.loop.device) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	sectors, err := strconv.ParseInt(strings.Fields(string(text))[6], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return sectors * 512
}

func TestFlushOfAPlainLayer(t *testing.T) {
	needRoot(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
	mustCreate(t, s, "firstlayer", 0)
	if err := s.Flush(t.Context(), "firstlayer"); err != nil {
		t.Error(err)
	}
}

func TestUnwrittenIsUnknownOfPlainLayers(t *testing.T) {
	needRoot(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
	mustCreate(t, s, "firstlayer", 0)
	if got := s.Unwritten("firstlayer"); got != -1 {
		t.Errorf("got %d", got)
	}
}
