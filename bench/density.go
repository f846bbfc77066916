// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/internal/leaktest"
)

// Density is sandboxes that are alive at the same time, more and more, and what one more
// costs among so many.
type Density struct {
	Asked int    `json:"asked"`
	Alive int    `json:"alive"`           // the most there were
	Ended string `json:"ended,omitempty"` // why there are not more, where fewer were made than asked for
	// What a host lets there be: one process and a few threads belong to each sandbox, and so
	// do descriptors of the server.
	PidMax   int       `json:"pid_max"`
	FilesMax int       `json:"server_nofile"`
	Steps    []Crowded `json:"steps"`
}

// Crowded is a number of sandboxes that have run a command and do nothing. What is of each
// is the mean, and the growth since there was none.
type Crowded struct {
	Alive       int      `json:"alive"`
	PSS         float64  `json:"pss_mb_each"` // of their processes; shared pages by their share
	Available   float64  `json:"available_mb_each"`
	Server      float64  `json:"server_mb_each"`
	Processes   float64  `json:"processes_each"`
	Threads     float64  `json:"threads_each"` // of process 1
	ThreadsMost int      `json:"threads_most"` // of any process 1
	Descriptors float64  `json:"server_descriptors_each"`
	Create      *Figures `json:"create"` // of one more
	First       *Figures `json:"create_first_command"`
	Exec        *Figures `json:"exec"` // in one of them, another one each time
	Delete      *Figures `json:"delete"`
	List        *Figures `json:"list"` // a page of 50
}

// steps of the number of sandboxes; what is asked for is the last one.
var densities = []int{1, 10, 100, 1000}

const (
	densityRuns = 50
	densityMake = 4 // at a time
)

// density fills the server step by step, and weighs.
func (o *ours) density(ctx context.Context, s *server, most int) (_ *Density, err error) {
	if most == 0 {
		return nil, nil
	}
	d := &Density{Asked: most, PidMax: kernelNumber("/proc/sys/kernel/pid_max"), FilesMax: filesMax(s.cmd.Process.Pid)}
	var mu sync.Mutex
	var ids []string
	defer func() { err = errors.Join(err, o.deleteAll(context.WithoutCancel(ctx), ids)) }()
	if err := sleep(ctx, calm); err != nil {
		return nil, err
	}
	empty, err := look(s)
	if err != nil {
		return nil, err
	}
	for _, n := range upTo(densities, most) {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(densityMake)
		for range n - len(ids) {
			g.Go(func() error {
				if gctx.Err() != nil {
					return gctx.Err()
				}
				box, _, err := o.client.Create(gctx, v1.CreateSandbox{IdleTimeoutSeconds: new(int64(0))})
				if err != nil {
					return err
				}
				mu.Lock()
				ids = append(ids, box.ID)
				mu.Unlock()
				return o.exec(gctx, box.ID, byArgv)
			})
		}
		full := g.Wait()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		d.Alive = len(ids)
		if full != nil {
			d.Ended = full.Error()
		}
		if len(ids) == 0 {
			return nil, full
		}
		step, err := o.crowded(ctx, s, ids, empty)
		if err != nil && full == nil {
			return nil, fmt.Errorf("with %d sandboxes: %w", len(ids), err)
		}
		if err == nil {
			d.Steps = append(d.Steps, step)
		}
		if full != nil {
			break
		}
	}
	return d, nil
}

// upTo returns the steps below most, and most.
func upTo(steps []int, most int) []int {
	var out []int
	for _, n := range steps {
		if n < most {
			out = append(out, n)
		}
	}
	return append(out, most)
}

