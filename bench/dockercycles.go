// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"sandpit.dev/client"
	"sandpit.dev/internal/leaktest"
)

// DockerCycles is sandboxes on an Engine that are made, run a command and are deleted, and what they leave.
type DockerCycles struct {
	Ways []Cycled `json:"ways"`
}

// Cycled is one way to reach agents.
type Cycled struct {
	Who       string   `json:"who"`
	Life      *Figures `json:"life"` // create, command, delete; n is lives
	PerSecond float64  `json:"lives_per_second"`
	// Left is what is there once nothing more goes away, and was not before: containers, images and volumes of the Engine,
	// processes, mounts, cgroups, namespaces, sockets, descriptors and directories of the server's, goroutines of the server. It is not null.
	Left   []string `json:"left"`
	Engine Held     `json:"engine"` // by all of the lives
}

const (
	cyclers      = 4 // lives under way at once
	looksForLeft = 10
	lookAgain    = 100 * time.Millisecond
)

func (s *session) dockerCycles(ctx context.Context, e *engine, n int) (*DockerCycles, error) {
	if n == 0 {
		return nil, nil
	}
	r := new(DockerCycles)
	for _, way := range []struct {
		who, name string
		stream    bool
		n         int
	}{{Sockets, "cycles", false, n}, {Streamed, "cycles-stream", true, max(1, n/5)}} {
		c, err := s.cycled(ctx, e, way.name, way.stream, way.n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way.who, err)
		}
		c.Who = way.who
		r.Ways = append(r.Ways, c)
	}
	return r, nil
}

func (s *session) cycled(ctx context.Context, e *engine, name string, stream bool, n int) (c Cycled, err error) {
	us, err := s.startDockerServer(ctx, e, name, 0, stream)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, us.close(ctx)) }()
	// Connections of our own, which can be closed before anybody counts.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = cyclers
	defer transport.CloseIdleConnections()
	o := &ours{client: client.New(us.server.url, us.server.token, client.Options{HTTP: &http.Client{Transport: transport}}), pid: us.pid}
	// What a server and an Engine keep once they have worked is there before.
	if _, _, err := o.cycles(ctx, cyclers); err != nil {
		return c, err
	}
	transport.CloseIdleConnections()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	before, err := us.residue(ctx, e)
	if err != nil {
		return c, err
	}
	var life series
	var took time.Duration
	c.Engine, err = e.holding(ctx, func() (err error) {
		life, took, err = o.cycles(ctx, n)
		transport.CloseIdleConnections()
		return err
	})
	if err != nil {
		return c, err
	}
	c.Life, c.PerSecond = life.figures(), hundredths(float64(n)/took.Seconds())
	c.Left, err = us.leftOf(ctx, e, before)
	return c, err
}

// cycles lives n lives, several at a time.
func (o *ours) cycles(ctx context.Context, n int) (series, time.Duration, error) {
	var left atomic.Int64
	left.Store(int64(n))
	times := make([]series, cyclers)
	began := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	for i := range cyclers {
		g.Go(func() error {
			for left.Add(-1) >= 0 {
				took, err := timedOnce(func() error {
					id, err := o.ready(gctx, byArgv)
					return errors.Join(err, o.deleteAll(gctx, []string{id}))
				})
				times[i].add(took, err)
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	var all series
	for _, t := range times {
		all.join(t)
	}
	return all, time.Since(began), err
}

// residue is what there is of a server without sandboxes.
type residue struct {
	host       leaktest.Snapshot
	engine     map[string]bool
	goroutines int
}

func (d *dockerServer) residue(ctx context.Context, e *engine) (r residue, err error) {
	if err := sleep(ctx, e.rest); err != nil {
		return r, err
	}
	if r.host, err = leaktest.Take(d.server.scope()); err != nil {
		return r, err
	}
	if r.engine, err = e.things(ctx); err != nil {
		return r, err
	}
	r.goroutines, err = d.goroutines(ctx)
	return r, err
}

// leftOf waits until nothing is there beyond what was before, and returns what does not go away. It is not null.
func (d *dockerServer) leftOf(ctx context.Context, e *engine, before residue) (left []string, err error) {
	host, err := d.server.beyond(ctx, before.host)
	if err != nil {
		return nil, err
	}
	least := math.MaxInt // what is there for a moment, to write or to ask something, is in no look but one
	for range looksForLeft {
		now, err := d.residue(ctx, e)
		if err != nil {
			return nil, err
		}
		left = slices.Clone(host)
		for _, thing := range slices.Sorted(maps.Keys(now.engine)) {
			if !before.engine[thing] {
				left = append(left, thing)
			}
		}
		if least = min(least, now.goroutines); least > before.goroutines {
			left = append(left, fmt.Sprintf("goroutines of the server: %d, %d before", least, before.goroutines))
		}
		if len(left) == 0 {
			break
		}
		if err := sleep(ctx, lookAgain); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// things are all containers, images and volumes of the Engine.
func (e *engine) things(ctx context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	var containers, images []struct{ ID string }
	var volumes struct{ Volumes []struct{ Name string } }
	for path, into := range map[string]any{"/containers/json?all=1": &containers, "/images/json?all=1": &images, "/volumes": &volumes} {
		if err := e.call(ctx, http.MethodGet, path, nil, into); err != nil {
			return nil, err
		}
	}
	for _, c := range containers {
		all["container "+c.ID] = true
	}
	for _, i := range images {
		all["image "+i.ID] = true
	}
	for _, v := range volumes.Volumes {
		all["volume "+v.Name] = true
	}
	return all, nil
}

// goroutines is how many the server has, by its own metrics.
func (d *dockerServer) goroutines(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.server.url+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+d.server.token)
	req.Close = true // no connection stays for the next look
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	sc := bufio.NewScanner(resp.Body)
	for sc.Scan() {
		if value, ok := strings.CutPrefix(sc.Text(), "go_goroutines "); ok {
			return strconv.Atoi(value)
		}
	}
	return 0, errors.Join(sc.Err(), fmt.Errorf("the metrics, answered with %s, do not tell of goroutines", resp.Status))
}

func (d *DockerCycles) rows(row func(name string, f *Figures)) {
	if d == nil {
		return
	}
	for _, c := range d.Ways {
		row(fmt.Sprintf("create, command, delete, %d at once, %s", cyclers, c.Who), c.Life)
	}
}

func (d *DockerCycles) lines(say func(format string, args ...any)) {
	if d == nil {
		return
	}
	for _, c := range d.Ways {
		say("%d of %d lives, %s, %.1f a second; the Engine has %.1f MB (RSS) and %d descriptors before, %.1f MB and %d after",
			c.Life.OK, c.Life.N, c.Who, c.PerSecond, c.Engine.MemoryBefore, c.Engine.DescriptorsBefore, c.Engine.MemoryAfter, c.Engine.DescriptorsAfter)
		if len(c.Left) == 0 {
			say("they left nothing")
		}
		for _, left := range c.Left {
			say("they LEFT %s", left)
		}
	}
}
