// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/packagestest"
	"sandpit.dev/test/servertest"
)

func TestPythonSnapshots(t *testing.T) {
	python := packagestest.NeedPip(t, "daytona-pip", ".")
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	passes(t, exec.CommandContext(ctx, python, "testdata/snapshots.py"), clients(builds(t)))
}

func TestTypeScriptSnapshots(t *testing.T) {
	p := packagestest.NeedNPM(t, "daytona-npm", ".")
	script, err := filepath.Abs("testdata/snapshots.mjs")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	passes(t, p.Command(ctx, script), append(clients(builds(t)), "SDK="+filepath.Join(p.Dir, "node_modules/@daytona/sdk"), "WHEEL="+wheel(t)))
}

// builds is a server that may make images.
func builds(t *testing.T) *servertest.Server {
	t.Helper()
	servertest.Need(t)
	s := servertest.New(t, program, imagetest.Own(t))
	s.Start()
	return s
}

// wheel writes a package that pip installs without a network.
func wheel(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "sandpit_wheel-1.0-py3-none-any.whl")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := zip.NewWriter(f)
	const info = "sandpit_wheel-1.0.dist-info/"
	for _, file := range [][2]string{
		{"sandpit_wheel/__init__.py", "word = 'here'\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: sandpit-wheel\nVersion: 1.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", "sandpit_wheel/__init__.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		out, err := w.Create(file[0])
		if err == nil {
			_, err = out.Write([]byte(file[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

type snapshot struct {
	ID, Name, State string
	ErrorReason     *string
}

// snapshot creates one, and returns how it is told.
func (d *door) snapshot(token, body string) snapshot {
	d.t.Helper()
	status, b := d.ask(token, "POST", "/snapshots", js, strings.NewReader(body))
	var s snapshot
	if err := json.Unmarshal(b, &s); err != nil || status != 200 || s.ID == "" {
		d.t.Fatalf("create a snapshot: %d %s", status, b)
	}
	return s
}

func TestNobodyReachesSnapshotsThatAreNotTheirs(t *testing.T) {
	d := open(t)
	box := d.create(d.token, `{}`)
	id := d.snapshot(d.token, `{"name":"mine","imageName":"python"}`).ID
	other := d.run("token", "create", "--name", "mallet", "--project", "elsewhere", "--scope", "admin")
	member := d.run("token", "create", "--name", "member", "--scope", "sandboxes:read,sandboxes:write")
	reader := d.run("token", "create", "--name", "reader", "--scope", "sandboxes:read")
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/snapshots/" + id, ""}, {"GET", "/snapshots/mine", ""}, {"DELETE", "/snapshots/" + id, ""}, {"DELETE", "/snapshots/mine", ""},
		{"POST", "/snapshots/" + id + "/activate", ""}, {"POST", "/snapshots/" + id + "/deactivate", ""}, {"POST", "/snapshots/mine/deactivate", ""},
		{"GET", "/snapshots/" + id + "/build-logs-url", ""}, {"GET", "/snapshots/" + id + "/build-logs", ""}, {"GET", "/snapshots/mine/build-logs?follow=true", ""},
		{"POST", "/sandbox/" + box + "/snapshot", `{"name":"stolen"}`}, {"POST", "/sandbox", `{"snapshot":"mine"}`}, {"POST", "/sandbox", `{"snapshot":"` + id + `"}`},
	} {
		status, b := d.ask(other, c.method, c.path, js, strings.NewReader(c.body))
		d.refused("another project's "+c.method+" "+c.path+" "+c.body, status, b, 404)
		status, b = d.ask("", c.method, c.path, js, strings.NewReader(c.body))
		d.refused("nobody's "+c.method+" "+c.path, status, b, 401)
		if c.method != "GET" {
			status, b = d.ask(reader, c.method, c.path, js, strings.NewReader(c.body))
			d.refused("a reader's "+c.method+" "+c.path, status, b, 403)
		}
	}
	if status, b := d.ask(other, "GET", "/snapshots", "", nil); status != 200 || !bytes.Contains(b, []byte(`"items":[]`)) {
		t.Errorf("the list of another project: %d %s", status, b)
	}
	// Who may write and is no administrator uses what is here, and neither builds nor pulls nor sends files.
	for what, body := range map[string]string{
		"a build":      `{"name":"x","buildInfo":{"dockerfileContent":"FROM python\nRUN true"}}`,
		"a pull":       `{"name":"x","imageName":"registry.example/none:1"}`,
		"a one-line":   `{"name":"x","buildInfo":{"dockerfileContent":"FROM registry.example/none:1"}}`,
		"sent by else": `{"name":"x","buildInfo":{"dockerfileContent":"FROM python\nCOPY a /a","contextHashes":["0123456789abcdef0123456789abcdef"]}}`,
	} {
		status, b := d.ask(member, "POST", "/snapshots", js, strings.NewReader(body))
		d.refused("a member's "+what, status, b, 403)
		if !bytes.Contains(b, []byte("admin")) {
			t.Errorf("a member's %s: the reason is not told: %s", what, b)
		}
	}
	status, b := d.ask(member, "POST", "/sandbox", js, strings.NewReader(`{"buildInfo":{"dockerfileContent":"FROM python\nRUN true"}}`))
	d.refused("a member's build for a sandbox", status, b, 403)
	status, b = d.ask(member, "GET", "/object-storage/push-access", "", nil)
	d.refused("a member's key", status, b, 403)
	d.snapshot(member, `{"name":"members","imageName":"python"}`)
	if status, b := d.ask(member, "DELETE", "/snapshots/members", "", nil); status != 200 {
		t.Errorf("a member's own: %d %s", status, b)
	}
	// A key of one project sends nothing to another, and what one sent another does not build.
	for _, path := range []string{"/daytona-contexts", "/daytona-contexts/", "/daytona-contexts/default/0123456789abcdef0123456789abcdef/context.tar", "/daytona-contexts/../v1/sandboxes"} {
		r, err := http.NewRequestWithContext(t.Context(), "PUT", strings.TrimSuffix(d.url, "/daytona")+path, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+d.token)
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode < 400 || resp.StatusCode >= 500 {
			t.Errorf("a token at %s: %d", path, resp.StatusCode)
		}
	}
	if status, b := d.ask(d.token, "GET", "/snapshots/"+id, "", nil); status != 200 || !bytes.Contains(b, []byte(`"state":"active"`)) {
		t.Errorf("after all that: %d %s", status, b)
	}
}

func TestBadInputOfSnapshots(t *testing.T) {
	d := open(t)
	box := d.create(d.token, "{}")
	for _, c := range []struct {
		method, path, body string
		want               []int
	}{
		{"POST", "/snapshots", `{}`, []int{400}},
		{"POST", "/snapshots", `{"name":"x"}`, []int{400}},
		{"POST", "/snapshots", `{"name":"` + strings.Repeat("x", 10_000) + `","imageName":"python"}`, []int{400}},
		{"POST", "/snapshots", `{"name":"a/b","imageName":"python"}`, []int{400}},
		{"POST", "/snapshots", `{"name":"x","imageName":"python","buildInfo":{"dockerfileContent":"FROM python"}}`, []int{400}},
		{"POST", "/snapshots", `{"name":"x","imageName":"python","cpu":-1}`, []int{400}},
		{"POST", "/snapshots", `{"name":"x","imageName":"python","memory":1e300}`, []int{400}},
		{"POST", "/snapshots", `{"name":"x","imageName":"python","sandboxClass":"windows"}`, []int{422}},
		{"POST", "/snapshots", `{"name":"x","buildInfo":{"dockerfileContent":" "}}`, []int{400}},
		{"POST", "/snapshots", `{"name":"x","buildInfo":{"dockerfileContent":"FROM python\nFROBNICATE x"}}`, []int{400, 422}},
		{"POST", "/snapshots", `{"name":"x","buildInfo":{"dockerfileContent":"FROM python\nRUN ` + strings.Repeat("x", 300_000) + `"}}`, []int{400}},
		{"POST", "/snapshots", `{"name":"x","buildInfo":{"dockerfileContent":"FROM python\nCOPY a /a","contextHashes":["../../etc"]}}`, []int{400}},
		{"POST", "/snapshots", `{"name":"x","buildInfo":{"dockerfileContent":"FROM python\nCOPY a /a","contextHashes":["0123456789abcdef0123456789abcdef"]}}`, []int{400}},
		{"POST", "/sandbox", `{"buildInfo":{"dockerfileContent":"FROM python\nCOPY a /a","contextHashes":["0123456789abcdef0123456789abcdef"]}}`, []int{400}},
		{"GET", "/snapshots?page=0", "", []int{400}},
		{"GET", "/snapshots?limit=100000", "", []int{400}},
		{"GET", "/snapshots?sort=size", "", []int{400}},
		{"GET", "/snapshots?order=up", "", []int{400}},
		{"GET", "/snapshots/none", "", []int{404}},
		{"POST", "/snapshots/none/activate", "", []int{404}},
		{"POST", "/sandbox/" + box + "/snapshot", `{}`, []int{400}},
		{"POST", "/sandbox/" + box + "/snapshot", `{"name":"x","includeMemory":true}`, []int{422}},
		{"POST", "/sandbox/none/snapshot", `{"name":"x"}`, []int{404}},
	} {
		status, b := d.ask(d.token, c.method, c.path, js, strings.NewReader(c.body))
		d.refused(c.method+" "+c.path+" "+c.body[:min(len(c.body), 100)], status, b, c.want...)
	}
	if status, b := d.ask(d.token, "GET", "/snapshots", "", nil); status != 200 || !bytes.Contains(b, []byte(`"total":0`)) {
		t.Errorf("after all that: %d %s", status, b)
	}
}

// awaitLine follows a log until it has a line, and leaves it open until the test ends.
func (d *door) awaitLine(path, line string) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), "GET", d.url+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.token)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = resp.Body.Close() })
	log := bufio.NewScanner(resp.Body)
	for log.Scan() && log.Text() != line {
		continue
	}
	if log.Text() != line {
		d.t.Fatalf("the log ended with %q, %v", log.Text(), log.Err())
	}
}

