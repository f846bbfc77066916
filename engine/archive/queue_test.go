// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"io"
	"testing"

	"sandpit.dev/fault"
)

// stalled is a client that sends nothing more.
type stalled struct{ asked, over chan struct{} }

func newStalled() *stalled { return &stalled{make(chan struct{}), make(chan struct{})} }

func (s *stalled) Read([]byte) (int, error) {
	close(s.asked)
	<-s.over
	return 0, io.ErrUnexpectedEOF
}

func beginImport(t *testing.T, i *Queue, project string) *Turn {
	t.Helper()
	turn, err := i.Begin(project)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// Archives whose clients send nothing take no other one's turn: neither another project's nor
// their own's.
func TestImportsThatWaitForClientsHoldNoTurn(t *testing.T) {
	i := NewQueue()
	for range MaxImports - 1 {
		turn, client := beginImport(t, i, "alice"), newStalled()
		r := turn.Reader(t.Context(), io.MultiReader(bytes.NewReader([]byte("begin")), client))
		if _, err := io.ReadFull(r, make([]byte, 5)); err != nil { // it has its turn and works
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = r.Read(make([]byte, 1))
			turn.End()
		}()
		<-client.asked
		t.Cleanup(func() { close(client.over); <-over })
	}
	for _, project := range []string{"bob", "alice"} {
		turn := beginImport(t, i, project)
		if got, err := io.ReadAll(turn.Reader(t.Context(), bytes.NewReader(make([]byte, 1<<20)))); err != nil || len(got) != 1<<20 {
			t.Errorf("an import of %s: %d bytes, %v", project, len(got), err)
		}
		turn.End()
	}
}

func TestAProjectUnpacksOneArchiveAtATime(t *testing.T) {
	i := NewQueue()
	for len(i.turns) < cap(i.turns)-1 {
		i.turns <- struct{}{} // of other projects
	}
	first, second, other := beginImport(t, i, "alice"), beginImport(t, i, "alice"), beginImport(t, i, "bob")
	if err := first.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.take(gone); err != context.Canceled {
		t.Fatalf("the second of one project: %v, want that it waits", err)
	}
	if err := other.take(gone); err != context.Canceled {
		t.Fatalf("one more than the server unpacks: %v, want that it waits", err)
	}
	done := make(chan error, 2)
	go func() { done <- other.take(t.Context()) }()
	first.End()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	go func() { done <- second.take(t.Context()) }()
	other.End()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	second.End()
	if len(i.of) != 0 || len(i.turns) != cap(i.turns)-1 {
		t.Errorf("left: %d projects, %d turns", len(i.of), len(i.turns)-cap(i.turns)+1)
	}
}

func TestImportsOfAProjectHaveABound(t *testing.T) {
	i := NewQueue()
	for range MaxImports {
		defer beginImport(t, i, "alice").End()
	}
	_, err := i.Begin("alice")
	if !fault.Is(err, fault.Exhausted) || fault.As(err).Retry == 0 || fault.As(err).Remedy == "" {
		t.Errorf("one more = %v, want that it is refused, with a time", err)
	}
	beginImport(t, i, "bob").End()
}
