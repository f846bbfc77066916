// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// DockerStream is calls where the agent is reached through the Engine, all of a sandbox over one stream.
type DockerStream struct {
	Warm   Compared `json:"exec"`
	AtOnce Compared `json:"at_once"` // until the last of [Calls] commands that are asked for in the same moment has its result
	Calls  int      `json:"calls"`
	// While a file is downloaded from the same sandbox, over the same stream.
	OneBeside  Beside `json:"one_beside_download"` // one command at a time
	ManyBeside Beside `json:"many_beside_download"`
	Download   Beside `json:"download"` // the download itself: with nothing beside it, and beside those commands
	FileMiB    int    `json:"file_mib"`
}

// Beside is one thing quiet and beside another, in turn.
type Beside struct {
	Quiet  *Figures `json:"quiet"`
	Beside *Figures `json:"beside"`
	// Added is by how many milliseconds the p95 of those beside is more than that of the quiet ones.
	Added *float64 `json:"added_p95_ms"`
}

func beside(quiet, busy series) Beside {
	b := Beside{Quiet: quiet.figures(), Beside: busy.figures()}
	if b.Quiet != nil && b.Beside != nil {
		b.Added = new(hundredths(b.Beside.P95 - b.Quiet.P95))
	}
	return b
}

const (
	callsAtOnce  = 64
	downloadMiB  = 1024
	besideRounds = 5
	besideOnes   = 40 // commands one at a time, in each round
	besideMany   = 4  // crowds, in each round
)

func (s *session) dockerStream(ctx context.Context, e *engine) (_ *DockerStream, err error) {
	us, err := s.startDockerServer(ctx, e, "stream", 0, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, us.close(ctx)) }()
	near, err := s.startDockerServer(ctx, e, "beside-stream", 0, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, near.close(ctx)) }()
	peer := &docker{engine: e}
	c, err := e.startContainer(ctx, engineImage, usual())
	if c != nil {
		defer func() { err = errors.Join(err, c.remove(ctx)) }()
	}
	if err != nil {
		return nil, err
	}
	r := &DockerStream{Calls: min(callsAtOnce, 2*s.o.pairs()), FileMiB: min(downloadMiB, 16*s.o.pairs())}
	return r, us.with(ctx, v1.CreateSandbox{}, func(ref string) error {
		return near.with(ctx, v1.CreateSandbox{}, func(nearRef string) (err error) {
			one := []turn{
				{Plain, func(ctx context.Context) (time.Duration, error) {
					return timedOnce(func() error { return peer.run(ctx, c.id) })
				}},
				{Sockets, func(ctx context.Context) (time.Duration, error) {
					return timedOnce(func() error { return near.exec(ctx, nearRef, byArgv) })
				}},
				{Streamed, func(ctx context.Context) (time.Duration, error) {
					return timedOnce(func() error { return us.exec(ctx, ref, byArgv) })
				}},
			}
			if r.Warm, err = s.turns(ctx, "command in a sandbox that runs", s.o.pairs(), warmUp, one); err != nil {
				return err
			}
			many := make([]turn, len(one))
			for i, single := range one {
				many[i] = turn{single.who, func(ctx context.Context) (time.Duration, error) { return s.crowdOf(ctx, r.Calls, single) }}
			}
			if r.AtOnce, err = s.turns(ctx, fmt.Sprintf("%d commands at once, until the last has its result", r.Calls), max(3, s.o.pairs()/20), 1, many); err != nil {
				return err
			}
			return s.besideDownload(ctx, us.ours, ref, r)
		})
	})
}

// crowdOf has a side do the same many times at once, and says how long until the last is done.
func (s *session) crowdOf(ctx context.Context, n int, one turn) (time.Duration, error) {
	began := time.Now()
	all := together(ctx, n, 0, func(int) error { _, err := one.run(ctx); return err })
	return time.Since(began), all.failure
}

