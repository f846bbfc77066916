// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/internal/leaktest"
)

// Inside is work in a sandbox against the same work on the bare host.
//
// It is one program, work.py, by the image's own python and with the image's own git, pip
// and tar, by the same user id, with all that it reads and writes in one directory that is
// called /workspace, timed by its own clock, which leaves out the way to it and the start
// of python. What differs is where it runs:
//
//   - inside: in a sandbox that may use all processors and half of the memory. Programs and
//     workspace are seen through the sandbox's overlay, and the workspace lies on the file
//     system where the server keeps the layers of sandboxes.
//   - store: on the host, chrooted into the image, in no namespace but one of mounts, no
//     cgroup and no filter; the workspace is a directory on that same file system.
//   - host: the same, but the workspace is a directory on the file system of the data
//     directory. Where the server keeps layers in a loop file, that is the file system that
//     the loop file lies on.
//
// Inside over store is what sandpit adds, which is to be less than 2 %; store over host is
// what btrfs in a loop file costs. Where layers lie on the data directory's own file
// system, there is no store, and inside is compared with host.
//
// All dirty pages are written back before each run, so that none pays for the one before.
type Inside struct {
	Rounds int    `json:"rounds"`
	DataFS string `json:"data_file_system"`
	Store  string `json:"store_file_system"` // "": that of the data directory
	Work   []Work `json:"work"`
}

// Work is one kind of it.
type Work struct {
	Kind   string   `json:"kind"` // a function of work.py, which says what it is
	Inside *Figures `json:"inside"`
	Store  *Figures `json:"store"`
	Host   *Figures `json:"host"`
	// The ratios are of neighbours, run by run.
	Sandbox *Spread `json:"inside_over_bare"` // on the same file system
	Loop    *Spread `json:"store_over_host"`
	All     *Spread `json:"inside_over_host"`
}

//go:embed work.py
var workProgram []byte

const (
	workFile = "work.py"
	workPids = 1024
	// loopStore is where layers lie that are in no directory.
	loopStore = "btrfs on a loop device"
)

