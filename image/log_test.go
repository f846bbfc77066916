// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
)

func TestTheLogOfABuildIsFollowedUntilItEnds(t *testing.T) {
	skiptest.WithoutRoot(t, "files of an image have owners")
	go1, go2 := make(chan struct{}), make(chan struct{})
	broken := errors.New("it broke")
	small := recipe{Entry: Entry{Name: "small"}, Stages: []stage{{Name: "files", Weight: 1, Run: func(_ context.Context, w *work) error {
		fmt.Fprintln(w.lines, "first")
		<-go1
		fmt.Fprint(w.lines, "second \x1b[2J\n")
		<-go2
		return broken
	}}}}
	s, err := open(Options{Dir: t.TempDir()}, []recipe{small})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var none bytes.Buffer
	if err := s.Log(t.Context(), "small", &none, true, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("before a build: %v", err)
	}
	if err := s.Log(t.Context(), "../small", &none, true, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("no image: %v", err)
	}
	built := make(chan error)
	go func() {
		_, err := s.Ensure(t.Context(), "small")
		built <- err
	}()
	from, to := io.Pipe()
	followed := make(chan error, 1)
	go func() {
		for { // until the build has begun
			err := s.Log(t.Context(), "small", to, true, nil)
			if !fault.Is(err, fault.NotFound) {
				followed <- err
				_ = to.Close()
				return
			}
		}
	}()
	buf := make([]byte, 1<<10)
	var got []byte
	until := func(what string) {
		t.Helper()
		for !bytes.HasSuffix(got, []byte(what)) {
			n, err := from.Read(buf)
			if err != nil {
				t.Fatalf("%v after %q", err, got)
			}
			got = append(got, buf[:n]...)
		}
	}
	until("== files\nfirst\n")
	close(go1)
	until("second \x1b[2J\n")
	close(go2)
	if err := <-built; !errors.Is(err, broken) {
		t.Errorf("the build: %v", err)
	}
	if rest, err := io.ReadAll(from); err != nil || len(rest) > 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
	if err := <-followed; err != nil {
		t.Error("Log:", err)
	}
	var kept bytes.Buffer
	if err := s.Log(t.Context(), "small", &kept, false, nil); err != nil || !bytes.Equal(kept.Bytes(), got) {
		t.Errorf("what is kept: %q, %v", kept.Bytes(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Log(ctx, "small", &kept, true, nil); err != nil {
		t.Errorf("a log that is complete, for who leaves: %v", err)
	}
}
