// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "draw the import graph of ARCHITECTURE.md anew")

const (
	document   = "../../ARCHITECTURE.md"
	graphBegin = "<!-- graph: go test ./internal/archtest -update -->\n"
	graphEnd   = "<!-- end of graph -->\n"
)

// graph is which part of the tree imports which. A part is what one rule covers.
type graph map[string]map[string]bool

func imports(t *testing.T) graph {
	t.Helper()
	part := func(path string) string {
		rel := strings.TrimPrefix(path, module+"/")
		if r, ok := ruleOf(rel); ok {
			return r.path
		}
		return rel
	}
	g := graph{}
	for path, p := range packages(t) {
		from := part(path)
		if g[from] == nil {
			g[from] = map[string]bool{}
		}
		for _, imp := range p.Imports {
			if to := part(imp); strings.HasPrefix(imp, module+"/") && to != from {
				g[from][to] = true
			}
		}
	}
	return g
}

// circle returns parts that import each other in a circle, or nil.
func (g graph) circle() []string {
	done := map[string]bool{}
	var path []string
	var visit func(string) []string
	visit = func(part string) []string {
		if i := slices.Index(path, part); i >= 0 {
			return append(slices.Clone(path[i:]), part)
		}
		if done[part] {
			return nil
		}
		done[part] = true
		path = append(path, part)
		for _, to := range slices.Sorted(maps.Keys(g[part])) {
			if c := visit(to); c != nil {
				return c
			}
		}
		path = path[:len(path)-1]
		return nil
	}
	for _, part := range slices.Sorted(maps.Keys(g)) {
		if c := visit(part); c != nil {
			return c
		}
	}
	return nil
}

// floors returns the floor of each part: one above the highest that it imports.
func (g graph) floors() map[string]int {
	floors := map[string]int{}
	var floor func(string) int
	floor = func(part string) int {
		if n, ok := floors[part]; ok {
			return n
		}
		n := 0
		for to := range g[part] {
			n = max(n, floor(to)+1)
		}
		floors[part] = n
		return n
	}
	for part := range g {
		floor(part)
	}
	return floors
}

// reaches reports whether from imports to, directly or through others.
func (g graph) reaches(from, to string) bool {
	for next := range g[from] {
		if next == to || g.reaches(next, to) {
			return true
		}
	}
	return false
}

// draw returns the graph as a table, the highest floor first. An import that also comes
// through another is left out.
func (g graph) draw() string {
	floors := g.floors()
	byFloor := map[int][]string{}
	for part, n := range floors {
		byFloor[n] = append(byFloor[n], part)
	}
	var b strings.Builder
	b.WriteString("| floor | part | imports |\n| ---: | --- | --- |\n")
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(byFloor))) {
		slices.Sort(byFloor[n])
		for _, part := range byFloor[n] {
			var direct []string
			for to := range g[part] {
				if !slices.ContainsFunc(slices.Collect(maps.Keys(g[part])), func(other string) bool { return g.reaches(other, to) }) {
					direct = append(direct, to)
				}
			}
			slices.Sort(direct)
			fmt.Fprintf(&b, "| %d | `%s` | %s |\n", n, part, strings.Join(direct, ", "))
		}
	}
	return b.String()
}

func TestTheImportGraphIsDrawnAsItIs(t *testing.T) {
	g := imports(t)
	if c := g.circle(); c != nil {
		t.Fatalf("parts import each other in a circle: %s", strings.Join(c, " → "))
	}
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), graphBegin)
	drawn, after, ended := strings.Cut(rest, graphEnd)
	if !ok || !ended {
		t.Fatalf("%s has no graph between %q and %q", document, graphBegin, graphEnd)
	}
	want := "\n" + g.draw() + "\n"
	if drawn == want {
		return
	}
	if *update {
		if err := os.WriteFile(document, []byte(before+graphBegin+want+graphEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the import graph in %s is not that of the code: draw it with go test ./internal/archtest -update", document)
}

func TestACircleIsFound(t *testing.T) {
	g := graph{"a": {"b": true, "d": true}, "b": {"c": true}, "c": {"b": true}, "d": {}}
	if got := strings.Join(g.circle(), " "); got != "b c b" {
		t.Errorf("circle of a graph with b → c → b: %q", got)
	}
	delete(g["c"], "b")
	if c := g.circle(); c != nil {
		t.Errorf("circle of a graph without one: %v", c)
	}
	if got := g.floors(); got["a"] != 2 || got["b"] != 1 || got["c"] != 0 || got["d"] != 0 {
		t.Errorf("floors of a → b → c, a → d: %v", got)
	}
}
