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
	_ = unix.PidfdSendSignal(k.PIDFD, unix.SIGSTOP, nil, 0)
	defer func() { _ = unix.PidfdSendSignal(k.PIDFD, unix.SIGCONT, nil, 0) }()
	const told, dead = 1, 2
	seen := make(map[int]int)
	for _, pid := range tree.Below(k.PID, true) { // deep trees at once; the list is what counts
		if pid != k.PID {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	for pause := time.Duration(0); !g.isOver(); {
		list := tree.Children(k.PID)
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