// besideDownload measures commands quiet and beside a download, in turn.
func (s *session) besideDownload(ctx context.Context, o *ours, ref string, r *DockerStream) error {
	size := int64(r.FileMiB) << 20
	const program = "import os,sys\nb=os.urandom(1<<20)\nwith open('large','wb') as f:\n for _ in range(int(sys.argv[1])): f.write(b)"
	if err := o.exec(ctx, ref, v1.Exec{Argv: []string{"python3", "-c", program, fmt.Sprint(r.FileMiB)}}); err != nil {
		return err
	}
	var one, many, download [2]series
	for round := range min(besideRounds, s.o.pairs()) {
		alone, err := timedOnce(func() error { return o.fetch(ctx, ref, size, nil) })
		if err != nil {
			return err
		}
		download[0].add(alone, nil)
		for busy := range 2 {
			at := (busy + round) % 2
			single := func(while func() bool) error { return o.oneByOne(ctx, ref, while, &one[at]) }
			crowd := func(while func() bool) error { return o.crowds(ctx, ref, r.Calls, while, &many[at]) }
			for _, calls := range []func(while func() bool) error{single, crowd} {
				if at == 0 {
					if err := calls(func() bool { return true }); err != nil {
						return err
					}
					continue
				}
				took, err := o.while(ctx, ref, size, calls)
				if err != nil {
					return err
				}
				download[1].add(took, nil)
			}
		}
	}
	r.OneBeside, r.ManyBeside, r.Download = beside(one[0], one[1]), beside(many[0], many[1]), beside(download[0], download[1])
	return nil
}

// while makes calls from a download's first byte to its end, and says how long the download took.
func (o *ours) while(ctx context.Context, ref string, size int64, calls func(while func() bool) error) (took time.Duration, err error) {
	begun, over := make(chan struct{}), make(chan struct{})
	var failed error
	var g sync.WaitGroup
	g.Go(func() {
		defer close(over)
		took, failed = timedOnce(func() error { return o.fetch(ctx, ref, size, begun) })
	})
	select {
	case <-begun:
	case <-over:
	}
	err = calls(func() bool {
		select {
		case <-over:
			return false
		default:
			return true
		}
	})
	g.Wait()
	return took, errors.Join(err, failed)
}

// oneByOne runs commands one after the other while there is something beside them. A command counts if there still was when it was
// done.
func (o *ours) oneByOne(ctx context.Context, ref string, while func() bool, into *series) error {
	for range besideOnes {
		took, err := timedOnce(func() error { return o.exec(ctx, ref, byArgv) })
		if err := firstOf(ctx.Err(), err); err != nil || !while() {
			return err
		}
		into.add(took, nil)
	}
	return nil
}

// crowds is the same with many at once.
func (o *ours) crowds(ctx context.Context, ref string, n int, while func() bool, into *series) error {
	for range besideMany {
		all := together(ctx, n, 0, func(int) error { return o.exec(ctx, ref, byArgv) })
		if err := firstOf(ctx.Err(), all.failure); err != nil || !while() {
			return err
		}
		into.join(all.series)
	}
	return nil
}

// fetch reads the large file to its end. begun is closed at its first byte, unless it is nil.
func (o *ours) fetch(ctx context.Context, ref string, size int64, begun chan<- struct{}) error {
	f, err := o.client.ReadFile(ctx, ref, "large", client.ReadOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	first, err := io.CopyN(io.Discard, f, 1)
	if begun != nil {
		close(begun)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, f)
	if err == nil && n+first != size {
		err = fmt.Errorf("got %d bytes of %d", n+first, size)
	}
	return err
}

func (d *DockerStream) rows(row func(name string, f *Figures)) {
	if d == nil {
		return
	}
	d.Warm.rows(row)
	d.AtOnce.rows(row)
	for _, b := range d.besides() {
		row(b.what, b.Quiet)
		row("the same beside "+b.other, b.Beside.Beside)
	}
}

// namedBeside is a [Beside] with words.
type namedBeside struct {
	what, other string
	Beside
}

func (d *DockerStream) besides() []namedBeside {
	download := fmt.Sprintf("a download of %d MiB", d.FileMiB)
	return slices.DeleteFunc([]namedBeside{
		{"commands one at a time over the stream", download, d.OneBeside},
		{fmt.Sprintf("one of %d commands at once over the stream", d.Calls), download, d.ManyBeside},
		{download + " over the stream", "those commands", d.Download},
	}, func(b namedBeside) bool { return b.Quiet == nil })
}

func (d *DockerStream) lines(say func(format string, args ...any)) {
	if d == nil {
		return
	}
	for _, b := range d.besides() {
		if b.Added != nil {
			say("%s: %s adds %+.2f ms to the p95", b.what, b.other, *b.Added)
		}
	}
}
