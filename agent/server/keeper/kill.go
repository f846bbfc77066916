// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/fork"
	"sandpit.dev/agent/server/tree"
)

// Between two looks at a list on which nobody has come, those that were killed get time to die.
const (
	pauseLeast = 50 * time.Microsecond
	pauseMost  = 10 * time.Millisecond
)

// The dead that a stopped keeper does not reap take numbers from everybody, the agent's own threads among them. So it
// reaps them when they are more than firstPile, and that is doubled only after pileTurns of it were not enough.
const (
	firstPile = 1024
	pileTurns = 64
	// reapPatience is how often it is looked whether it has, pauseLeast apart.
	reapPatience = 1000
)

// Kill begins to end all that is below the keeper. Empty waits until that is done.
func (g *group) Kill() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.k == nil || g.sweeping || g.isOver() {
		return nil
	}
	g.sweeping = true
	k := g.k
	g.work.Go(func() {
		g.sweep(k)
		g.mu.Lock()
		g.sweeping = false
		g.mu.Unlock()
	})
	return nil
}

// sweep is the killing: see the package's doc.
func (g *group) sweep(k *fork.Keeper) {
	tell := func(sig unix.Signal) { _ = unix.PidfdSendSignal(k.PIDFD, sig, nil, 0) }
	tell(unix.SIGSTOP)
	defer tell(unix.SIGCONT)
	pile, turns := firstPile, 0
	const told, dead = 1, 2
	seen := make(map[int]int)
	for _, pid := range tree.Below(k.PID, true) { // deep trees at once; the list is what counts
		if pid != k.PID {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	for pause := time.Duration(0); !g.isOver(); {
		list := tree.Children(k.PID)
		if len(list) > pile {
			if turns++; turns%pileTurns == 0 {
				pile *= 2
			}
			tell(unix.SIGCONT)
			for range reapPatience { // it reaps at its next turn on a processor
				time.Sleep(pauseLeast)
				if len(tree.Children(k.PID)) <= pile/2 {
					break
				}
			}
			tell(unix.SIGSTOP)
			clear(seen) // their numbers may be others' by now
			list = tree.Children(k.PID)
		}
		lives, fresh := false, false
		for _, pid := range list {
			if seen[pid] == dead {
				continue
			}
			// It is signalled before it is looked at: who forks and exits is fast.
			_ = unix.Kill(pid, unix.SIGKILL)
			fresh = fresh || seen[pid] == 0
			if seen[pid] = told; !tree.Lives(pid) {
				seen[pid] = dead
				continue
			}
			lives = true
		}
		if !lives && len(tree.Children(k.PID)) == len(list) {
			return
		}
		if fresh {
			pause = 0
			continue
		}
		time.Sleep(pause)
		pause = min(2*pause+pauseLeast, pauseMost)
	}
}
