// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sandpit.dev/image"
	"sandpit.dev/internal/leaktest"
)

// warmUp is how often each side runs before it counts: page cache, connections
// and the like are there on any machine that is in use.
const warmUp = 5

// measure does the whole run, and ends all that it started.
func measure(ctx context.Context, o options) (_ *Report, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the native runtime needs root: run it with sudo")
	}
	dir, err := os.MkdirTemp(o.data, "sandpit-bench-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &Report{At: time.Now().UTC().Truncate(time.Second), Machine: describe(dir), Missing: map[string]string{}}

	program := o.sandpit
	if program == "" {
		if program, err = buildServer(ctx, dir); err != nil {
			return nil, err
		}
	}
	at, alone := hostAddress()
	if alone != nil {
		r.Missing["network"] = alone.Error()
	}
	s, err := startServer(ctx, program, dir, o.images, o.blanks, at)
	if err != nil {
		return nil, err
	}
	// An interrupt must not keep us from deleting what we made.
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	info, err := s.client.Info(ctx)
	if err != nil {
		return nil, err
	}
	r.Versions = map[string]string{"sandpit": info.Version}
	us := &ours{client: s.client, pid: s.cmd.Process.Pid}
	if _, err := us.firstCommand(ctx, byArgv); err != nil { // waits for the image
		return nil, err
	}
	peers := openPeers(ctx, o, dir, r)
	defer func() {
		for _, p := range peers {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := us.pairs(ctx, o.pairs, peers, r); err != nil {
		return nil, err
	}
	if err := us.operations(ctx, o.pairs, r); err != nil {
		return nil, err
	}
	if at.IsValid() {
		if r.Network, err = us.network(ctx, o.pairs, at); err != nil {
			return nil, err
		}
	}
	if r.MCP, err = us.mcp(ctx, s, o.pairs); err != nil {
		return nil, err
	}
	if err := us.changes(ctx, o.pairs, r); err != nil {
		return nil, err
	}
	if r.Travel, err = us.travel(ctx, o.pairs, o.million); err != nil {
		return nil, err
	}
	if r.Processes, err = us.processes(ctx, s, o.processes); err != nil {
		return nil, err
	}
	if r.Idle, err = us.idle(ctx, s, o.idle); err != nil {
		return nil, err
	}
	if r.Registered, err = us.registered(ctx, s, o.registered, o.pairs*5); err != nil {
		return nil, err
	}
	r.Machine.LoadAfter = load()
	return r, nil
}

func openPeers(ctx context.Context, o options, dir string, r *Report) map[string]Peer {
	peers := map[string]Peer{}
	root, err := imageRoot(ctx, o.images)
	for name := range peerNames {
		r.Missing[name] = "not asked for: see -peers"
	}
	for _, name := range o.peers {
		if err != nil {
			r.Missing[name] = err.Error()
			continue
		}
		p, err := peerNames[name](ctx, peerParts{dir: filepath.Join(dir, name), root: root})
		if err != nil {
			r.Missing[name] = err.Error()
			continue
		}
		delete(r.Missing, name)
		peers[name] = p
		r.Versions[name] = p.Version()
	}
	return peers
}

// imageRoot finds the root that sandboxes which ask for no image run on.
func imageRoot(ctx context.Context, dir string) (string, error) {
	images, err := image.Open(image.Options{Dir: dir})
	if err != nil {
		return "", err
	}
	img, err := images.Find(ctx, "")
	return img.Root, errors.Join(err, images.Close())
}

// pairs runs sandpit and each peer in turn, the order changing from pair to pair
// so that neither always runs in the other's wake.
func (o *ours) pairs(ctx context.Context, n int, peers map[string]Peer, r *Report) error {
	var argv, shell series
	theirs := map[string]*series{}
	ratios := map[string][]float64{}
	for name := range peers {
		theirs[name] = &series{}
	}
	failures := map[string]error{}
	cpu := map[string]time.Duration{}
	var cpuBefore time.Duration
	for i := range n + warmUp {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if i == warmUp { // now it counts
			argv, shell, o.create, o.remove = series{}, series{}, series{}, series{}
			ratios, failures = map[string][]float64{}, map[string]error{}
			for _, s := range theirs {
				*s = series{}
			}
			clear(cpu)
			var err error
			if cpuBefore, err = leaktest.CPU(o.pid); err != nil {
				return err
			}
		}
		var us time.Duration
		var uerr error
		run := func() {
			us, uerr = o.firstCommand(ctx, byArgv)
			argv.add(us, uerr)
			failures["sandpit"] = firstOf(failures["sandpit"], uerr)
		}
		if i%2 == 0 {
			run()
		}
		took := map[string]time.Duration{}
		for name, p := range peers {
			d, c, err := p.FirstCommand(ctx)
			theirs[name].add(d, err)
			failures[name] = firstOf(failures[name], err)
			if err == nil {
				took[name] = d
				cpu[name] += c
			}
		}
		if i%2 == 1 {
			run()
		}
		for name, d := range took {
			if uerr == nil {
				ratios[name] = append(ratios[name], float64(d)/float64(us))
			}
		}
		d, err := o.firstCommand(ctx, byShell)
		shell.add(d, err)
		failures["sandpit"] = firstOf(failures["sandpit"], err)
	}
	cpuAfter, err := leaktest.CPU(o.pid)
	if err != nil {
		return err
	}
	r.Pairs = n
	r.CPU.Sandpit = ms((cpuAfter - cpuBefore) / time.Duration(2*n)) // by argv and by shell
	r.FirstCommand.Sandpit, r.FirstCommand.Shell = argv.figures(), shell.figures()
	r.Operations.Create, r.Operations.Delete = o.create.figures(), o.remove.figures()
	if s := theirs["runc"]; s != nil {
		r.FirstCommand.Runc = s.figures()
		r.Ratios.Runc = median(ratios["runc"])
		each := ms(cpu["runc"] / time.Duration(max(1, len(s.ok))))
		r.CPU.Runc = &each
	}
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		if err := failures[name]; err != nil {
			r.Failures = append(r.Failures, fmt.Sprintf("%s: %v", name, err))
		}
	}
	return nil
}
