// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// pair returns both ends of a connection over a socket.
func pair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if ours, err = net.Dial("unix", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}

// closed reports whether the other end of a connection is gone.
func closed(t *testing.T, theirs net.Conn) bool {
	t.Helper()
	_ = theirs.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := theirs.Read(make([]byte, 1))
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return errors.Is(err, io.EOF)
}

func TestALineKeepsOneConnection(t *testing.T) {
	var n native.Line
	if n.Take() != nil || !n.Lacks() {
		t.Fatal("an empty line has a connection")
	}
	first, _ := pair(t)
	n.Keep(first)
	second, other := pair(t)
	if n.Keep(second); n.Lacks() || !closed(t, other) {
		t.Error("the second connection is not closed")
	}
	if got := n.Take(); got != first {
		t.Errorf("got %v, want the first", got)
	}
	if n.Take() != nil {
		t.Error("it was given twice")
	}
	n.Close()
	third, other := pair(t)
	if n.Keep(third); n.Take() != nil || n.Lacks() || !closed(t, other) {
		t.Error("a line that is over keeps a connection")
	}
}

// What an agent did meanwhile is not what the next call is to read.
func TestALineGivesNothingThatWasTouched(t *testing.T) {
	for name, touch := range map[string]func(net.Conn) error{
		"closed": net.Conn.Close,
		"data":   func(c net.Conn) error { _, err := c.Write([]byte("x")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			var n native.Line
			ours, theirs := pair(t)
			n.Keep(ours)
			if err := touch(theirs); err != nil {
				t.Fatal(err)
			}
			if got := n.Take(); got != nil {
				t.Error("it is given")
			}
			if _, err := ours.Write(nil); !errors.Is(err, net.ErrClosed) {
				t.Errorf("ours is not closed: %v", err)
			}
		})
	}
}

func TestALineLetsGoOfWhatNobodyTakes(t *testing.T) {
	var n native.Line
	ours, theirs := pair(t)
	n.Keep(ours)
	if closed(t, theirs) {
		t.Fatal("it is closed at once")
	}
	for limit := time.Now().Add(10 * native.LineFor); !closed(t, theirs); {
		if time.Now().After(limit) {
			t.Fatal("it is not closed")
		}
	}
	if !n.Lacks() {
		t.Error("it is still there")
	}
}

// A connection that waits is the next call's, is none of a life that is over, and is not
// made where nobody would answer.
func TestAnExpectedCall(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	dir := trueDir(t)
	d := open(t, dir, "")
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
	}()
	made, err := d.Create(t.Context(), specOf(sandbox.NewID(), root))
	if err != nil {
		t.Fatal(err)
	}
	i := made.(*native.Instance)
	waits := func(want bool) {
		t.Helper()
		if got := i.CallWaits(); got != want {
			t.Errorf("a connection waits: %v, want %v", got, want)
		}
	}
	works := func() {
		t.Helper()
		if _, err := agent.NewClient(i.Dial).Ping(t.Context()); err != nil {
			t.Error(err)
		}
	}
	waits(true) // its create has made one
	works()
	waits(false)
	works()
	for range 2 {
		i.Expect()
		waits(true)
	}
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	i.Expect()
	waits(false)
	if _, err := i.Dial(t.Context()); err == nil {
		t.Error("an instance that is down is called")
	}
	if err := i.Start(t.Context(), specOf(i.Handle().ID, root)); err != nil {
		t.Fatal(err)
	}
	works()
	works()
	if err := i.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	i.Expect()
	waits(false)
	if err := i.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	i.Expect()
	works()
	if err := i.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}
