// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"sandpit.dev/fault"
)

// MaxFollowers is how many follow one process at a time, a terminal's clients among them: what
// the process writes is read and sent once for each.
const MaxFollowers = 16

// listen counts a follower of a process, and refuses one too many unless it is the engine's
// own; unlisten takes it off.
func (b *box) listen(processID string, own bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heard[processID] >= MaxFollowers && !own {
		err := fault.New(fault.Exhausted, "%d clients follow the process %s already, which is the most", MaxFollowers, processID)
		err.Retry = time.Second
		return err.WithRemedy("end one of them, or follow it once and hand its output on")
	}
	if b.heard == nil {
		b.heard = make(map[string]int)
	}
	b.heard[processID]++
	return nil
}

func (b *box) unlisten(processID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heard[processID]--; b.heard[processID] == 0 {
		delete(b.heard, processID)
	}
}
