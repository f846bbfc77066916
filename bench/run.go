// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"sandpit.dev/internal/programs"
	"sandpit.dev/internal/sysmon"
	"sandpit.dev/test/browser"
)

// warmUp is how often each side runs before it counts: page cache, connections
// and the like are there on any machine that is in use.
const warmUp = 5

// session is one run: the server, the peers beside it, and the report so far.
type session struct {
	o        Options
	dir      string // private
	allow    netip.Addr
	server   *server
	us       *ours
	peers    []peer // that are there
	engines  engineShare
	programs *programs.Finder // nil until peers are made of it
	share    time.Duration    // of each side in a comparison; 0: all the time it needs
	out      *Report
	told     map[string]bool // kinds of failures that are in the report
	broken   error           // of the parts that failed
}

// part is one thing that is measured; it fills its field of the report.
type part struct {
	name  string
	quick bool // also in a quick run
	run   func(ctx context.Context, s *session) error
}

// parts is all that is measured, in its order: a new one is a line here.
var parts = []part{
	{"first-command", true, func(ctx context.Context, s *session) error { return s.firstCommands(ctx) }},
	{"exec", true, func(ctx context.Context, s *session) error { return s.execs(ctx) }},
	{"operations", false, func(ctx context.Context, s *session) error { return s.us.operations(ctx, s.o.pairs(), s.out) }},
	{"network", false, func(ctx context.Context, s *session) (err error) {
		if s.allow.IsValid() {
			s.out.Network, err = s.us.network(ctx, s.o.pairs(), s.allow)
		}
		return err
	}},
	{"mcp", false, func(ctx context.Context, s *session) (err error) {
		s.out.MCP, err = s.us.mcp(ctx, s.server, s.o.pairs())
		return err
	}},
	{"changes", false, func(ctx context.Context, s *session) error { return s.us.changes(ctx, s.o.pairs(), s.out) }},
	{"travel", false, func(ctx context.Context, s *session) (err error) {
		s.out.Travel, err = s.us.travel(ctx, s.server, s.o.pairs(), s.o.Million)
		return err
	}},
	{"processes", false, func(ctx context.Context, s *session) (err error) {
		s.out.Processes, err = s.us.processes(ctx, s.server, s.o.Processes)
		return err
	}},
	{"idle", false, func(ctx context.Context, s *session) (err error) {
		s.out.Idle, err = s.us.idle(ctx, s.server, s.o.Idle)
		return err
	}},
	{"burst", false, func(ctx context.Context, s *session) (err error) {
		s.out.Burst, err = s.burst(ctx)
		return err
	}},
	{"throughput", false, func(ctx context.Context, s *session) (err error) {
		s.out.Throughput, err = s.throughput(ctx, s.o.Sustain)
		return err
	}},
	{"files", false, func(ctx context.Context, s *session) (err error) {
		if s.out.Transfer, err = s.us.transfer(ctx, s.o.pairs()); err != nil {
			return err
		}
		return s.us.listing(ctx, s.server, max(5, s.o.pairs()/20), s.out.Transfer)
	}},
	{"wires", false, func(ctx context.Context, s *session) (err error) {
		s.out.Wires, err = s.wires(ctx, s.o.pairs())
		return err
	}},
	{"console", false, func(ctx context.Context, s *session) (err error) {
		s.out.Console, err = s.console(ctx, browser.Dir())
		return err
	}},
	{"inside", false, func(ctx context.Context, s *session) (err error) {
		s.out.Inside, err = s.inside(ctx)
		return err
	}},
	{"density", false, func(ctx context.Context, s *session) (err error) {
		s.out.Density, err = s.us.density(ctx, s.server, s.o.Density)
		return err
	}},
	{"records", false, func(ctx context.Context, s *session) (err error) {
		s.out.Records, err = s.us.records(ctx, s.o.Records)
		return err
	}},
	{"neighbours", false, func(ctx context.Context, s *session) (err error) {
		s.out.Neighbours, err = s.neighbours(ctx, s.o.pairs()*2)
		return err
	}},
	enginePart("docker-start", func(ctx context.Context, s *session, e *engine) (err error) {
		s.out.OnDocker.Start, err = whole(s.dockerStart(ctx, e))
		return err
	}),
	enginePart("docker-execs", func(ctx context.Context, s *session, e *engine) (err error) {
		s.out.OnDocker.Execs, err = whole(s.dockerExecs(ctx, e))
		return err
	}),
	enginePart("docker-stream", func(ctx context.Context, s *session, e *engine) (err error) {
		s.out.OnDocker.Stream, err = whole(s.dockerStream(ctx, e))
		return err
	}),
	enginePart("docker-disks", func(ctx context.Context, s *session, e *engine) (err error) {
		s.out.OnDocker.Disks, err = whole(s.dockerDisks(ctx, e, dockerDiskSizes()))
		return err
	}),
	enginePart("docker-gate", func(ctx context.Context, s *session, e *engine) (err error) {
		if s.allow.IsValid() {
			s.out.OnDocker.Gate, err = whole(s.dockerGate(ctx, e))
		}
		return err
	}),
	enginePart("docker-alive", func(ctx context.Context, s *session, e *engine) (err error) {
		s.out.OnDocker.Alive, err = whole(s.dockerAlive(ctx, e, s.o.Density))
		return err
	}),
	enginePart("docker-cycles", func(ctx context.Context, s *session, e *engine) (err error) {
		s.out.OnDocker.Cycles, err = whole(s.dockerCycles(ctx, e, s.o.Cycles))
		return err
	}),
	enginePart("docker-inside", func(ctx context.Context, s *session, e *engine) (err error) {
		s.out.OnDocker.Inside, err = whole(s.dockerInside(ctx, e))
		return err
	}),
	{"kubernetes", false, func(ctx context.Context, s *session) error { return s.kubernetes(ctx) }},
	{"price", false, func(_ context.Context, s *session) error { s.price(); return nil }},
	// It starts the server again: it comes last.
	{"registered", false, func(ctx context.Context, s *session) (err error) {
		s.out.Registered, err = s.us.registered(ctx, s.server, s.o.Registered, s.o.pairs()*5)
		return err
	}},
}

