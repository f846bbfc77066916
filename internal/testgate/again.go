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

// again runs what failed once more, each test by itself. It gives the tests if all of them
// passed; none means that the run failed.
func again(args []string, t *tally) (unsteady []string) {
	failed := t.innermost()
	if t.crashed || len(failed) == 0 || len(failed) > maxAgain {
		return nil
	}
	flags := args // the packages stand at the end
	for len(flags) > 0 && strings.HasPrefix(flags[len(flags)-1], "./") {
		flags = flags[:len(flags)-1]
	}
	for _, k := range failed {
		fmt.Printf("once more, by itself: %s\n", k)
		r, err := goTest(append(slices.Clone(flags), "-count=1", "-run", pattern(k.test), k.pkg))
		if err != nil || r.err != nil || r.passed == 0 || len(r.skips) > 0 {
			return nil
		}
		unsteady = append(unsteady, k.String()+": it failed once and passed by itself")
	}
	return unsteady
}

// innermost lists the tests that failed, without those that failed by a subtest of theirs.
func (t *tally) innermost() []key {
	var all []key
	for k := range t.failed {
		inner := true
		for other := range t.failed {
			inner = inner && !(other.pkg == k.pkg && strings.HasPrefix(other.test, k.test+"/"))
		}
		if inner {
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
