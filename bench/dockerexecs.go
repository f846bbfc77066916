// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/leaktest"
)

// DockerExecs is further commands in a sandbox on an Engine, beside those of the Engine itself, and what many of them leave in the Engine.
type DockerExecs struct {
	Warm   Compared `json:"exec"`
	InARow int      `json:"in_a_row"`
	Ours   Held     `json:"sandpit"` // by the commands in a row of a sandbox
	Theirs Held     `json:"docker"`  // by as many of the Engine's own, in a container
}

// Held is what the Engine's own processes (dockerd, containerd and its shims, not what runs in containers) hold before and after. They have
// been left alone for two seconds each time.
type Held struct {
	MemoryBefore      float64 `json:"rss_mb_before"`
	MemoryAfter       float64 `json:"rss_mb_after"`
	DescriptorsBefore int     `json:"descriptors_before"`
	DescriptorsAfter  int     `json:"descriptors_after"`
}

// Grown returns by how many MB the memory grew.
func (h Held) Grown() float64 { return hundredths(h.MemoryAfter - h.MemoryBefore) }

// Opened returns by how many the descriptors grew.
func (h Held) Opened() int { return h.DescriptorsAfter - h.DescriptorsBefore }

// inARow is how many commands follow each other.
const inARow = 1000

// heldNow looks at the Engine's processes.
func (e *engine) heldNow() (memory float64, descriptors int, err error) {
	procs, err := leaktest.Scope{Servers: []int{e.PID}}.Processes()
	if err != nil {
		return 0, 0, err
	}
	var bytes int64
	found := false
	for _, p := range procs {
		if p.Dead || p.Name != "dockerd" && !strings.HasPrefix(p.Name, "containerd") {
			continue
		}
		rss, err := leaktest.RSS(p.PID)
		var open []os.DirEntry
		if err == nil {
			open, err = os.ReadDir("/proc/" + strconv.Itoa(p.PID) + "/fd")
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) { // a shim that has ended since
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		bytes += rss
		descriptors += len(open)
		found = found || p.Name == "dockerd"
	}
	if !found {
		return 0, 0, errors.New("the Engine's process is not found")
	}
	return hundredths(float64(bytes) / (1 << 20)), descriptors, nil
}

// holding says what the Engine holds before and after fn.
func (e *engine) holding(ctx context.Context, fn func() error) (h Held, err error) {
	if err := sleep(ctx, e.rest); err != nil {
		return h, err
	}
	if h.MemoryBefore, h.DescriptorsBefore, err = e.heldNow(); err != nil {
		return h, err
	}
	if err := errors.Join(fn(), sleep(ctx, e.rest)); err != nil {
		return h, err
	}
	h.MemoryAfter, h.DescriptorsAfter, err = e.heldNow()
	return h, err
}

func (s *session) dockerExecs(ctx context.Context, e *engine) (_ *DockerExecs, err error) {
	us, err := s.startDockerServer(ctx, e, "execs", 0, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, us.close(ctx)) }()
	peer := &docker{engine: e}
	c, err := e.startContainer(ctx, engineImage, usual())
	if c != nil {
		defer func() { err = errors.Join(err, c.remove(ctx)) }()
	}
	if err != nil {
		return nil, err
	}
	r := &DockerExecs{InARow: min(inARow, 20*s.o.pairs())}
	return r, us.with(ctx, v1.CreateSandbox{}, func(ref string) (err error) {
		ours := func() error { return us.exec(ctx, ref, byArgv) }
		theirs := func() error { return peer.run(ctx, c.id) }
		r.Warm, err = s.turns(ctx, "command in a sandbox that runs", s.o.pairs(), warmUp, []turn{
			{Plain, func(context.Context) (time.Duration, error) { return timedOnce(theirs) }},
			{Sockets, func(context.Context) (time.Duration, error) { return timedOnce(ours) }},
		})
		if err != nil {
			return err
		}
		for _, one := range []struct {
			into *Held
			run  func() error
		}{{&r.Ours, ours}, {&r.Theirs, theirs}} {
			*one.into, err = e.holding(ctx, func() error {
				for range r.InARow {
					if err := firstOf(ctx.Err(), one.run()); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *DockerExecs) rows(row func(name string, f *Figures)) {
	if d != nil {
		d.Warm.rows(row)
	}
}

func (d *DockerExecs) lines(say func(format string, args ...any)) {
	if d == nil {
		return
	}
	for _, one := range []struct {
		whose string
		h     Held
	}{{"sandpit's", d.Ours}, {"the Engine's own", d.Theirs}} {
		say("%d commands in a row, %s: the Engine has %.1f MB (RSS) and %d descriptors before, %.1f MB and %d after",
			d.InARow, one.whose, one.h.MemoryBefore, one.h.DescriptorsBefore, one.h.MemoryAfter, one.h.DescriptorsAfter)
	}
}
