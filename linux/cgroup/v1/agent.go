// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sandpit.dev/linux/cgroup/cgroupfs"
	"sandpit.dev/linux/cgroup/counter"
)

// agentPrefix begins the names of the groups of agents; a number follows. They are beside
// those of the commands, which thereby see no more of the host's paths than the way to that. A
// number and not an id, since the process 1 of a rollback begins before the last one's groups are
// free. An agent that a server of an earlier version started is in _agents, with all others.
const agentPrefix = own + "agent"

// Agent is what limits one process 1: a numbered group in each hierarchy.
type Agent struct {
	tree   *Tree
	number int        // -1: of an earlier version's server, without groups of its own
	files  []*os.File // tasks files, until CloseFiles
}

// agents are the groups of agents by number.
type agents struct {
	limits Limits // of each

	mu    sync.Mutex
	taken map[int]bool
	// left are the numbers that an earlier server used, until FindAgent finds whose they
	// are or nothing runs in them.
	left []int
}

// Agent makes the groups for a process 1, all or nothing.
func (t *Tree) Agent() (*Agent, error) {
	t.removeLeftAgents()
	a := &Agent{tree: t, number: t.agents.reserve()}
	err := t.Make(a.path(), t.agents.limits)
	if err == nil {
		a.files, err = t.JoinFiles(a.path())
	}
	if err != nil {
		_ = t.dropAgent(a.number)
		t.agents.release(a.number)
		return nil, err
	}
	return a, nil
}

// reserve returns the lowest number that is not in use, which is its caller's.
func (s *agents) reserve() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for s.taken[n] {
		n++
	}
	s.taken[n] = true
	return n
}

func (s *agents) release(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, n)
}

func (a *Agent) path() string { return agentName(a.number) }

func agentName(n int) string { return agentPrefix + strconv.Itoa(n) }

// agentNumber returns the number in the name of a group; -1: it is no agent's.
func agentNumber(name string) int {
	text, ours := strings.CutPrefix(name, agentPrefix)
	if n, err := strconv.Atoi(text); ours && err == nil && n >= 0 {
		return n
	}
	return -1
}

// Files returns the tasks files of the groups, open for writing. See [Tree.JoinFiles].
func (a *Agent) Files() []*os.File { return a.files }

// CloseFiles closes them. Twice is fine.
func (a *Agent) CloseFiles() {
	for _, f := range a.files {
		_ = f.Close()
	}
	a.files = nil
}

// FindAgent returns the groups of a running process 1, which another server started. Where /proc
// does not tell, they are as those of an earlier version: not known.
func (t *Tree) FindAgent(pid int) *Agent {
	a := &Agent{tree: t, number: -1}
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	for line := range strings.Lines(string(text)) {
		_, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "/"+cgroupfs.Top+"/"+t.namespace+"/")
		a.number = max(a.number, agentNumber(name))
	}
	if a.number >= 0 {
		s := &t.agents
		s.mu.Lock()
		s.taken[a.number] = true
		s.left = slices.DeleteFunc(s.left, func(n int) bool { return n == a.number })
		s.mu.Unlock()
	}
	return a
}

// OOMKills returns how many processes the kernel has ended for the limit of memory; zero where
// that is not known.
func (a *Agent) OOMKills() (uint64, error) {
	if a.number < 0 || !a.tree.Holds(Memory) {
		return 0, nil
	}
	f, err := a.tree.OOMFile(a.path())
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return counter.OOMKills(f)
}

// Remove removes the groups, once no process is in them, for which it waits until ctx is done.
// Twice is fine. After an error it is tried again later.
func (a *Agent) Remove(ctx context.Context) error {
	a.CloseFiles()
	if a.number < 0 {
		return nil
	}
	n := a.number
	a.number = -1
	if err := a.tree.Remove(ctx, agentName(n)); err != nil {
		s := &a.tree.agents
		s.mu.Lock()
		s.left = append(s.left, n)
		s.mu.Unlock()
		return err
	}
	a.tree.agents.release(n)
	return nil
}

// removeLeftAgents removes the groups that an earlier server used and in which nothing runs.
func (t *Tree) removeLeftAgents() {
	s := &t.agents
	s.mu.Lock() // while they are removed, too: a number that is free may be another agent's at once
	defer s.mu.Unlock()
	s.left = slices.DeleteFunc(s.left, func(n int) bool {
		if !t.dropAgent(n) {
			return false
		}
		delete(s.taken, n)
		return true
	})
}

// dropAgent removes the groups of a number, and reports whether none is left: one that has
// processes stays.
func (t *Tree) dropAgent(n int) bool {
	gone := true
	for _, h := range t.hierarchies {
		if err := t.kernel.Rmdir(h.dir, agentName(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			gone = false
		}
	}
	return gone
}

// noteAgents has the numbers that are in use in a hierarchy not be given again. Where another driver
// has the namespace open, they may be its own.
func (t *Tree) noteAgents(h *hierarchy, shared bool) {
	s := &t.agents
	s.mu.Lock()
	defer s.mu.Unlock()
	names, _ := cgroupfs.Children(h.dir, ".")
	for _, name := range names {
		n := agentNumber(name)
		if n < 0 || s.taken[n] {
			continue
		}
		s.taken[n] = true
		if !shared {
			s.left = append(s.left, n)
		}
	}
}

// removeAgents removes the groups of agents of a hierarchy, an earlier version's too, but for
// those in which one lives. The kernel counts a task in its group for a moment after it is
// gone from everywhere else.
func (t *Tree) removeAgents(h *hierarchy) error {
	const patience, pause = time.Second, 2 * time.Millisecond
	for deadline := time.Now().Add(patience); ; {
		names, err := cgroupfs.Children(h.dir, ".")
		if err != nil {
			return err
		}
		ending := false
		for _, name := range names {
			if !strings.HasPrefix(name, own) || t.kernel.Rmdir(h.dir, name) == nil {
				continue
			}
			tasks, err := cgroupfs.Read(h.dir, name+"/tasks")
			ending = ending || err == nil && !slices.ContainsFunc(strings.Fields(tasks), alive)
		}
		if !ending || time.Now().After(deadline) {
			return nil
		}
		<-time.After(pause) // v1 tells of no group that becomes empty
	}
}

func alive(task string) bool {
	_, err := os.Stat("/proc/" + task)
	return err == nil
}
