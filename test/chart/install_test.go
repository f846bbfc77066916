// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bufio"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandpit.dev/internal/cluster"
	"sandpit.dev/test/mcp/taskstest"
)

// TestTheChart is the life of a release: installed, used, its server killed, upgraded, uninstalled and installed again.
func TestTheChart(t *testing.T) {
	r := newRelease(t)
	l := &life{}
	for _, part := range []struct {
		name string
		do   func(*release)
	}{
		{"IsInstalledAndRunsAProgram", l.installed}, {"AnswersNobodyWithoutAToken", l.locked}, {"HasTheLeastRights", l.rights}, {"ADay", l.day},
		{"AServerThatIsKilled", l.killed}, {"AnUpgrade", l.upgraded}, {"WhatIsUninstalledAndWhatStays", l.uninstalled},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.do(r.in(t)) }) {
			t.FailNow() // the parts after it are of what it left
		}
	}
}

// life is what the parts know of those before them.
type life struct {
	secret []string // arguments of kubectl, by which the administrator's token is had
	token  string
}

// installed does what the notes say.
func (l *life) installed(r *release) {
	notes := r.upgrade()
	program := regexp.MustCompile(`kubectl (-n \S+ exec deploy/\S+ -- sandpit run) -c '(.*)'`).FindStringSubmatch(notes)
	secret := regexp.MustCompile(`kubectl (-n \S+ get secret \S+) -o go-template='(.*)'`).FindStringSubmatch(notes)
	if program == nil || secret == nil {
		r.t.Fatalf("the notes have no first program, or not where the token is:\n%s", notes)
	}
	if got := r.kubectl(append(strings.Fields(program[1]), "-c", program[2])...); !strings.HasPrefix(got, "from ") {
		r.t.Errorf("the first program says %q", got)
	}
	l.secret = append(strings.Fields(secret[1]), "-o", "go-template="+secret[2])
	l.token = r.kubectl(l.secret...)
	if !strings.Contains(notes, "port-forward svc/"+r.name+" 8080:80\n") {
		r.t.Errorf("the notes do not say how it is reached from elsewhere:\n%s", notes)
	}
	r.forwarded(l.token)
}

// forwarded asks the server through a forwarded port, as people do from elsewhere.
func (r *release) forwarded(token string) {
	r.t.Helper()
	cmd := r.c.Kubectl(r.t.Context(), "-n", r.space, "port-forward", "svc/"+r.name, ":80")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	m := regexp.MustCompile(`^Forwarding from 127\.0\.0\.1:(\d+) `).FindStringSubmatch(line)
	if m == nil {
		r.t.Fatalf("kubectl port-forward says %q, %v", line, err)
	}
	c := &http.Client{Transport: bearer{token, &http.Transport{DisableKeepAlives: true}}}
	answer, err := c.Get("http://localhost:" + m[1] + "/v1/info")
	if err != nil {
		r.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		r.t.Errorf("through the forwarded port: %s", answer.Status)
	}
}