// A server that is killed while it builds says of what it built that it failed, and its name is free.
func TestAKillDuringABuildIsNoLie(t *testing.T) {
	servertest.Need(t)
	d := enter(t, imagetest.Own(t))
	s := d.snapshot(d.token, `{"name":"killed","buildInfo":{"dockerfileContent":"FROM python\nRUN echo in the step; sleep 1000"}}`)
	if s.State != "building" {
		t.Fatalf("it is %+v", s)
	}
	d.awaitLine("/snapshots/"+s.ID+"/build-logs?follow=true", "in the step")
	d.restart()
	for deadline := time.Now().Add(startBound); ; {
		status, b := d.ask(d.token, "GET", "/snapshots/killed", "", nil)
		if err := json.Unmarshal(b, &s); err != nil || status != 200 {
			t.Fatalf("after the kill: %d %s", status, b)
		}
		if s.State != "building" { // until what the build had is gone
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it is still building")
		}
	}
	if s.State != "build_failed" || s.ErrorReason == nil || !strings.Contains(*s.ErrorReason, "the server ended") {
		t.Errorf("after the kill it is %+v", s)
	}
	if again := d.snapshot(d.token, `{"name":"killed","imageName":"python"}`); again.State != "active" {
		t.Errorf("its name again: %+v", again)
	}
}
