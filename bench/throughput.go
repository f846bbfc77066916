// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sandpit.dev/client"
	"sandpit.dev/internal/leaktest"
)

// Throughput is how much one server gets done when it is never left in peace.
type Throughput struct {
	Exec      []Busy     `json:"exec"` // warm commands, by the number of clients
	Sustained *Sustained `json:"sustained"`
}

// Busy is clients that each run one command after the other in a sandbox of their own, all
// at the same time. The command is argv ["/bin/true"].
type Busy struct {
	Clients   int      `json:"clients"`
	PerSecond *float64 `json:"commands_per_second"` // of all together: the median over rounds
	Wait      *Figures `json:"wait"`                // of one client for one command
}

// Sustained is create, command and delete without a pause.
type Sustained struct {
	Seconds   float64  `json:"seconds"`
	Clients   int      `json:"clients"`
	Life      *Figures `json:"life"` // create, command, delete; n is lives
	PerSecond float64  `json:"lives_per_second"`
	PerCore   float64  `json:"lives_per_second_per_core"` // by the machine's cores, of which the clients use a part
	CPU       float64  `json:"cpu_ms_each"`               // of the server and all that ran inside, the mean; exact to 10 ms over the whole
	Before    float64  `json:"server_mb_before"`          // the server's memory (PSS)
	After     float64  `json:"server_mb_after"`
	// Left is what of the server's is on the host once nothing more goes away, and was not
	// before: processes, mounts, cgroups, namespaces, sockets, descriptors, loop devices,
	// directories. None is the proof that nothing leaked; null: it was not looked for.
	Left []string `json:"left"`
	// Kept counts what was there before, by kind.
	Kept map[string]int `json:"kept_before"`
}

const (
	busyRounds = 3
	busyFor    = 2 * time.Second
	// livesPerCore is how many lives are under way at once for each core: enough that none
	// is idle while a life waits.
	livesPerCore = 4
	settleTime   = 20 * time.Second
	leftMost     = 60 // lines of what is left
)

var busyClients = []int{1, 4, 16}

// caches are what a server may hold for the next sandboxes, up to a bound, without its
// being a leak.
var caches = []leaktest.Cache{
	{Kind: leaktest.Descriptors, Part: "user:[]", Most: 64},     // namespaces of free uid ranges
	{Kind: leaktest.Descriptors, Part: "/sandpit.db", Most: 16}, // connections of the database's pool
	{Kind: leaktest.Descriptors, Part: "pipe:[]", Most: 64},     // of connections through gates
	{Kind: leaktest.Directories, Part: "/spare/", Most: 256},    // emptied layers, each seen by two ways
}

// throughput measures commands, then lives for so many seconds.
func (s *session) throughput(ctx context.Context, seconds int) (_ *Throughput, err error) {
	// Connections of our own, which can be closed before anybody counts descriptors.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 256, 256
	defer transport.CloseIdleConnections()
	o := &ours{client: client.New(s.server.url, s.server.token, client.Options{HTTP: &http.Client{Transport: transport}}), pid: s.us.pid}
	t := new(Throughput)
	if t.Exec, err = o.busy(ctx); err != nil {
		return nil, fmt.Errorf("commands: %w", err)
	}
	if seconds == 0 {
		return t, nil
	}
	t.Sustained, err = s.sustained(ctx, o, time.Duration(seconds)*time.Second, transport.CloseIdleConnections)
	if err != nil {
		return nil, fmt.Errorf("lives: %w", err)
	}
	return t, nil
}

// busy measures commands by the number of clients, the numbers in turn.
func (o *ours) busy(ctx context.Context) (_ []Busy, err error) {
	ids := make([]string, busyClients[len(busyClients)-1])
	defer func() { err = errors.Join(err, o.deleteAll(context.WithoutCancel(ctx), ids)) }()
	for i := range ids {
		if ids[i], err = o.ready(ctx, byArgv); err != nil {
			return nil, err
		}
	}
	waits := make([]series, len(busyClients))
	speeds := make([][]float64, len(busyClients))
	for range busyRounds {
		for i, clients := range busyClients {
			until := time.Now().Add(busyFor)
			times, took, err := relentless(ctx, clients, until, func(client int) error { return o.exec(ctx, ids[client], byArgv) })
			if err != nil {
				return nil, err
			}
			waits[i].join(times)
			speeds[i] = append(speeds[i], float64(len(times.ok))/took.Seconds())
		}
	}
	out := make([]Busy, len(busyClients))
	for i, clients := range busyClients {
		out[i] = Busy{Clients: clients, PerSecond: median(speeds[i]), Wait: waits[i].figures()}
	}
	return out, nil
}

