// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command testgate runs `go test` and holds its result to account: it prints
// progress by package, every failure whole, every skip with its reason, each figure
// that a test tells as an attribute, and it fails when more was skipped than a
// healthy host explains.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// maxSkips is how many tests may be skipped where CI is set, all packages
// together. A probe that breaks must not turn a suite into skips.
const maxSkips = 30

// event is a line of `go test -json`, see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
	Key     string
	Value   string
}

// key names a test.
type key struct{ pkg, test string }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testgate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	began := time.Now()
	var passed, failed int
	var skips, figures []string
	var broken []string
	output := map[key][]string{}
	sc := bufio.NewScanner(out)
	sc.Buffer(make([]byte, 1<<20), 64<<20)
	for sc.Scan() {
		var e event
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			fmt.Println(sc.Text()) // what is not of a test: a build's error
			continue
		}
		k := key{e.Package, e.Test}
		switch e.Action {
		case "output", "build-output":
			output[k] = append(output[k], e.Output)
			continue
		case "attr":
			figures = append(figures, e.Key+": "+e.Value)
			continue
		case "pass", "fail", "skip":
		default:
			continue
		}
		if e.Test == "" {
			fmt.Printf("%6.0fs  %-4s  %s (%.1fs)\n", time.Since(began).Seconds(), e.Action, e.Package, e.Elapsed)
			if e.Action == "fail" {
				broken = append(broken, e.Package)
				fmt.Print(strings.Join(output[k], ""))
			}
			delete(output, k)
			continue
		}
		switch e.Action {
		case "pass":
			passed++
		case "fail":
			failed++
			fmt.Print(strings.Join(output[k], ""))
		case "skip":
			skips = append(skips, e.Package+"."+e.Test+": "+reason(output[k]))
		}
		delete(output, k)
	}
	werr := cmd.Wait()
	for _, f := range figures {
		fmt.Println("figure:", f)
	}
	slices.Sort(skips)
	for _, s := range skips {
		fmt.Println("skipped:", s)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, len(skips))
	switch {
	case werr != nil || failed > 0:
		return fmt.Errorf("failed: %s", strings.Join(broken, " "))
	case passed == 0:
		return fmt.Errorf("no test ran")
	case len(skips) > maxSkips && os.Getenv("CI") != "":
		return fmt.Errorf("%d tests were skipped, at most %d may be", len(skips), maxSkips)
	}
	return sc.Err()
}

// reason finds what t.Skip said in a test's output.
func reason(lines []string) string {
	for _, l := range slices.Backward(lines) {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "---") && !strings.HasPrefix(l, "===") {
			return l
		}
	}
	return "no reason given"
}
