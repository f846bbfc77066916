// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"sandpit.dev/test/browser"
)

// Opened is how long a visit of the list of sandboxes took, from when its address was asked for.
type Opened struct {
	Paint  time.Duration // the first of the page's content was drawn
	Usable time.Duration // the first rows of the list were, from when on it takes clicks and keys
	Data   time.Duration // the answer that they are of had come whole
}

// opened is an expression for what a visit took, in milliseconds: the first paint with content, the first answer with
// sandboxes, the first rows.
const opened = `sandpitCosts.until(() => sandpitCosts.rows > 0 && performance.getEntriesByName('first-contentful-paint').length > 0).then(() => [
  performance.getEntriesByName('first-contentful-paint')[0].startTime,
  performance.getEntriesByType('resource').filter(e => e.name.includes('/v1/sandboxes?'))[0].responseEnd,
  sandpitCosts.rows,
])`

// OpenList visits the list of sandboxes, of which there is one at least, in a tab that is watched and signed in. A fresh visit
// finds nothing in the browser's cache.
func OpenList(tab context.Context, server string, fresh bool) (Opened, error) {
	if err := browser.Visit(tab, "about:blank"); err != nil {
		return Opened{}, err
	}
	if fresh {
		if _, err := chromedp.Call(tab, network.ClearBrowserCache, cdp.Empty{}); err != nil {
			return Opened{}, err
		}
	}
	limit, cancel := context.WithTimeout(tab, bound)
	defer cancel()
	if err := browser.Visit(limit, server+"/console/sandboxes"); err != nil {
		return Opened{}, err
	}
	at, err := browser.Await[[]float64](limit, opened)
	if err == nil && len(at) != 3 {
		err = errors.New("the page did not say when it was drawn")
	}
	if err != nil {
		return Opened{}, fmt.Errorf("the list of sandboxes: %w", err)
	}
	return Opened{Paint: milliseconds(at[0]), Data: milliseconds(at[1]), Usable: milliseconds(at[2])}, nil
}

// scrolls goes through a page from its top to its end, a little more than what is in view with each frame, and then to places far
// apart, as who drags the bar at its side does.
const scrolls = `(async () => {
  const end = () => document.documentElement.scrollHeight - innerHeight;
  scrollTo(0, 0);
  await sandpitCosts.frames(2);
  await sandpitCosts.tasks();
  let frames = 0;
  for (let was = -1; scrollY !== was; frames++) { was = scrollY; scrollBy(0, innerHeight * 1.1); await sandpitCosts.frames(1); }
  for (let i = 1; i <= 60; i++, frames++) { scrollTo(0, end() * (i * 37 % 60) / 60); await sandpitCosts.frames(1); }
  return [frames, ...await sandpitCosts.tasks()];
})()`

// Scroll goes through the page of a tab that is watched, once from end to end and then to and fro, and returns in how many
// frames, and the tasks of that time.
func Scroll(tab context.Context) (frames int, t Tasks, err error) {
	limit, cancel := context.WithTimeout(tab, bound)
	defer cancel()
	all, err := browser.Await[[]float64](limit, scrolls)
	if err == nil && len(all) == 0 {
		err = errors.New("the page did not say how it scrolled")
	}
	if err != nil {
		return 0, t, fmt.Errorf("scrolling: %w", err)
	}
	t.add(all[1:])
	return int(all[0]), t, nil
}
