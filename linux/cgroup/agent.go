// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/counter"
)

// agentPrefix begins the names of the v1 groups of agents; a number follows. They are beside
// those of the commands, which thereby see no more of the host's paths than the way to that.
// An agent that a server of an earlier version started is in _agents, with all others.
const agentPrefix = "_agent"

// Agent is what limits one process 1 ([Options].Agents): a numbered group in each v1
// hierarchy, and ID/agent where v2 has limits. It is apart from [Group], since the process 1
// of a rollback begins before the last one's groups are free.
type Agent struct {
	driver *Driver
	id     string
	number int        // -1: of an earlier version's server, without groups of its own
	files  []*os.File // tasks files, until CloseFiles
	killed uint64     // by the kernel in the same groups, before this one
}

// agentGroups are the v1 groups of agents by number. Some are made before there is an agent:
// a group with its limits takes 0.15 ms.
type agentGroups struct {
	mu    sync.Mutex
	taken map[int]bool
	ready []*Agent
	// left are the numbers that an earlier server used, until FindAgent finds whose they
	// are or nothing runs in them.
	left   []int
	others bool // another driver has the namespace open, and groups ready
}

// Agent returns the groups for process 1 of the sandbox id, and makes them if none are ready.
// Remove returns them to the pool.
func (d *Driver) Agent(id string) (*Agent, error) {
	s := &d.agents
	s.mu.Lock()
	if last := len(s.ready) - 1; last >= 0 {
		a := s.ready[last]
		s.ready = s.ready[:last]
		s.mu.Unlock()
		a.id = id
		return a, nil
	}
	s.mu.Unlock()
	return d.makeAgent(id)
}

// makeAgent makes one, all or nothing.
func (d *Driver) makeAgent(id string) (*Agent, error) {
	a := &Agent{driver: d, id: id, number: d.agents.reserve()}
	var err error
	for i := range d.v1 {
		h := &d.v1[i]
		if err = d.kernel.mkdirat(h.dir, a.path()); err != nil {
			break
		}
		if err = h.apply(d.kernel, a.path(), d.limits, true); err != nil {
			break
		}
	}
	if err == nil {
		a.files, err = d.taskFiles(a.path())
	}
	if err != nil {
		for i := range d.v1 {
			_ = d.kernel.rmdirat(d.v1[i].dir, a.path())
		}
		d.agents.release(a.number)
		return nil, notMade(a.path(), err)
	}
	return a, nil
}

// reserve returns the lowest number that is not in use, which is its caller's.
func (s *agentGroups) reserve() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for s.taken[n] {
		n++
	}
	s.take(n)
	return n
}

func (s *agentGroups) take(n int) {
	if s.taken == nil {
		s.taken = make(map[int]bool)
	}
	s.taken[n] = true
}

func (s *agentGroups) release(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, n)
}

func (a *Agent) path() string { return agentName(a.number) }

func agentName(n int) string { return agentPrefix + strconv.Itoa(n) }

// agentNumber is the number in the name of a group; -1: it is no agent's.
func agentNumber(name string) int {
	text, ours := strings.CutPrefix(name, agentPrefix)
	if n, err := strconv.Atoi(text); ours && err == nil && n >= 0 {
		return n
	}
	return -1
}

// Files are the tasks files of the v1 groups, open for writing; none where v1 limits nothing.
// A thread that writes "0" to all of them is in the groups, and so is what it forks.
func (a *Agent) Files() []*os.File { return a.files }

// CloseFiles closes them. Twice is fine.
func (a *Agent) CloseFiles() {
	for _, f := range a.files {
		_ = f.Close()
	}
	a.files = nil
}

// FindAgent finds the groups of the running process 1 of a sandbox, which another server
// started. Where /proc does not tell, they are as those of an earlier version: not known.
func (d *Driver) FindAgent(id string, pid int) *Agent {
	a := &Agent{driver: d, id: id, number: -1}
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	for line := range strings.Lines(string(text)) {
		_, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "/"+top+"/"+d.namespace+"/")
		a.number = max(a.number, agentNumber(name))
	}
	s := &d.agents
	s.mu.Lock()
	if a.number >= 0 {
		s.take(a.number)
		s.left = slices.DeleteFunc(s.left, func(n int) bool { return n == a.number })
	}
	s.mu.Unlock()
	a.Mark()
	return a
}

// Mark has OutOfMemory not speak of what the kernel ended in the groups until now: v2 keeps
// those of the process 1 before.
func (a *Agent) Mark() { a.killed, _ = a.kills() }

// OutOfMemory reports whether the kernel ended a process of the agent for its limit of
// memory, which is known before that has ended, until the sandbox's groups are removed.
func (a *Agent) OutOfMemory() bool {
	n, err := a.kills()
	return err == nil && n > a.killed
}

