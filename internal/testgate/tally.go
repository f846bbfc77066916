// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

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

// key names a test; without one, a package.
type key struct{ pkg, test string }

func (k key) String() string { return k.pkg + "." + k.test }

// tally is what became of a run.
type tally struct {
	err     error          // how `go test` ended; nil: all went well
	passed  map[key]bool   // with the parents of subtests
	failed  map[key]string // with what it said
	broken  []string       // packages
	crashed bool           // something ended otherwise than a test that fails does
	skips   []string
	lacks   map[key]string // the feature that a driver lacks, by the test that needs it
	lacking int            // tests that were not begun for that
	figures []string
	told    time.Duration // when a line of progress was printed last
}

// parent returns the test whose subtest k is; false: k is not a subtest.
func (k key) parent() (key, bool) {
	i := strings.LastIndexByte(k.test, '/')
	if i < 0 {
		return key{}, false
	}
	return key{k.pkg, k.test[:i]}, true
}

// leaves counts the tests that passed and have no subtests of their own.
func (t *tally) leaves() int {
	parents := map[key]bool{}
	for k := range t.passed {
		if p, ok := k.parent(); ok {
			parents[p] = true
		}
	}
	n := 0
	for k := range t.passed {
		if !parents[k] {
			n++
		}
	}
	return n
}

// lacksKey is the attribute by which the suite of drivers names a feature that a driver has on no
// host. What needs it was not skipped for the host's sake. The suite fails where the driver has it.
const lacksKey = "lacks"

// crashes are the words of output that is not a failed test, wherever they stand.
func crashes() []string {
	return []string{"DATA RACE", "race detected during execution", "panic: ", "fatal error: ", "test timed out", "goleak: "}
}

// goTest runs `go test` with these arguments and prints how it goes. It returns an error if the
// result is unknown.
func goTest(args []string) (*tally, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	began := time.Now()
	t := &tally{failed: map[key]string{}, passed: map[key]bool{}, lacks: map[key]string{}}
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
			if e.Key == lacksKey {
				t.lacks[k] = e.Value
				continue
			}
			t.figures = append(t.figures, e.Key+": "+e.Value)
			continue
		case "pass", "fail", "skip":
		default:
			continue
		}
		t.ended(e, k, output[k], time.Since(began))
		delete(output, k)
		if e.Action == "fail" && e.Test == "" {
			t.cutOff(e.Package, output)
		}
	}
	if err := sc.Err(); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	t.err = cmd.Wait()
	return t, nil
}

// ended counts a test or a package that has ended.
func (t *tally) ended(e event, k key, output []string, at time.Duration) {
	said := strings.Join(output, "")
	if e.Action == "fail" {
		for _, c := range crashes() {
			t.crashed = t.crashed || strings.Contains(said, c)
		}
	}
	switch {
	case e.Test == "":
		fmt.Printf("%6.0fs  %-4s  %s (%.1fs)\n", at.Seconds(), e.Action, e.Package, e.Elapsed)
		t.told = at
		if e.Action == "fail" {
			t.broken = append(t.broken, e.Package)
			t.crashed = t.crashed || !t.explains(e.Package)
			fmt.Print(said)
		}
	case e.Action == "pass":
		t.passed[k] = true
		if at-t.told >= quiet {
			fmt.Printf("%6.0fs  at    %s %s\n", at.Seconds(), e.Package, e.Test)
			t.told = at
		}
	case e.Action == "fail":
		t.failed[k] = said
		fmt.Print(said)
	case e.Action == "skip" && t.lacks[k] != "":
		t.lacking++
		fmt.Printf("%6.0fs  lacks %s: %s\n", at.Seconds(), t.lacks[k], k)
	case e.Action == "skip":
		t.skips = append(t.skips, k.String()+": "+reason(output))
	}
}

// quiet is how long nothing is printed while tests of one package pass.
const quiet = 30 * time.Second

// maxCutOff bounds what is printed of a test that was cut off, in pieces of output, its last.
const maxCutOff = 400

// cutOff prints what the tests of a package said that had not ended when its process did: a panic,
// the stacks of one that took too long, or whatever came before a kill.
func (t *tally) cutOff(pkg string, output map[key][]string) {
	for k, said := range output {
		if k.pkg != pkg {
			continue
		}
		for _, c := range crashes() {
			t.crashed = t.crashed || strings.Contains(strings.Join(said, ""), c)
		}
		fmt.Printf("cut off: %s\n%s", k, strings.Join(said[max(0, len(said)-maxCutOff):], ""))
		delete(output, k)
	}
}

// explains reports whether a test of a package failed.
func (t *tally) explains(pkg string) bool {
	for k := range t.failed {
		if k.pkg == pkg {
			return true
		}
	}
	return false
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
