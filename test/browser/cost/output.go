// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/test/browser"
)

// Wrote is what a Writer prints last, to both streams: nobody can tell which of them comes later.
const Wrote = "all-of-it-is-written"

// Writer returns a command, argv, that writes 10 MB a second for so many seconds, a thousand lines of 100 characters a hundred times a
// second, to both streams by turns, and Wrote at its end.
func Writer(seconds int) []string {
	return []string{"python3", "-c", fmt.Sprintf(`
import sys, time
began = time.monotonic()
for i in range(%d):
    to = (sys.stdout, sys.stderr)[i %% 2]
    to.write("".join("line %%09d %%s\n" %% (i * 1000 + j, "x" * 84) for j in range(1000)))
    to.flush()
    time.sleep(max(0, began + i / 100 - time.monotonic()))
for to in (sys.stdout, sys.stderr):
    to.write("all-of-it-" + "is-written\n")
    to.flush()
`, seconds*100)}
}

// Output is what following a command that writes without a pause costs its page.
type Output struct {
	Tasks
	Before float64 `json:"heap_before"` // bytes that the page's scripts held before, without garbage
	Most   float64 `json:"heap_most"`   // that they took at most meanwhile, garbage included
	After  float64 `json:"heap_after"`  // that they held at the end, without garbage
	Looks  int     `json:"looks"`       // how often that was looked at
}

// FollowOutput opens the page of a process of a sandbox in a tab that is watched and signed in, and looks at it until the end of
// what a Writer writes is shown. Begin starts the process, and returns its id.
func FollowOutput(tab context.Context, server, sandbox string, begin func() (process string, err error)) (*Output, error) {
	at := server + "/console/sandboxes/" + sandbox + "/processes"
	if err := browser.Visit(tab, at); err != nil {
		return nil, err
	}
	if err := Until(tab, "document.querySelector('section[aria-label=Processes]')"); err != nil {
		return nil, err
	}
	before, err := Heap(tab)
	if err != nil {
		return nil, err
	}
	process, err := begin()
	if err != nil {
		return nil, err
	}
	if err := browser.Visit(tab, at+"?process="+process); err != nil {
		return nil, err
	}
	if err := Until(tab, "/line [0-9]{9}/.test(document.querySelector('.log')?.textContent ?? '')"); err != nil {
		return nil, err
	}
	o := &Output{Before: before}
	for deadline := time.Now().Add(bound); ; o.Looks++ {
		used, err := Used(tab)
		if err != nil {
			return nil, err
		}
		o.Most = max(o.Most, used)
		ended, err := browser.Await[bool](tab, "new Promise(d => setTimeout(() => d((document.querySelector('.output > p.faint')?.textContent ?? '').startsWith('exit ')), 100))")
		if err != nil {
			return nil, err
		}
		if ended {
			break
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the end of what process %s wrote is not shown after %v", process, bound)
		}
	}
	if o.Tasks, err = TasksOf(tab); err != nil {
		return nil, err
	}
	if err := Until(tab, "document.querySelector('.log').textContent.includes('"+Wrote+"')"); err != nil {
		return nil, err
	}
	o.After, err = Heap(tab)
	return o, err
}
