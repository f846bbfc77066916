// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
)

// allocationBounds are of what the server allocates for an operation, with what it does behind the
// answer. A busy machine adds a tenth.
var allocationBounds = []bound{
	{"create/allocations", 1275, 1400, "a fifth is the two commits, a third the driver; with what the project used, its quotas, two rows of the audit log, two events of the project with the sandbox in them, and its account"},
	{"create/allocated-bytes", 97e3, 110e3, "what each object weighs; the sandbox twice as JSON"},
	{"exec/allocations", 470, 520, "a quarter is the two commits, with what the project used and the row of the audit log; a quarter the request"},
	{"exec/allocated-bytes", 29e3, 36e3, "what each object weighs"},
	{"delete/allocations", 1250, 1400, "with the layer and its log that are emptied behind the answer, what the sandbox used, who ended its processes, and the events of the project that tell of it"},
	{"delete/allocated-bytes", 57e3, 66e3, "what each object weighs; the sandbox as JSON in each event"},
}

// allocationTries is how often allocations are counted where they exceed their bounds: what a busy machine
// does is only ever added.
const allocationTries = 6

// holdAllocations has a server tell what it allocated, for which it has a door: its metrics.
func holdAllocations(t *testing.T, s *server, o *ours) {
	least := map[string]float64{}
	for range allocationTries {
		got := map[string]float64{}
		if err := allocations(t.Context(), s, o, got); err != nil {
			t.Fatal(err)
		}
		for name, now := range got {
			if before, ok := least[name]; !ok || now < before {
				least[name] = now
			}
		}
		if !exceeds(allocationBounds, least) {
			break
		}
	}
	hold(t, allocationBounds, least)
}

// socketBounds are of what the server holds for an event socket of Daytona's wire.
var socketBounds = []bound{
	{"event-socket/goroutines", 2, 2.9, "one that reads and one that follows; the handler has returned"},
	{"event-socket/stack-bytes", 12e3, 22e3, "of these two; that of a handler alone is 16 KB"},
}

// holdSockets counts what the server tells by its metrics: what is resident depends on when it collects.
func holdSockets(t *testing.T, s *server) {
	now := func() [2]float64 {
		t.Helper()
		m, err := readMetrics(t.Context(), s, "go_goroutines", "go_memstats_stack_inuse_bytes")
		if err != nil {
			t.Fatal(err)
		}
		return [2]float64(m)
	}
	before := now()
	closeAll, err := s.openSockets(t.Context(), streams)
	defer func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	after := now()
	hold(t, socketBounds, map[string]float64{
		"event-socket/goroutines":  (after[0] - before[0]) / streams,
		"event-socket/stack-bytes": (after[1] - before[1]) / streams,
	})
}

// guardGroups is how many groups of operations are counted, of which the median counts. A buffer that
// is made anew after a collection may be a megabyte, which is more than all else that a group
// allocates: a collection comes in few of them.
const guardGroups = 5

// allocations measures the mean of each operation in the median group.
func allocations(ctx context.Context, s *server, o *ours, got map[string]float64) error {
	idle, err := allocated(ctx, s, 0, nil) // that is, by the asking and by the time
	if err != nil {
		return err
	}
	var ids []string
	turn := func() string { // each sandbox in its turn
		ids = append(ids[1:], ids[0])
		return ids[0]
	}
	command := func() error { return o.exec(ctx, turn(), byArgv) }
	for _, step := range []struct {
		operation string
		times     int
		run       func() error
	}{
		{"create", guardLives, func() error {
			box, _, err := o.client.Create(ctx, v1.CreateSandbox{})
			if err == nil {
				ids = append(ids, box.ID)
			}
			return err
		}},
		{"", guardLives, command}, // the first in each has more to do
		{"exec", guardLives * guardExecs, command},
		{"delete", guardLives, func() error { return o.client.Delete(ctx, turn()) }},
	} {
		n := step.times / guardGroups
		group, err := allocated(ctx, s, n, step.run)
		if err != nil {
			return err
		}
		if step.operation != "" {
			got[step.operation+"/allocations"] = (group.objects - idle.objects) / float64(n)
			got[step.operation+"/allocated-bytes"] = (group.bytes - idle.bytes) / float64(n)
		}
	}
	return nil
}

// allocated returns what the server allocates in the median of the groups of so many operations each.
func allocated(ctx context.Context, s *server, times int, operation func() error) (memory, error) {
	var objects, bytes []float64
	before, err := readMemory(ctx, s)
	if err != nil {
		return memory{}, err
	}
	for range guardGroups {
		for range times {
			if err := operation(); err != nil {
				return memory{}, err
			}
		}
		if err := sleep(ctx, guardLongest); err != nil { // what is done behind the last answer is done
			return memory{}, err
		}
		after, err := readMemory(ctx, s)
		if err != nil {
			return memory{}, err
		}
		objects, bytes = append(objects, after.objects-before.objects), append(bytes, after.bytes-before.bytes)
		before = after
	}
	return memory{*median(objects), *median(bytes)}, nil
}

// memory is what a server allocated since it began.
type memory struct{ objects, bytes float64 }

func readMemory(ctx context.Context, s *server) (memory, error) {
	m, err := readMetrics(ctx, s, "go_memstats_mallocs_total", "go_memstats_alloc_bytes_total")
	if err != nil {
		return memory{}, err
	}
	return memory{m[0], m[1]}, nil
}

// readMetrics returns figures that the server's metrics have, by their names.
func readMetrics(ctx context.Context, s *server, names ...string) ([]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	out, found := make([]float64, len(names)), 0
	sc := bufio.NewScanner(resp.Body)
	for sc.Scan() {
		name, value, _ := strings.Cut(sc.Text(), " ")
		if at := slices.Index(names, name); at >= 0 {
			if out[at], err = strconv.ParseFloat(value, 64); err != nil {
				return nil, err
			}
			found++
		}
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if found != len(names) {
		return nil, fmt.Errorf("the metrics, answered with %s, have not all of %s", resp.Status, strings.Join(names, ", "))
	}
	return out, nil
}
