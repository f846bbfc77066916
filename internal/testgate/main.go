// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command testgate runs `go test` and holds its result to account: it prints
// progress by package, every failure whole, every skip with its reason, each figure
// that a test reports as an attribute, and it fails when more was skipped than a
// healthy host explains.
//
// A test that fails is run once more, by itself: on a machine that others use, too, their
// load can break a bound among some thousands of tests. One that passes then is
// named as unsteady, which is a bug to mend, and fails nothing. That is not for data races,
// crashes and hangs, nor where more than a few tests failed; see again.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// maxSkips is how many tests may be skipped where CI is set, all packages
// together. A probe that breaks must not turn a suite into skips.
const maxSkips = 30

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testgate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	t, err := goTest(args)
	if err != nil {
		return err
	}
	var unsteady []string
	steadied := false // every test that failed passed by itself
	if t.err != nil {
		unsteady, steadied = again(args, t)
	}
	for _, f := range t.figures {
		fmt.Println("figure:", f)
	}
	slices.Sort(t.skips)
	for _, s := range t.skips {
		fmt.Println("skipped:", s)
	}
	for _, u := range unsteady {
		fmt.Println("unsteady:", u)
	}
	passed, failed := t.leaves(), len(t.innermost())
	if steadied {
		fmt.Printf("%d passed, %d of them unsteady", passed+failed, len(unsteady))
	} else {
		fmt.Printf("%d passed, %d failed", passed, failed)
	}
	fmt.Printf(", %d skipped, %d of what a driver lacks\n", len(t.skips), t.lacking)
	switch {
	case t.err != nil && !steadied:
		return fmt.Errorf("failed: %s", strings.Join(t.broken, " "))
	case passed == 0:
		return errors.New("no test ran")
	case len(t.skips) > maxSkips && os.Getenv("CI") != "":
		return fmt.Errorf("%d tests were skipped, at most %d may be", len(t.skips), maxSkips)
	}
	return nil
}
