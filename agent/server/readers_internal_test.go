// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/agent/wire"
)

// The time is synctest's: it passes when all wait.
func TestAProgramWaitsForALostReaderAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{
			srv: &Server{ctx: t.Context()}, ended: make(chan struct{}),
			log:     &logFile{size: 8 << 20, keep: 64 << 20, room: 64 << 20},
			readers: &readers{left: time.Now()},
		}
		r := p.beginReader(0, true)
		if p.mayRead() != 0 {
			t.Error("it reads on, and its reader has nothing of 8 MiB")
		}
		p.mu.Lock()
		p.gotOnLocked(r, 8<<20)
		p.mu.Unlock()
		if p.mayRead() != readTurn {
			t.Error("it does not read on, and its reader has all")
		}
		p.endReader(r)
		p.log.size += 8 << 20
		began := time.Now()
		p.awaitReaders(new(stream))
		if took := time.Since(began); took != wire.LostPatience {
			t.Errorf("it waited %v for a reader that does not come back", took)
		}
		r = p.beginReader(8<<20, true)
		go func() {
			time.Sleep(time.Hour)
			p.endReader(r)
		}()
		began = time.Now()
		p.awaitReaders(new(stream))
		if took := time.Since(began); took != time.Hour+wire.LostPatience {
			t.Errorf("it waited %v for a reader that takes nothing for an hour, and then goes", took)
		}
	})
}

func TestTheInputOfAProcessEndsAWhileAfterItsLastReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		p := &process{
			srv: &Server{ctx: t.Context()}, ended: make(chan struct{}),
			log: &logFile{keep: 64 << 20, room: 64 << 20}, readers: &readers{left: time.Now()},
		}
		p.streamStdin(w)
		open := func() bool {
			p.stdinMu.Lock()
			defer p.stdinMu.Unlock()
			return p.stdin != nil
		}
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		follow := func(n int) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.holders += n
		}
		p.endReader(p.beginReader(0, true))
		back := p.beginReader(0, true)
		if pass(2 * wire.LostPatience); !open() {
			t.Error("it ended, and a reader is there")
		}
		p.endReader(back)
		if _, err := p.writeStdin(t.Context(), []byte("more")); err != nil {
			t.Fatal(err)
		}
		if pass(wire.LostPatience + time.Second); !open() {
			t.Error("it ended, and somebody sent more")
		}
		follow(1)
		if pass(2 * wire.LostPatience); !open() {
			t.Error("it ended, and somebody follows")
		}
		follow(-1)
		if pass(2 * wire.LostPatience); open() {
			t.Error("it did not end")
		}
	})
}
