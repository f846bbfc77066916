// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
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
