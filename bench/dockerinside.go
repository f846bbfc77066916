// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// DockerInside is the work of [Inside], by work.py, in a sandbox of the native runtime and in one on an Engine, in turn with a plain container of the
// same Engine, all on the same disk: the data of server and Engine lie on one file system. All may use all processors and half of the
// memory, and are the same user. All dirty pages are written back before each run.
type DockerInside struct {
	DataFS string `json:"data_file_system"`
	Store  string `json:"store_file_system"` // where the native runtime's layers lie; "": on that of the data
	Rounds int    `json:"rounds"`
	// Work is by kinds, which are What: functions of work.py.
	Work  []Compared `json:"work"`
	Lacks []string   `json:"lacks"` // kinds for which the image has no program
}

func (s *session) dockerInside(ctx context.Context, e *engine) (_ *DockerInside, err error) {
	us, err := s.startDockerServer(ctx, e, "inside", 0, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, us.close(ctx)) }()
	device, err := s.server.loopDevice()
	if err != nil {
		return nil, err
	}
	r := &DockerInside{Rounds: max(3, s.o.pairs()/10), DataFS: fileSystem(s.dir)}
	if device != "" {
		r.Store = loopStore
	}
	memory := int(s.out.Machine.MemoryMB / 2)
	c, err := e.startContainer(ctx, engineImage, containerLimits{float64(runtime.NumCPU()), int64(memory) << 20, workPids})
	if c != nil {
		defer func() { err = errors.Join(err, c.remove(ctx)) }()
	}
	if err == nil {
		err = c.put(ctx, workFile, workProgram)
	}
	if err != nil {
		return nil, err
	}
	plain := func(ctx context.Context, args ...string) (string, error) {
		return c.exec(ctx, fmt.Sprint(user), environ(workEnv), append([]string{"/usr/bin/python3", workFile}, args...)...)
	}
	spec := v1.CreateSandbox{CPUCores: new(float64(runtime.NumCPU())), MemoryMB: &memory, Pids: new(workPids)}
	roomy := spec
	roomy.DiskMB = new(8 << 10)
	return r, s.us.withWork(ctx, roomy, func(native worker) error {
		return us.withWork(ctx, spec, func(ours worker) error {
			return s.compareInside(ctx, []string{Plain, Sockets, Native}, []worker{plain, ours, native}, r)
		})
	})
}

// withWork makes a sandbox for fn in which work can be done.
func (o *ours) withWork(ctx context.Context, spec v1.CreateSandbox, fn func(worker) error) error {
	return o.with(ctx, spec, func(ref string) error {
		if err := o.client.WriteFile(ctx, ref, workFile, strings.NewReader(string(workProgram)), client.WriteOptions{}); err != nil {
			return err
		}
		return fn(func(ctx context.Context, args ...string) (string, error) { return o.work(ctx, ref, args...) })
	})
}

// compareInside does all kinds in turn at each side.
func (s *session) compareInside(ctx context.Context, names []string, sides []worker, r *DockerInside) error {
	for _, run := range sides {
		if _, err := run(ctx, "prepare"); err != nil {
			return err
		}
	}
	kinds, err := sides[0](ctx, "kinds")
	if err != nil {
		return err
	}
	lacks, err := sides[0](ctx, "lacks")
	if err != nil {
		return err
	}
	r.Lacks = strings.Fields(lacks)
	for _, kind := range strings.Fields(kinds) {
		turns := make([]turn, len(sides))
		for i, run := range sides {
			turns[i] = turn{names[i], func(ctx context.Context) (time.Duration, error) {
				unix.Sync()
				out, err := run(ctx, "run", kind)
				if err != nil {
					return 0, err
				}
				return saidSeconds(out)
			}}
		}
		w, err := s.turns(ctx, kind, r.Rounds, 1, turns)
		if err != nil {
			return err
		}
		r.Work = append(r.Work, w)
	}
	return nil
}

func (x *DockerInside) rows(row func(name string, f *Figures)) {
	if x == nil {
		return
	}
	for _, w := range x.Work {
		w.rows(row)
	}
}

func (x *DockerInside) lines(say func(format string, args ...any)) {
	if x == nil {
		return
	}
	for _, w := range x.Work {
		for _, side := range w.Sides {
			if side.Ratio != nil {
				say("%s, %s takes %v times as long as in a plain container (pairs)", w.What, side.Who, side.Ratio)
			}
		}
	}
	if len(x.Lacks) > 0 {
		say("the image lacks what these need: %s", strings.Join(x.Lacks, ", "))
	}
}
