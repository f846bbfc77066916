// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxAgain is how many tests are run once more. More than that fail for a reason.
const maxAgain = 3

// again runs what failed once more, each test by itself, and says of each what became of it.
// ok reports whether all of them passed then; otherwise the run failed.
func again(args []string, t *tally) (unsteady []string, ok bool) {
	failed := t.innermost()
	if t.crashed || len(failed) == 0 || len(failed) > maxAgain {
		return nil, false
	}
	flags := args // the packages stand at the end
	for len(flags) > 0 && strings.HasPrefix(flags[len(flags)-1], "./") {
		flags = flags[:len(flags)-1]
	}
	ok = true
	for _, k := range failed {
		fmt.Printf("once more, by itself: %s\n", k)
		r, err := goTest(append(slices.Clone(flags), "-count=1", "-run", pattern(k.test), k.pkg))
		if err != nil || r.err != nil || len(r.passed) == 0 || len(r.skips)+r.lacking > 0 {
			ok = false
			fmt.Printf("failed again: %s\n", k)
			continue
		}
		unsteady = append(unsteady, k.String()+": it failed once and passed by itself")
	}
	return unsteady, ok
}

// innermost lists the tests that failed, without those that failed by a subtest of theirs.
func (t *tally) innermost() []key {
	parents := map[key]bool{}
	for k := range t.failed {
		for p, more := k.parent(); more; p, more = p.parent() {
			parents[p] = true
		}
	}
	var all []key
	for k := range t.failed {
		if !parents[k] {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b key) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// pattern is what `go test -run` finds one test by.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}
