// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/internal/packagestest"
)

var update = flag.Bool("update", false, "write what the server does of each operation to the page of methods")

// Between these lines the page of methods has the operations.
const (
	operationsBegin = "<!-- written by: go test ./test/daytona -run Operation -update -->\n"
	operationsEnd   = "<!-- end -->\n"
)

// What an operation looks like in clients of Python, and its parameters in all.
var (
	pythonOperation = regexp.MustCompile(`method='([A-Z]+)',\s+resource_path='([^']+)'`)
	parameter       = regexp.MustCompile(`\{[^}]*\}`)
)

// operations are those of the generated clients of one plane in the files of a pattern, with the names of their parameters.
func operations(t *testing.T, pattern string, least int) (all []string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pythonOperation.FindAllStringSubmatch(string(b), -1) {
			all = append(all, m[1]+" "+m[2])
		}
		for part := range strings.SplitSeq(string(b), "const localVarPath = ") {
			path, rest, ok := strings.Cut(strings.TrimPrefix(part, "`"), "`")
			_, method, is := strings.Cut(rest, "const localVarRequestOptions = { method: '")
			if ok && is && strings.HasPrefix(path, "/") {
				method, _, _ = strings.Cut(method, "'")
				all = append(all, method+" "+path)
			}
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) < least {
		t.Fatalf("%s has %d operations, where there are at least %d", pattern, len(all), least)
	}
	return all
}

// merged are operations of several clients, each once whatever its parameters are called.
func merged(lists ...[]string) []string {
	all := make(map[string]string)
	for _, list := range lists {
		for _, op := range list {
			if key := parameter.ReplaceAllString(op, "{}"); all[key] == "" {
				all[key] = op
			}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b string) int {
		am, ap, _ := strings.Cut(a, " ")
		bm, bp, _ := strings.Cut(b, " ")
		return strings.Compare(ap+" "+am, bp+" "+bm)
	})
}

// fate is what the server does of an operation: served, or refused with a status and why.
func (d *door) fate(base, op string) string {
	d.t.Helper()
	method, path, _ := strings.Cut(op, " ")
	status, b := d.ask(d.token, method, base+parameter.ReplaceAllString(path, "1"), js, strings.NewReader("{}"))
	var p struct{ Message string }
	_ = json.Unmarshal(b, &p) // what is served may answer otherwise
	switch {
	case status == http.StatusNotFound && (strings.Contains(p.Message, "docs/daytona.md") || !strings.Contains(path, "{")), status == http.StatusMethodNotAllowed:
		return "404"
	case status == http.StatusUnprocessableEntity, status == http.StatusServiceUnavailable:
		return fmt.Sprint(status)
	case status >= 500:
		d.t.Errorf("%s: %d %s", op, status, b)
	}
	return "served"
}

func TestEachOperationOfTheClientsIsOnThePage(t *testing.T) {
	d := open(t)
	site := filepath.Join(filepath.Dir(packagestest.NeedPip(t, "daytona-pip", ".")), "../lib/python3.11/site-packages")
	node := filepath.Join(packagestest.NeedNPM(t, "daytona-npm", ".").Dir, "node_modules")
	d.snapshot(d.token, `{"name":"serving","imageName":"python","entrypoint":["sleep","1000"]}`)
	box := d.create(d.token, `{"snapshot":"serving"}`)
	var text strings.Builder
	for _, plane := range []struct{ title, base, name string }{
		{"the control plane", "", "api"},
		{"the toolbox", "/toolbox/" + box, "toolbox_api"},
	} {
		src := strings.ReplaceAll(plane.name, "_", "-") + "-client/src/api/*-api.js"
		// So many has the smallest of the clients that are installed.
		least := map[string]int{"api": 168, "toolbox_api": 103}[plane.name]
		all := merged(
			operations(t, filepath.Join(site, "daytona_"+plane.name+"_client/api/*_api.py"), least),
			operations(t, filepath.Join(node, "@daytona", src), least),
			operations(t, filepath.Join(node, "@daytonaio/sdk/node_modules/@daytona", src), least),
		)
		fates := make(map[string][]string)
		for _, op := range all {
			fate := d.fate(plane.base, op)
			fates[fate] = append(fates[fate], op)
		}
		for _, fate := range []struct{ is, title string }{
			{"served", "Served"}, {"422", "Refused, 422"}, {"503", "Refused, 503"}, {"404", "Not there, 404"},
		} {
			if ops := fates[fate.is]; len(ops) > 0 {
				fmt.Fprintf(&text, "\n%s, of %s (%d):\n\n```text\n%s\n```\n", fate.title, plane.title, len(ops), strings.Join(ops, "\n"))
			}
		}
	}
	b, err := os.ReadFile(methodsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), operationsBegin)
	held, after, ends := strings.Cut(rest, operationsEnd)
	if !ok || !ends {
		t.Fatalf("%s has no place for operations", methodsPage)
	}
	if *update {
		if err := os.WriteFile(methodsPage, []byte(before+operationsBegin+text.String()+"\n"+operationsEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if held = strings.TrimSuffix(held, "\n"); held != text.String() {
		is, was := strings.Split(text.String(), "\n"), strings.Split(held, "\n")
		for _, line := range is {
			if !slices.Contains(was, line) {
				t.Errorf("the page lacks %q", line)
			}
		}
		for _, line := range was {
			if !slices.Contains(is, line) {
				t.Errorf("the page has %q, which is not so", line)
			}
		}
		t.Errorf("operations are not what %s says of them; look why, then write it anew with -update", methodsPage)
	}
}
