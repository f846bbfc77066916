// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
)

// allocationBounds are means of what the server allocates, with what it does behind the answer. A
// busy machine adds a tenth.
var allocationBounds = []bound{
	{"create/allocations", 630, 950, "a seventh is the two commits, a quarter the request"},
	{"create/allocated-bytes", 50e3, 90e3, "what each object weighs"},
	{"exec/allocations", 285, 430, "a quarter is the two commits, a quarter the request"},
	{"exec/allocated-bytes", 21e3, 32e3, "what each object weighs"},
	{"delete/allocations", 620, 930, "with the layer that is emptied behind the answer"},
	{"delete/allocated-bytes", 21e3, 36e3, "what each object weighs"},
}

// holdAllocations has a server tell what it allocated, for which it has a door: its metrics.
func holdAllocations(t *testing.T, s *server, o *ours) {
	least := map[string]float64{}
	for range guardTries { // a buffer that is made anew after a collection may be a megabyte: it only ever adds
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

// allocations measures means.
func allocations(ctx context.Context, s *server, o *ours, got map[string]float64) error {
	asking, err := askingCosts(ctx, s)
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
		before, err := readMemory(ctx, s)
		if err != nil {
			return err
		}
		for range step.times {
			if err := step.run(); err != nil {
				return err
			}
		}
		if err := sleep(ctx, guardLongest); err != nil { // what is done behind the last answer is done
			return err
		}
		after, err := readMemory(ctx, s)
		if err != nil {
			return err
		}
		if step.operation != "" {
			got[step.operation+"/allocations"] = (after.objects - before.objects - asking.objects) / float64(step.times)
			got[step.operation+"/allocated-bytes"] = (after.bytes - before.bytes - asking.bytes) / float64(step.times)
		}
	}
	return nil
}

// askingCosts gives what a server allocates to tell what it allocated, when it does nothing else.
func askingCosts(ctx context.Context, s *server) (least memory, err error) {
	if err := sleep(ctx, guardLongest); err != nil {
		return memory{}, err
	}
	var last memory
	for i := range 8 {
		now, err := readMemory(ctx, s)
		if err != nil {
			return memory{}, err
		}
		if cost := (memory{now.objects - last.objects, now.bytes - last.bytes}); i == 1 || i > 1 && cost.objects < least.objects {
			least = cost
		}
		last = now
	}
	return least, nil
}

// memory is what a server allocated since it began.
type memory struct{ objects, bytes float64 }

func readMemory(ctx context.Context, s *server) (memory, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return memory{}, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return memory{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	var m memory
	found := map[string]*float64{"go_memstats_mallocs_total": &m.objects, "go_memstats_alloc_bytes_total": &m.bytes}
	sc := bufio.NewScanner(resp.Body)
	for sc.Scan() {
		name, value, _ := strings.Cut(sc.Text(), " ")
		if into := found[name]; into != nil {
			if *into, err = strconv.ParseFloat(value, 64); err != nil {
				return memory{}, err
			}
			delete(found, name)
		}
	}
	if err := sc.Err(); err != nil {
		return memory{}, err
	}
	if len(found) > 0 {
		return memory{}, fmt.Errorf("the metrics, answered with %s, do not tell what was allocated", resp.Status)
	}
	return m, nil
}
