// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"io"
	"os"

	"sandpit.dev/internal/cleanup"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native/boot"
	"sandpit.dev/runtime/native/furnish"
)

// start is one life of an instance that begins. Its steps are methods, each in the file of its
// noun: a step makes something, and adds what undoes that to undo. The lists of steps are
// [Instance.start], [Instance.startOnCopy] and [Instance.Restore]; all end with [start.finish].
type start struct {
	i      *Instance
	d      *Driver
	spec   runtime.Spec
	limits cgroup.Limits
	undo   cleanup.Stack
	held   []io.Closer // needed only until the agent has them

	leave   func() // ends the turn in the queue
	ids     uidRange
	group   *cgroup.Group
	launch  *launch       // process 1 on its way; nil: it was not begun, or has ended
	first   *firstProcess // nil: it is not in its namespaces yet
	root    *os.File      // the disk: a detached overlay
	volumes volumes
	files   boot.Files // what the agent gets
	inside  *furnish.Inside
}

func (i *Instance) newStart(spec runtime.Spec) *start {
	return &start{i: i, d: i.d, spec: spec, limits: i.d.enforceable(spec.Limits)}
}

// step is one step of a start.
type step func(context.Context) error

// run does steps, one after the other, up to the first that fails.
func (s *start) run(ctx context.Context, steps ...step) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// close undoes a start that did not come to its end, and frees what only it needed.
func (s *start) close() {
	s.volumes.close(s.d.closer)
	s.undo.Run()
	s.d.closer.drop(s.held)
}

// hold keeps f until the start is closed.
func (s *start) hold(f *os.File, err error) (*os.File, error) {
	if err == nil {
		s.held = append(s.held, f)
	}
	return f, err
}

// start begins a life on the disk that disk makes, all or nothing. Process 1 comes to its
// program, and that gets its runtime up, while the rest is made here: each takes as long as
// the other. The agent has all it needs when start returns, and serves a millisecond later,
// or not; see [serving].
func (i *Instance) start(ctx context.Context, spec runtime.Spec, disk diskMaker) error {
	defer i.d.inflight.begin()()
	disk, begin, end := i.seeded(spec, disk)
	defer end()
	s := i.newStart(spec)
	defer s.close()
	return s.run(ctx,
		s.awaitTurn,     // a few starts go on at a time
		begin,           // of the disk, where something is written into it
		s.reserveIDs,    // user ids of its own, and namespaces
		s.makeGroup,     // with its limits
		s.launchProcess, // process 1 is on its way from here on
		s.mountDisk(disk),
		s.mountVolumes,
		s.prepareGroups, // of the commands
		s.awaitProcess,
		s.finish,
	)
}

// startOnCopy is start with a disk that takes longer to make than all else: that is begun
// first, and awaited last.
func (i *Instance) startOnCopy(ctx context.Context, spec runtime.Spec, disk diskMaker) error {
	defer i.d.inflight.begin()()
	disk, release := makeAside(disk)
	defer i.d.layers.CommitCopies() // and not before the mounts: a commit would hold them up
	defer release()
	s := i.newStart(spec)
	defer s.close()
	return s.run(ctx,
		s.awaitTurn,
		s.reserveIDs,
		s.makeGroup,
		s.launchProcess,
		s.awaitProgram,
		s.prepareGroups,
		s.mountDisk(disk),
		s.mountVolumes,
		s.finish,
	)
}

// finish is the end of every start: process 1 is in its namespaces, and its disk is mounted.
func (s *start) finish(ctx context.Context) error {
	return s.run(ctx,
		s.saveState, // a server that is killed finds it again from here on
		s.furnish,   // the root, as process 1 sees it
		s.awaitProgram,
		s.activateGroups,
		s.handOver, // to the agent
		s.serve,
	)
}

// makeAside begins to make a disk, while something else is done. The disk that it returns
// waits for that, and is for one use; release does so, too, and closes what nobody used.
func makeAside(disk diskMaker) (_ diskMaker, release func()) {
	type result struct {
		layer *layer.Layer
		err   error
	}
	made := make(chan result, 1)
	go func() { // one of the two functions waits for it
		l, err := disk()
		made <- result{l, err}
		close(made)
	}()
	return func() (*layer.Layer, error) {
			r := <-made
			return r.layer, r.err
		}, func() {
			if r := <-made; r.layer != nil && r.err == nil {
				_ = r.layer.Close()
			}
		}
}
