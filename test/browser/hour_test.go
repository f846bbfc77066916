// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/test/browser"
)

// howLong is how long the hour is, which SANDPIT_SOAK_TIME changes.
func howLong(t *testing.T) time.Duration {
	t.Helper()
	if os.Getenv("SANDPIT_SOAK") != "1" {
		t.Skip("set SANDPIT_SOAK=1 to look at pages for an hour; SANDPIT_SOAK_TIME=5m makes it 5 minutes")
	}
	text := os.Getenv("SANDPIT_SOAK_TIME")
	if text == "" {
		return time.Hour
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Minute {
		t.Fatalf("SANDPIT_SOAK_TIME %q is no duration of a minute or more, such as 5m", text)
	}
	return d
}

// TestAnHourOfEventsSoak has the list of sandboxes, the overview of one and its activity open while the server tells of 50 events a
// second, and of commands: what the pages' scripts hold does not grow.
func TestAnHourOfEventsSoak(t *testing.T) {
	long := howLong(t)
	p := needBrowser(t)
	// What the browser compiles grows for a quarter of an hour, and is not the pages'.
	p.Flags["js-flags"] = "--jitless"
	s := serve(t, "")
	const boxes, rate, most = 10, 50, 1 << 20
	s.do(t, "create", "--name", "shop")
	for i := range boxes {
		s.do(t, "create", "--name", fmt.Sprintf("one-%d", i), "--idle-timeout", "0")
	}
	one := signed(t, p, s.url, s.token)
	if err := browser.Visit(one.tab, "about:blank"); err != nil {
		t.Fatal(err)
	}
	// Nobody hears of these tabs' requests: the browser would keep all of them for that.
	names := []string{"the list", "the overview", "the activity"}
	pages := make([]*person, len(names))
	for k, path := range []string{"", "/shop", "/shop/activity"} {
		tab, done, err := browser.Another(one.tab, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(done)
		pages[k] = &person{t: t, tab: tab, complaints: new(complaints)}
		if err := browser.Visit(tab, s.url+"/console/sandboxes"+path); err != nil {
			t.Fatal(err)
		}
	}
	pages[0].until("all are there", "document.querySelector('.filters [role=status]')?.innerText.endsWith(' of %d')", boxes+1)
	for _, one := range pages[1:] {
		one.until("it runs", "document.querySelector('.title .state.running')")
	}

	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	c := client.New(s.url, s.token, client.Options{})
	var changes, commands, lives atomic.Int64
	repeat := func(each time.Duration, count *atomic.Int64, do func(i int64) error) {
		all.Go(func() {
			every := time.NewTicker(each)
			defer every.Stop()
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-every.C:
					if err := do(count.Add(1)); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	const writers = 5 // one that waits for a commit holds up no other
	for range writers {
		repeat(writers*time.Second/rate, &changes, func(i int64) error {
			_, err := c.Update(ctx, fmt.Sprintf("one-%d", i%boxes), v1.UpdateSandbox{Metadata: map[string]string{"n": fmt.Sprint(i)}})
			return err
		})
	}
	repeat(time.Second/5, &commands, func(i int64) error {
		_, err := c.Exec(ctx, "shop", v1.Exec{Command: new(fmt.Sprintf("echo %d > file", i))})
		return err
	})
	repeat(5*time.Second, &lives, func(int64) error {
		box, _, err := c.Create(ctx, v1.CreateSandbox{})
		if err != nil {
			return err
		}
		return c.Delete(context.WithoutCancel(ctx), box.ID)
	})

	const samples = 60
	began, every := time.Now(), time.NewTicker(long/samples)
	defer every.Stop()
	held := make([][]point, len(pages))
	for range samples {
		<-every.C
		line := ""
		for k, one := range pages {
			at := point{time.Since(began).Seconds(), one.heap()}
			held[k] = append(held[k], at)
			line += fmt.Sprintf("  %.2f MB in %d elements", at.y/1e6, one.nodes())
		}
		t.Logf("%4.0f s, %6d changes:%s", time.Since(began).Seconds(), changes.Load(), line)
	}
	took := time.Since(began)
	stop()
	all.Wait()
	t.Logf("%.1f changes, %.1f commands and %.1f new sandboxes a second, for %v", float64(changes.Load())/took.Seconds(), float64(commands.Load())/took.Seconds(), float64(lives.Load())/took.Seconds(), took.Round(time.Second))
	// What came last is shown: the page heard of it after all that.
	s.do(t, "update", "one-0", "--label", "n=the-last")
	pages[0].until("the last change is shown", "[...document.querySelectorAll('.filters option')].some(o => o.value === 'n=the-last')")
	for k, name := range names {
		slope := slopeOf(held[k][samples/5:]) // by then each page has read and drawn what it does
		grown := slope * took.Seconds()
		t.Logf("%s: %+.2f kB a minute, %+.1f kB in this time", name, slope*60/1e3, grown/1e3)
		if grown > most {
			t.Errorf("%s grows: %.0f bytes in %v, at most %d", name, grown, took.Round(time.Second), most)
		}
	}
}

type point struct{ x, y float64 }

// slopeOf is that of the line which is nearest to points, by least squares.
func slopeOf(all []point) float64 {
	var x, y, xx, xy float64
	n := float64(len(all))
	for _, p := range all {
		x += p.x
		y += p.y
	}
	x, y = x/n, y/n
	for _, p := range all {
		xx += (p.x - x) * (p.x - x)
		xy += (p.x - x) * (p.y - y)
	}
	return xy / xx
}