// crowded weighs those that are there, and times what comes on top.
func (o *ours) crowded(ctx context.Context, s *server, ids []string, empty seen) (c Crowded, err error) {
	if err := sleep(ctx, calm); err != nil {
		return c, err
	}
	now, err := look(s)
	if err != nil {
		return c, err
	}
	if now.processes < len(ids) {
		return c, fmt.Errorf("%d processes are there for %d sandboxes", now.processes, len(ids))
	}
	n := float64(len(ids))
	mb := func(bytes int64) float64 { return hundredths(float64(bytes) / n / (1 << 20)) }
	c = Crowded{
		Alive: len(ids), PSS: mb(now.pss - empty.pss), Available: mb(empty.available - now.available), Server: mb(now.server - empty.server),
		Processes: hundredths(float64(now.processes-empty.processes) / n), Threads: hundredths(float64(now.threads-empty.threads) / n),
		ThreadsMost: now.threadsMost, Descriptors: hundredths(float64(now.descriptors-empty.descriptors) / n),
	}
	var create, first, remove series
	var failure error
	for range densityRuns {
		if ctx.Err() != nil {
			return c, ctx.Err()
		}
		began := time.Now()
		box, _, err := o.client.Create(ctx, v1.CreateSandbox{})
		create.add(time.Since(began), err)
		if failure = firstOf(failure, err); err != nil {
			continue
		}
		err = o.exec(ctx, box.ID, byArgv)
		first.add(time.Since(began), err)
		began = time.Now()
		gone := o.client.Delete(ctx, box.ID)
		remove.add(time.Since(began), gone)
		failure = firstOf(failure, errors.Join(err, gone))
	}
	if len(create.ok) == 0 {
		return c, failure
	}
	i := 0
	exec, err := timed(ctx, 2*densityRuns, func() error {
		i++
		return o.exec(ctx, ids[i*len(ids)/(2*densityRuns+1)], byArgv)
	})
	if err != nil {
		return c, err
	}
	list, err := timed(ctx, densityRuns, func() error {
		p, err := o.client.ListPage(ctx, client.ListQuery{Limit: 50})
		if err == nil && p.Total < len(ids) {
			err = fmt.Errorf("the list knows of %d sandboxes, want %d", p.Total, len(ids))
		}
		return err
	})
	if err != nil {
		return c, err
	}
	c.Create, c.First, c.Delete, c.Exec, c.List = create.figures(), first.figures(), remove.figures(), exec.figures(), list.figures()
	return c, nil
}

// seen is what sandboxes have on the host, all together.
type seen struct {
	pss, available, server int64 // bytes
	processes, threads     int
	threadsMost            int // of one process
	descriptors            int // of the server
}

func look(s *server) (out seen, err error) {
	// What this program itself let go of must not count.
	debug.FreeOSMemory()
	if out.available, out.server, err = weigh(s); err != nil {
		return out, err
	}
	open, err := os.ReadDir("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/fd")
	if err != nil {
		return out, err
	}
	out.descriptors = len(open)
	procs, err := s.scope().Processes()
	if err != nil {
		return out, err
	}
	for _, p := range procs {
		if p.Dead {
			continue
		}
		b, err := leaktest.PSS(p.PID)
		if err != nil {
			return out, fmt.Errorf("weigh process %d (%s): %w", p.PID, p.Name, err)
		}
		threads, err := os.ReadDir("/proc/" + strconv.Itoa(p.PID) + "/task")
		if err != nil {
			return out, err
		}
		out.pss += b
		out.processes++
		out.threads += len(threads)
		out.threadsMost = max(out.threadsMost, len(threads))
	}
	return out, nil
}

// kernelNumber reads a number from a file of the kernel's; 0 where there is none.
func kernelNumber(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return n
}

// filesMax returns how many descriptors a process may have; 0: that is not known.
func filesMax(pid int) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0
	}
	return maxOpenFiles(string(b))
}

// maxOpenFiles finds the soft limit in the text of /proc/PID/limits; 0: none is there.
func maxOpenFiles(limits string) int {
	for line := range strings.Lines(limits) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				if n, err := strconv.Atoi(f[0]); err == nil {
					return n
				}
				return math.MaxInt // "unlimited"
			}
		}
	}
	return 0
}

func (d *Density) rows(row func(name string, f *Figures)) {
	if d == nil {
		return
	}
	for _, c := range d.Steps {
		row(fmt.Sprintf("create → first command beside %d", c.Alive), c.First)
		row("its create", c.Create)
		row("its delete", c.Delete)
		row("command in one of them", c.Exec)
		row("list 50 of them", c.List)
	}
}

func (d *Density) lines(say func(format string, args ...any)) {
	if d == nil {
		return
	}
	for _, c := range d.Steps {
		say("%d alive, each: %.2f MB in %.1f processes (PSS), %.1f threads of process 1 (%d at most), %.2f descriptors of the server; the host's available memory fell by %.2f MB each, of which the server %.2f",
			c.Alive, c.PSS, c.Processes, c.Threads, c.ThreadsMost, c.Descriptors, c.Available, c.Server)
	}
	if d.Ended != "" {
		say("of %d sandboxes %d were alive at most, with pid_max %d and %d descriptors for the server: %s", d.Asked, d.Alive, d.PidMax, d.FilesMax, d.Ended)
	}
}
