// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sandpit.dev/test/kernels/told"
)

// table has a row for each check and a column for each kernel.
type table struct {
	kernels []string
	checks  []string
	cells   map[[2]string]cell // by kernel and check
	errs    []string
}

type cell struct {
	told.Result
	ran bool
}

func verdict(ok bool) string {
	if ok {
		return "pass"
	}
	return "FAIL"
}

// add adds what came of the plan on a kernel. What is missing did not run.
func (t *table) add(k kernel, plan told.Plan, results []told.Result, err error) {
	if t.cells == nil {
		t.cells = make(map[[2]string]cell)
		t.checks = append(t.checks, plan.Checks...)
		for _, test := range plan.Tests {
			t.checks = append(t.checks, test.Name)
		}
	}
	t.kernels = append(t.kernels, k.release)
	for _, r := range results {
		t.cells[[2]string{k.release, r.Check}] = cell{r, true}
	}
	if err != nil {
		t.errs = append(t.errs, "Linux "+k.release+": "+err.Error())
	}
}

func (t *table) passed() bool {
	for _, k := range t.kernels {
		for _, check := range t.checks {
			if !t.cells[[2]string{k, check}].OK {
				return false
			}
		}
	}
	return len(t.errs) == 0
}

func (t *table) write(w io.Writer) {
	for _, k := range t.kernels {
		for _, check := range t.checks {
			if c := t.cells[[2]string{k, check}]; c.ran && !c.OK {
				fmt.Fprintf(w, "\n--- %s on Linux %s\n%s\n", check, k, strings.TrimSpace(c.Detail))
			}
		}
	}
	fmt.Fprintln(w)
	tab := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(tab, "\t%s\n", strings.Join(t.kernels, "\t"))
	for _, check := range t.checks {
		row := check
		for _, k := range t.kernels {
			switch c := t.cells[[2]string{k, check}]; {
			case !c.ran:
				row += "\tdid not run"
			case c.OK && c.Detail != "":
				row += fmt.Sprintf("\tpass %.0fs (%s)", c.Seconds, firstLine(c.Detail))
			default:
				row += fmt.Sprintf("\t%s %.0fs", verdict(c.OK), c.Seconds)
			}
		}
		fmt.Fprintln(tab, row)
	}
	_ = tab.Flush() // w is a buffer or the terminal
	for _, err := range t.errs {
		fmt.Fprintln(w, err)
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
