// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"sandpit.dev/test/browser"
)

// Heap returns what the scripts of a tab's page hold, in bytes, without what is garbage.
func Heap(tab context.Context) (float64, error) {
	if _, err := chromedp.Call(tab, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		return 0, err
	}
	return Used(tab)
}

// Used returns what the scripts of a tab's page take now, in bytes, garbage included.
func Used(tab context.Context) (float64, error) {
	use, err := chromedp.Call(tab, runtime.GetHeapUsage, cdp.Empty{})
	if err != nil {
		return 0, err
	}
	return use.UsedSize, nil
}

// Elements returns how many a tab's page has.
func Elements(tab context.Context) (int, error) {
	return browser.Await[int](tab, "document.querySelectorAll('*').length")
}

// Tasks are those that kept a page from answering for 50 ms or more, at a stretch.
type Tasks struct {
	Long    int     `json:"long"`       // how many there were
	Longest float64 `json:"longest_ms"` // 0: there was none
}

func (t *Tasks) add(all []float64) {
	t.Long += len(all)
	for _, one := range all {
		t.Longest = max(t.Longest, one)
	}
}

// TasksOf returns those of the page of a tab that is watched, since they were asked for last.
func TasksOf(tab context.Context) (Tasks, error) {
	var t Tasks
	all, err := browser.Await[[]float64](tab, "sandpitCosts.tasks()")
	t.add(all)
	return t, err
}

// milliseconds are a browser's, as a duration.
func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