// workEnv keeps what programs like to leave in a home or a temporary directory on the file
// system that is measured.
var workEnv = map[string]string{
	"HOME": "/workspace/home", "TMPDIR": "/workspace/tmp", "LANG": "C.UTF-8",
	"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}

// worker does the work somewhere, and gives what it printed.
type worker func(ctx context.Context, args ...string) (string, error)

// The sides of the comparison.
const (
	atInside = iota
	atHost
	atStore // missing where there is no store of its own
)

// inside measures all kinds of work that the image has the programs for.
func (s *session) inside(ctx context.Context) (_ *Inside, err error) {
	img, err := defaultImage(ctx, s.o.Images)
	if err != nil {
		return nil, err
	}
	dir, err := s.place("inside")
	if err != nil {
		return nil, err
	}
	r := &Inside{Rounds: min(30, max(5, s.o.pairs()/4)), DataFS: fileSystem(s.dir)}
	device, err := s.server.loopDevice()
	if err != nil {
		return nil, err
	}
	places := []struct {
		name, device string
	}{{"host", ""}}
	if device != "" {
		r.Store = loopStore
		places = append(places, struct{ name, device string }{"store", device})
	}
	sides := make([]worker, 1, 1+len(places)) // what is inside comes last
	for _, place := range places {
		where, err := newBare(filepath.Join(dir, place.name), img.Root, place.device)
		if err != nil {
			return nil, fmt.Errorf("the bare host, %s: %w", place.name, err)
		}
		defer func() { err = errors.Join(err, where.close()) }()
		if err := where.put(workFile, workProgram); err != nil {
			return nil, err
		}
		sides = append(sides, func(ctx context.Context, args ...string) (string, error) {
			return where.run(ctx, environ(workEnv), append([]string{"/usr/bin/python3", workFile}, args...)...)
		})
	}
	memory := int(s.out.Machine.MemoryMB / 2)
	spec := v1.CreateSandbox{CPUCores: new(float64(runtime.NumCPU())), MemoryMB: &memory, DiskMB: new(8 << 10), Pids: new(workPids)}
	return r, s.us.with(ctx, spec, func(ref string) error {
		if err := s.us.client.WriteFile(ctx, ref, workFile, strings.NewReader(string(workProgram)), client.WriteOptions{}); err != nil {
			return err
		}
		sides[atInside] = func(ctx context.Context, args ...string) (string, error) { return s.us.work(ctx, ref, args...) }
		return measureWork(ctx, sides, r)
	})
}

// work runs the program inside.
func (o *ours) work(ctx context.Context, ref string, args ...string) (string, error) {
	r, err := o.client.Exec(ctx, ref, v1.Exec{
		Argv: append([]string{"/usr/bin/python3", workFile}, args...), Env: workEnv, TimeoutSeconds: new(1800.0),
	})
	if err != nil {
		return "", err
	}
	if r.ExitCode == nil || *r.ExitCode != 0 {
		return "", fmt.Errorf("%v inside ended with %s, cause %q: %s", args, number(r.ExitCode), r.Cause, r.Stderr)
	}
	return r.Stdout, nil
}

func measureWork(ctx context.Context, sides []worker, r *Inside) error {
	for _, run := range sides {
		if _, err := run(ctx, "prepare"); err != nil {
			return err
		}
	}
	kinds, err := sides[atInside](ctx, "kinds")
	if err != nil {
		return err
	}
	for _, kind := range strings.Fields(kinds) {
		w, err := compareWork(ctx, sides, kind, r.Rounds)
		if err != nil {
			return err
		}
		r.Work = append(r.Work, w)
	}
	return nil
}

// compareWork does one kind in turn at each side. The first round does not count.
func compareWork(ctx context.Context, sides []worker, kind string, rounds int) (Work, error) {
	times := make([]series, len(sides))
	took := make([][]float64, len(sides)) // seconds, by round
	for i := range rounds + 1 {
		for k := range sides {
			side := (i + k) % len(sides)
			unix.Sync()
			out, err := sides[side](ctx, "run", kind)
			if err != nil {
				return Work{}, err
			}
			d, err := saidSeconds(out)
			if err != nil {
				return Work{}, fmt.Errorf("%s: %w", kind, err)
			}
			if i > 0 {
				times[side].add(d, nil)
				took[side] = append(took[side], d.Seconds())
			}
		}
	}
	w := Work{Kind: kind, Inside: times[atInside].figures(), Host: times[atHost].figures(), All: spread(ratios(took[atInside], took[atHost]))}
	w.Sandbox = w.All
	if len(sides) > atStore {
		w.Store = times[atStore].figures()
		w.Sandbox = spread(ratios(took[atInside], took[atStore]))
		w.Loop = spread(ratios(took[atStore], took[atHost]))
	}
	return w, nil
}

// ratios divides neighbours.
func ratios(over, under []float64) []float64 {
	out := make([]float64, len(over))
	for i := range over {
		out[i] = over[i] / under[i]
	}
	return out
}

// loopDevice returns the path of the block device on the loop file that the server keeps
// layers in; "" where it keeps them in its directory.
func (s *server) loopDevice() (string, error) {
	now, err := leaktest.Take(leaktest.Scope{Dir: s.data})
	if err != nil {
		return "", err
	}
	loops := slices.Sorted(maps.Keys(now[leaktest.Loops]))
	switch len(loops) {
	case 0:
		return "", nil
	case 1:
		device, _, _ := strings.Cut(loops[0], " ")
		return "/dev/" + device, nil
	}
	return "", fmt.Errorf("the server has %d loop devices: %v", len(loops), loops)
}

// environ returns variables as programs get them, sorted.
func environ(vars map[string]string) []string {
	out := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}

func (x *Inside) rows(row func(name string, f *Figures)) {
	if x == nil {
		return
	}
	for _, w := range x.Work {
		row(w.Kind+", inside", w.Inside)
		row("the same on the host, the store's file system", w.Store)
		row("the same on the host, its own file system", w.Host)
	}
}

func (x *Inside) lines(say func(format string, args ...any)) {
	if x == nil {
		return
	}
	for _, w := range x.Work {
		say("%s inside takes %v times as long as on the bare host on the same file system (pairs)", w.Kind, w.Sandbox)
		if w.Loop != nil {
			say("%s on %s takes %v times as long as on %s, both on the bare host", w.Kind, x.Store, w.Loop, x.DataFS)
		}
	}
}