// Run measures, and ends all that it started, also when ctx ends it early. Where single
// parts fail there is both an error and the report of the others.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("the native runtime needs root: run it with sudo")
	}
	sysmon.Calm() // what measures takes as little from what is measured as it can
	before := readUsage()
	dir, err := os.MkdirTemp(o.Data, "sandpit-bench-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	s := &session{o: o, dir: dir, out: &Report{
		At: time.Now().UTC().Truncate(time.Second), Pairs: o.pairs(), Prewarmed: o.Prewarmed, Machine: describe(dir),
		Versions: map[string]string{}, Missing: map[string]string{},
	}}
	if o.Quick {
		s.share = quickShare
	}
	if err := errors.Join(s.measure(ctx), os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	after := readUsage()
	s.out.Machine.since(before, after)
	s.out.conceal(dir)
	s.out.Took = after.at.Sub(before.at).Round(time.Second).Seconds()
	return s.out, s.broken
}

func (s *session) measure(ctx context.Context) (err error) {
	var alone error
	if s.allow, alone = hostAddress(); alone != nil {
		s.out.Missing["network"] = alone.Error()
	}
	s.tell("start a server")
	if s.server, err = startServer(ctx, s.o.Program, s.dir, s.o.Images, s.o.Prewarmed, s.allow); err != nil {
		return err
	}
	// An interrupt must not keep us from deleting what we made.
	defer func() { err = errors.Join(err, s.server.close(context.WithoutCancel(ctx))) }()
	info, err := s.server.client.Info(ctx)
	if err != nil {
		return err
	}
	s.out.Versions["sandpit"] = info.Version
	s.us = &ours{client: s.server.client, pid: s.server.cmd.Process.Pid}
	if _, err := s.us.firstCommand(ctx, byArgv); err != nil { // waits for the image
		return err
	}
	defer func() { err = errors.Join(err, s.closePeers()) }()
	s.openPeers(ctx)
	err = s.runParts(ctx, parts)
	s.out.Machine.LoadAfter = load()
	return err
}

// runParts runs those that are asked for. One that fails is missing in the report, with the
// reason, and in what Run gives; what others measure is not lost.
func (s *session) runParts(ctx context.Context, all []part) error {
	for _, p := range all {
		if !s.o.has(p) {
			continue
		}
		s.tell(p.name)
		err := p.run(ctx, s)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", p.name, firstOf(err, ctx.Err()))
		case err != nil:
			s.tell(fmt.Sprintf("%s FAILED: %v", p.name, err))
			s.out.Missing[p.name] = err.Error()
			s.broken = errors.Join(s.broken, fmt.Errorf("%s: %w", p.name, err))
		default:
			s.out.Parts = append(s.out.Parts, p.name)
		}
	}
	return nil
}

// tell says where the run is.
func (s *session) tell(what string) {
	if s.o.Progress != nil {
		fmt.Fprintf(s.o.Progress, "%s  %s\n", time.Now().Format(time.TimeOnly), what)
	}
}

// price tells where the price of authentication and of recording is measured. Switching
// them off would tell it here, but no server can be told to ask nobody for a token, or to
// run a command that is not on record, and for the sake of a figure none shall be. So
// they are measured below the API, by benchmarks of the packages that do the work.
func (s *session) price() {
	const run = "no server can be told to do without it; below the API, go test -run - -bench "
	s.out.Missing["price of authentication"] = run + "'Check|Guard' ./access/bearer ./api/guard measures it"
	s.out.Missing["price of recording"] = run + "Recording ./engine measures it, in pairs with a store that keeps no events"
}