func (a *Agent) kills() (uint64, error) {
	dir, path := -1, ""
	for h := range a.driver.hierarchies {
		switch {
		case !slices.Contains(h.limits, Memory):
		case h.v2:
			dir, path = h.dir, a.id+"/agent/memory.events"
		case a.number >= 0:
			dir, path = h.dir, a.path()+"/memory.oom_control"
		}
	}
	if dir < 0 {
		return 0, nil
	}
	f, err := openFile(dir, path, unix.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return counter.OOMKills(f)
}

// Remove removes the v1 groups, once no process is in them, for which it waits (the context's
// time, else 5 s). Those of v2 go with the sandbox's. Twice is fine.
func (a *Agent) Remove(ctx context.Context) error {
	a.CloseFiles()
	if a.number < 0 {
		return nil
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	d := a.driver
	for i := range d.v1 {
		if err := d.removeV1(ctx, &d.v1[i], a.path()); err != nil {
			s := &d.agents
			s.mu.Lock()
			s.left = append(s.left, a.number)
			s.mu.Unlock()
			a.number = -1
			return err
		}
	}
	d.agents.release(a.number)
	a.number = -1
	return nil
}

// makeAgents makes the groups of agents that are missing of maxSpares, and removes those of
// which nothing runs any more.
func (d *Driver) makeAgents() error {
	s := &d.agents
	s.mu.Lock()
	left := slices.Clone(s.left)
	s.mu.Unlock()
	for _, n := range left {
		if d.dropAgent(n) {
			s.mu.Lock()
			if i := slices.Index(s.left, n); i >= 0 { // else FindAgent has it
				s.left = slices.Delete(s.left, i, i+1)
				delete(s.taken, n)
			}
			s.mu.Unlock()
		}
	}
	for {
		s.mu.Lock()
		missing := len(s.ready) < maxSpares
		s.mu.Unlock()
		if !missing {
			return nil
		}
		a, err := d.makeAgent("")
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.ready = append(s.ready, a)
		s.mu.Unlock()
	}
}

// dropAgent removes the v1 groups of a number, and reports whether none is left: one that has
// processes stays.
func (d *Driver) dropAgent(n int) bool {
	gone := true
	for i := range d.v1 {
		if err := d.kernel.rmdirat(d.v1[i].dir, agentName(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			gone = false
		}
	}
	return gone
}

// removeEmptyAgents removes the groups of agents in which nothing runs, of the namespace's
// group that is open as dir.
func (d *Driver) removeEmptyAgents(dir int) {
	names, _ := children(dir, ".")
	for _, name := range names {
		if agentNumber(name) >= 0 {
			_ = d.kernel.rmdirat(dir, name)
		}
	}
}

// noteAgents has the numbers that are in use not be given again.
func (d *Driver) noteAgents() {
	s := &d.agents
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range d.v1 {
		names, _ := children(d.v1[i].dir, ".")
		for _, name := range names {
			n := agentNumber(name)
			if n < 0 || s.taken[n] {
				continue
			}
			s.take(n)
			if !s.others {
				s.left = append(s.left, n)
			}
		}
	}
}

// closeAgents removes the groups that no sandbox took.
func (d *Driver) closeAgents() {
	s := &d.agents
	s.mu.Lock()
	ready := s.ready
	s.ready = nil
	s.mu.Unlock()
	for _, a := range ready {
		a.CloseFiles()
		_ = d.dropAgent(a.number)
	}
}

// removeAgents removes the groups of agents of a hierarchy, an earlier version's too, but for
// those in which one lives. The kernel counts a task in its group for a moment after it is
// gone from everywhere else.
func (d *Driver) removeAgents(h *hierarchy) error {
	const patience, pause = time.Second, 2 * time.Millisecond
	for deadline := time.Now().Add(patience); ; {
		names, err := children(h.dir, ".")
		if err != nil {
			return err
		}
		ending := false
		for _, name := range names {
			if !strings.HasPrefix(name, agentPrefix) || d.kernel.rmdirat(h.dir, name) == nil {
				continue
			}
			tasks, err := read(h.dir, name+"/tasks")
			ending = ending || err == nil && !slices.ContainsFunc(list(tasks), alive)
		}
		if !ending || time.Now().After(deadline) {
			return nil
		}
		<-time.After(pause) // v1 tells nobody when a group becomes empty
	}
}

func alive(task string) bool {
	_, err := os.Stat("/proc/" + task)
	return err == nil
}

// limitAgent gives ID/agent its limits, where v2 has any.
func (g *Group) limitAgent() error {
	h := g.driver.v2
	if err := h.apply(g.driver.kernel, g.id+"/agent", g.driver.limits, true); err != nil {
		return fmt.Errorf("cgroup: limit %s/agent: %w", g.id, err)
	}
	return nil
}