// relentless has clients call fn again and again until the time is up, and gives how long
// all calls took together by the clock on the wall. The first failure ends it.
func relentless(ctx context.Context, clients int, until time.Time, fn func(client int) error) (series, time.Duration, error) {
	var mu sync.Mutex
	var all series
	began := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	for client := range clients {
		g.Go(func() error {
			var own series
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				all.join(own)
			}()
			for time.Now().Before(until) {
				if gctx.Err() != nil {
					return gctx.Err()
				}
				began := time.Now()
				err := fn(client)
				own.add(time.Since(began), err)
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return all, time.Since(began), err
}

// sustained lives lives for so long, and accounts for what they left.
func (s *session) sustained(ctx context.Context, o *ours, long time.Duration, quit func()) (*Sustained, error) {
	life := func(int) error {
		id, err := o.ready(ctx, byArgv)
		return errors.Join(err, o.deleteAll(ctx, []string{id}))
	}
	clients := livesPerCore * runtime.NumCPU()
	// What a server keeps once it has worked is there before.
	if _, _, err := relentless(ctx, clients, time.Now().Add(time.Second), life); err != nil {
		return nil, err
	}
	quit()
	var before leaktest.Snapshot
	var err error
	if s.o.Prewarmed == 0 {
		if before, err = atRest(ctx, s.server); err != nil {
			return nil, err
		}
	}
	memoryBefore, err := leaktest.PSS(o.pid)
	if err != nil {
		return nil, err
	}
	cpuBefore, err := leaktest.CPU(o.pid)
	if err != nil {
		return nil, err
	}
	times, took, err := relentless(ctx, clients, time.Now().Add(long), life)
	if err != nil {
		return nil, err
	}
	quit()
	var left []string
	if s.o.Prewarmed == 0 {
		if left, err = s.server.beyond(ctx, before); err != nil {
			return nil, err
		}
	}
	cpuAfter, err := leaktest.CPU(o.pid)
	if err != nil {
		return nil, err
	}
	memoryAfter, err := leaktest.PSS(o.pid)
	if err != nil {
		return nil, err
	}
	lives := float64(len(times.ok))
	if lives == 0 {
		return nil, errors.New("not one life ended in time")
	}
	r := &Sustained{
		Seconds: hundredths(took.Seconds()), Clients: clients, Life: times.figures(),
		PerSecond: hundredths(lives / took.Seconds()), PerCore: hundredths(lives / took.Seconds() / float64(runtime.NumCPU())),
		CPU:    hundredths((cpuAfter - cpuBefore).Seconds() * 1000 / lives),
		Before: hundredths(float64(memoryBefore) / (1 << 20)), After: hundredths(float64(memoryAfter) / (1 << 20)),
	}
	if s.o.Prewarmed > 0 {
		s.out.Missing["leaks"] = "with --prewarmed what lives left cannot be told from what waits for the next ones"
		return r, nil
	}
	r.Left, r.Kept = left[:min(len(left), leftMost)], map[string]int{}
	for _, k := range leaktest.Kinds() {
		r.Kept[string(k)] = before.Count(k)
	}
	return r, nil
}

// atRest looks at a server without sandboxes once all that sandboxes have is gone: of
// processes, mounts and the like it then has none, and of the rest what it always has.
func atRest(ctx context.Context, s *server) (leaktest.Snapshot, error) {
	const any = 1 << 20
	limit, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	left, now, err := leaktest.Settle(limit, s.scope(), leaktest.Snapshot{}, []leaktest.Cache{
		{Kind: leaktest.Descriptors, Most: any}, {Kind: leaktest.Directories, Most: any},
		{Kind: leaktest.Loops, Most: 1}, {Kind: leaktest.Cgroups, Most: 1},
	})
	if err == nil && len(left) > 0 && ctx.Err() == nil {
		err = fmt.Errorf("a server without sandboxes holds %d things that only sandboxes have, the first is %s", len(left), left[0])
	}
	return now, firstOf(ctx.Err(), err)
}

// beyond returns what is there that was not before, once nothing more goes away. It is not
// null.
func (s *server) beyond(ctx context.Context, before leaktest.Snapshot) ([]string, error) {
	limit, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	left, _, err := leaktest.Settle(limit, s.scope(), before, caches)
	return append([]string{}, left...), firstOf(ctx.Err(), err)
}

// hundredths rounds.
func hundredths(v float64) float64 { return math.Round(v*100) / 100 }

func (t *Throughput) rows(row func(name string, f *Figures)) {
	if t == nil {
		return
	}
	for _, b := range t.Exec {
		row(fmt.Sprintf("command, %d clients at once without a pause", b.Clients), b.Wait)
	}
	if t.Sustained != nil {
		row(fmt.Sprintf("create, command, delete, %d at once", t.Sustained.Clients), t.Sustained.Life)
	}
}

func (t *Throughput) lines(say func(format string, args ...any)) {
	if t == nil {
		return
	}
	for _, b := range t.Exec {
		if b.PerSecond != nil {
			say("%d clients: %.0f commands a second (median over rounds)", b.Clients, *b.PerSecond)
		}
	}
	if l := t.Sustained; l != nil {
		say("%.0f s of create, command and delete: %d of %d lives, %.1f a second, %.1f a second and core, %.2f ms of the server's processor time each; its memory went from %.1f to %.1f MB",
			l.Seconds, l.Life.OK, l.Life.N, l.PerSecond, l.PerCore, l.CPU, l.Before, l.After)
		if l.Left != nil && len(l.Left) == 0 {
			say("they left nothing")
		}
		for _, left := range l.Left {
			say("they LEFT %s", left)
		}
	}
}
