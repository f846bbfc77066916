// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkEventTo1000Subscribers is the time from before a change of a sandbox's labels until a subscriber has read its
// event, over HTTP, with 1,000 of them in this process: the median, the 99th of 100 of all, and that of the slowest.
func BenchmarkEventTo1000Subscribers(b *testing.B) {
	const subscribers = 1000
	h := open(b)
	h.create()
	want[any](h, 201, "POST", "/v1/sandboxes", object{"key": "work"})
	ctx, cancel := context.WithCancel(b.Context())
	came, ended := make(chan time.Time, subscribers), make(chan struct{}, subscribers)
	begun := make(chan struct{}, subscribers)
	many := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: subscribers}}
	for range subscribers {
		go func() {
			defer func() { ended <- struct{}{} }()
			r, _ := http.NewRequestWithContext(ctx, "GET", h.url+"/v1/events?type=sandbox.updated", nil)
			r.Header.Set("Authorization", "Bearer "+h.token)
			resp, err := many.Do(r)
			if err != nil {
				return
			}
			defer resp.Body.Close()
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				switch {
				case lines.Text() == "event: begun":
					begun <- struct{}{}
				case strings.HasPrefix(lines.Text(), `data: {"id"`) && strings.Contains(lines.Text(), "sandbox.updated"):
					came <- time.Now()
				}
			}
		}()
	}
	for range subscribers {
		<-begun
	}
	var all, slowest []time.Duration
	for b.Loop() {
		from := time.Now()
		want[any](h, 200, "PATCH", "/v1/sandboxes/work", object{"metadata": object{"at": from.String()}})
		var most time.Duration
		for range subscribers {
			d := (<-came).Sub(from)
			all, most = append(all, d), max(most, d)
		}
		slowest = append(slowest, most)
	}
	cancel()
	for range subscribers {
		<-ended
	}
	slices.Sort(all)
	slices.Sort(slowest)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(slowest[len(slowest)/2].Microseconds())/1000, "slowest-p50-ms")
}
