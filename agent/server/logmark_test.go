// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
)

func TestAPlaceInALogIsFoundByItsMarks(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	s := New(Options{User: view.Plain(view.Identity{Name: "sandbox"}), Log: dir})
	l, err := s.newLog("abc", 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	l.makeFile()
	defer l.close()
	where := []int64{0} // by number
	for range 20_000 {
		where = append(where, l.end())
		b := make([]byte, wire.LogHeaderLen+1+rand.IntN(400))
		if l.output(b, wire.LogStdout+wire.Type(rand.IntN(2)), time.Now()) == 0 {
			t.Fatal(l.err)
		}
	}
	if n := int64(len(l.marks)); n < l.size/markEvery/2 || n > l.size/markEvery+1 {
		t.Errorf("%d marks for %d bytes", n, l.size)
	}
	for range 500 {
		after := 1 + rand.Int64N(l.seq)
		near := l.near(after)
		if near > where[after] || where[after]-near > 2*markEvery {
			t.Fatalf("after %d: the mark is at %d, the frame at %d", after, near, where[after])
		}
		off, err := seek(l.fd, near, l.size, after)
		want := l.size
		if after < l.seq {
			want = where[after+1]
		}
		if err != nil || off != want {
			t.Fatalf("after %d: got %d, %v, want %d", after, off, err, want)
		}
	}
}

func TestMarksAreBounded(t *testing.T) {
	l := new(logFile)
	for l.seq = 1; l.seq < 5*maxMarks; l.seq++ {
		l.mark(l.seq * markEvery)
		if len(l.marks) > maxMarks {
			t.Fatalf("%d marks", len(l.marks))
		}
		if after := 1 + rand.Int64N(l.seq); l.near(after) > after*markEvery {
			t.Fatalf("the mark for %d is behind it", after)
		}
	}
}