func (l *life) locked(r *release) {
	c := r.client()
	for path, want := range map[string]int{"/readyz": http.StatusOK, "/v1/sandboxes": http.StatusUnauthorized, "/metrics": http.StatusUnauthorized, "/mcp": http.StatusUnauthorized} {
		if got := r.status(c, path); got != want {
			r.t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

// rights takes one rule after another from the server, which names what it lacks then: it has none too many.
func (l *life) rights(r *release) {
	r.says("info", "network", "pod-security.kubernetes.io/enforce: privileged") // which the namespace is not
	if got := r.sandpit("info"); strings.Contains(got, "may not") {
		r.t.Errorf("the chart gives too little:\n%s", got)
	}
	for _, role := range []struct{ space, name string }{{r.boxes, r.name}, {"kube-node-lease", r.space + "-" + r.name}} {
		all := r.kubectl("-n", role.space, "get", "role", role.name, "-o", "jsonpath={.rules}")
		var rules []rule
		if err := json.Unmarshal([]byte(all), &rules); err != nil || len(rules) == 0 {
			r.t.Fatalf("the rules are %s: %v", all, err)
		}
		for n, lost := range rules {
			r.kubectl("-n", role.space, "patch", "role", role.name, "--type=json", "-p", `[{"op": "replace", "path": "/rules", "value": `+all+`}, {"op": "remove", "path": "/rules/`+strconv.Itoa(n)+`"}]`)
			want := []string{"may not, in the namespace " + role.space + ": "}
			for _, resource := range lost.Resources {
				for _, verb := range lost.Verbs {
					want = append(want, verb+" "+resource)
				}
			}
			r.says("info", want...)
		}
		r.kubectl("-n", role.space, "patch", "role", role.name, "--type=json", "-p", `[{"op": "replace", "path": "/rules", "value": `+all+`}]`)
	}
	for _, no := range [][]string{{"get", "secrets", r.boxes}, {"create", "pods", r.boxes, "--subresource=exec"}, {"create", "pods", r.space}, {"update", "roles", r.boxes}} {
		cmd := r.c.Kubectl(r.t.Context(), append([]string{"auth", "can-i", no[0], no[1], "-n", no[2], "--as=system:serviceaccount:" + r.space + ":" + r.name}, no[3:]...)...)
		if out, _ := cmd.Output(); strings.TrimSpace(string(out)) != "no" {
			r.t.Errorf("may it %v? %s", no, out)
		}
	}
}

// day has an agent do tasks through the service: those that need neither git nor matplotlib, nor a limit of processes or of the disk.
func (l *life) day(r *release) {
	o := r.agent(l.token)
	for _, task := range taskstest.All() {
		if slices.Contains([]string{"script", "server-and-link", "search-and-replace", "input", "artifact"}, task.Name) {
			r.t.Run(task.Name, func(t *testing.T) { task.Run(t, o) })
		}
	}
}

// killed: what runs goes on, and what it says meanwhile is not lost.
func (l *life) killed(r *release) {
	a := taskstest.New(r.t, r.agent(l.token), "kept")
	a.Do("create_sandbox", taskstest.Args{"name": "kept"})
	a.Do("write_file", taskstest.Args{"path": "note", "content": "here\n"})
	said := a.Do("run_command", taskstest.Args{"command": "echo before; while [ ! -e go ]; do sleep 0.1; done; echo after", "background": true})
	process := regexp.MustCompile(`process ([a-z0-9]{6,})`).FindStringSubmatch(said)
	if process == nil {
		r.t.Fatalf("no process is named in\n%s", said)
	}
	r.kubectl("-n", r.space, "delete", r.kubectl("-n", r.space, "get", "pods", "-o", "name"), "--grace-period=0", "--force")
	a = taskstest.New(r.t, r.agent(l.token), "kept")
	a.Do("run_command", taskstest.Args{"command": "cat note; echo > go"}, "exit 0 ", "here")
	a.Do("read_process", taskstest.Args{"process": process[1], "wait_seconds": 10}, "before\n", "after\n", "exit 0")
}

// connects is a program that gets the first words of a server of HTTP.
const connects = `import socket; s = socket.create_connection(("` + cluster.Address + `", 5000), SECONDS); s.sendall(b"GET /v2/ HTTP/1.0\r\n\r\n"); print(s.recv(12).decode())`

func (l *life) upgraded(r *release) {
	r.upgrade("--force-conflicts", "--set", "sandboxes.pool=1", "--set", "metrics.scrape=true", "--set", "sandboxes.podSecurity=privileged")
	if got := r.sandpit("exec", "kept", "--", "cat", "note"); got != "here" {
		r.t.Errorf("the sandbox says %q", got)
	}
	if again := r.kubectl(l.secret...); again != l.token {
		r.t.Error("there is another token")
	}
	if got := r.status(r.client(), "/metrics"); got != http.StatusOK {
		r.t.Errorf("the metrics: %d", got)
	}
	// Who may make pods there makes none with what that level allows.
	if out, err := r.c.Kubectl(r.t.Context(), "-n", r.boxes, "run", "other", "--image=localhost/pause:1", "--privileged").CombinedOutput(); err == nil || !strings.Contains(string(out), "the pod has no label of a sandpit server's") {
		r.t.Errorf("another pod: %v\n%s", err, out)
	}
	// With the level come networks, from the server's pod, as far as their policies say.
	if got := r.sandpit("run", "--allow", cluster.Address, "--allow-port", "5000", "--", "python3", "-c", strings.ReplaceAll(connects, "SECONDS", "30")); got != "HTTP/1.0 200" {
		r.t.Errorf("through the server's gate: %q", got)
	}
	if got := r.sandpit("info"); strings.Contains(got, "no network") {
		r.t.Errorf("networks that it has are told as missing:\n%s", got)
	}
	if got := r.sandpit("run", "--", "python3", "-c", "try:\n "+strings.ReplaceAll(connects, "SECONDS", "1")+"\nexcept OSError as e: print(type(e).__name__)"); strings.Contains(got, "HTTP") {
		r.t.Errorf("without a network: %q", got)
	}
}

// uninstalled: sandboxes and records stay, the server and its rights go, and are there again.
func (l *life) uninstalled(r *release) {
	r.helm("uninstall", r.name, "--wait")
	if got := r.kubectl("-n", r.space, "get", "deployments,services,roles,rolebindings,configmaps,secrets,serviceaccounts", "-l", "app.kubernetes.io/name=sandpit", "-o", "name"); got != "" {
		r.t.Errorf("of the server there is %s", got)
	}
	if got := r.kubectl("-n", r.boxes, "get", "roles,rolebindings", "-o", "name"); got != "" {
		r.t.Errorf("of its rights there is %s", got)
	}
	if got := r.kubectl("-n", r.space, "get", "pvc", "-o", "jsonpath={.items[*].metadata.name}"); got != r.name {
		r.t.Errorf("of its disk there is %q", got)
	}
	if got := r.kubectl("-n", r.boxes, "get", "pods,pvc", "-l", "sandpit.dev/sandbox", "-o", "name"); !strings.Contains(got, "persistentvolumeclaim/sandbox-") || !strings.Contains(got, "pod/sandbox-") {
		r.t.Errorf("of the sandboxes there is %q", got)
	}
	r.upgrade()
	if got := r.sandpit("exec", "kept", "--", "cat", "note"); got != "here" {
		r.t.Errorf("installed again: %q", got)
	}
	if again := r.kubectl(l.secret...); again == l.token {
		r.t.Error("the token of what was uninstalled is good again")
	}
}

// saysBound is how long the cluster may take to know of other rights: far more than it does.
const saysBound = 20 * time.Second

// says waits until a command of the CLI's in the server's pod says all of some texts.
func (r *release) says(command string, want ...string) {
	r.t.Helper()
	for end := time.Now().Add(saysBound); ; <-time.After(50 * time.Millisecond) {
		got := r.sandpit(command)
		lacks := slices.IndexFunc(want, func(w string) bool { return !strings.Contains(got, w) })
		if lacks < 0 {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("it does not say %q:\n%s", want[lacks], got)
		}
	}
}

// status asks the server for a path, by its name.
func (r *release) status(c *http.Client, path string) int {
	r.t.Helper()
	answer, err := c.Get("http://" + r.name + "." + r.space + ".svc.cluster.local" + path)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}
