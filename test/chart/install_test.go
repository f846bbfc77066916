// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/test/mcp/taskstest"
)

// TestTheChart is the life of a release: installed, used, its server killed, upgraded, uninstalled and installed again.
func TestTheChart(t *testing.T) {
	r := newRelease(t)
	notes := r.upgrade()

	// The first program, as the notes have it.
	m := regexp.MustCompile(`kubectl (-n \S+ exec deploy/\S+ -- sandpit run) -c '(.*)'`).FindStringSubmatch(notes)
	if m == nil {
		t.Fatalf("the notes have no first program:\n%s", notes)
	}
	if got := r.kubectl(append(strings.Fields(m[1]), "-c", m[2])...); !strings.HasPrefix(got, "from ") {
		t.Errorf("the first program says %q", got)
	}
	secret := regexp.MustCompile(`kubectl (-n \S+ get secret \S+) -o go-template='(.*)'`).FindStringSubmatch(notes)
	if secret == nil {
		t.Fatalf("the notes do not say where the token is:\n%s", notes)
	}
	token := r.kubectl(append(strings.Fields(secret[1]), "-o", "go-template="+secret[2])...)

	t.Run("WithoutATokenNobodyIsAnswered", func(t *testing.T) {
		c := r.client()
		for path, want := range map[string]int{"/readyz": http.StatusOK, "/v1/sandboxes": http.StatusUnauthorized, "/metrics": http.StatusUnauthorized, "/mcp": http.StatusUnauthorized} {
			answer, err := c.Get("http://" + r.name + "." + r.space + ".svc.cluster.local" + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s: %s, want %d", path, answer.Status, want)
			}
		}
	})
	t.Run("ItsRightsAreEnoughAndNoneTooMany", func(t *testing.T) { rights(t, r.in(t)) })
	t.Run("ADay", func(t *testing.T) {
		o := r.agent(t, token)
		for _, task := range taskstest.All() {
			// Those that need neither git nor matplotlib, nor a limit of processes or of the disk.
			if slices.Contains([]string{"script", "server-and-link", "search-and-replace", "input", "artifact"}, task.Name) {
				t.Run(task.Name, func(t *testing.T) { task.Run(t, o) })
			}
		}
	})

	// What outlives the server's pod, an upgrade, and the release.
	a := taskstest.New(t, r.agent(t, token), "kept")
	a.Do("create_sandbox", taskstest.Args{"name": "kept"})
	a.Do("write_file", taskstest.Args{"path": "note", "content": "here\n"})
	said := a.Do("run_command", taskstest.Args{"command": "echo before; while [ ! -e go ]; do sleep 0.1; done; echo after", "background": true})
	process := regexp.MustCompile(`process ([a-z0-9]{6,})`).FindStringSubmatch(said)
	if process == nil {
		t.Fatalf("no process is named in\n%s", said)
	}
	pod := r.kubectl("-n", r.space, "get", "pods", "-o", "name")
	r.kubectl("-n", r.space, "delete", pod, "--grace-period=0", "--force")
	r.kubectl("-n", r.space, "rollout", "status", "deploy/"+r.name, "--timeout=60s")
	a = taskstest.New(t, r.agent(t, token), "kept")
	a.Do("run_command", taskstest.Args{"command": "cat note; echo > go"}, "exit 0 ", "here")
	a.Do("read_process", taskstest.Args{"process": process[1], "wait_seconds": 10}, "before\n", "after\n", "exit 0")

	r.upgrade("--set", "sandboxes.pool=1", "--set", "metrics.scrape=true")
	if got := r.sandpit("settings", "config", "pools"); !strings.Contains(got, "1") {
		t.Errorf("the upgraded server has the pools %q", got)
	}
	if again := r.kubectl(append(strings.Fields(secret[1]), "-o", "go-template="+secret[2])...); again != token {
		t.Error("an upgrade made another token")
	}
	if answer, err := r.client().Get("http://" + r.name + "." + r.space + "/metrics"); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("the metrics: %v, %v", answer, err)
	} else {
		_ = answer.Body.Close()
	}
	if got := r.sandpit("exec", "kept", "--", "cat", "note"); got != "here" {
		t.Errorf("after the upgrade: %q", got)
	}

	uninstalled(t, r)
	r.upgrade()
	if got := r.sandpit("exec", "kept", "--", "cat", "note"); got != "here" {
		t.Errorf("installed again: %q", got)
	}
	r.sandpit("rm", "-f", "kept")
}

// rights takes one right after another from the server, which names it.
func rights(t *testing.T, r *release) {
	if got := r.sandpit("info"); strings.Contains(got, "may not") {
		t.Errorf("the chart gives too little:\n%s", got)
	}
	role := r.kubectl("-n", r.boxes, "get", "role", r.name, "-o", "jsonpath={range .rules[*]}{.resources}{.verbs}{\"\\n\"}{end}")
	for n, line := range strings.Split(role, "\n") {
		if strings.Contains(line, "pods/resize") {
			r.kubectl("-n", r.boxes, "patch", "role", r.name, "--type=json", "-p", `[{"op": "remove", "path": "/rules/`+string(rune('0'+n))+`"}]`)
		}
	}
	if got := r.sandpit("info"); !strings.Contains(got, "may not, in the namespace "+r.boxes+": patch pods/resize") {
		t.Errorf("without a right:\n%s", got)
	}
	r.upgrade("--force-conflicts")
	if got := r.sandpit("info"); strings.Contains(got, "may not") {
		t.Errorf("an upgrade does not give it back:\n%s", got)
	}
	for _, no := range [][]string{{"get", "secrets", r.boxes}, {"create", "pods", r.boxes, "--subresource=exec"}, {"create", "pods", r.space}, {"update", "roles", r.boxes}} {
		cmd := r.c.Kubectl(t.Context(), append([]string{"auth", "can-i", no[0], no[1], "-n", no[2], "--as=system:serviceaccount:" + r.space + ":" + r.name}, no[3:]...)...)
		if out, _ := cmd.Output(); strings.TrimSpace(string(out)) != "no" {
			t.Errorf("may it %v? %s", no, out)
		}
	}
}

// uninstalled: sandboxes and records stay, the server and its rights go.
func uninstalled(t *testing.T, r *release) {
	t.Helper()
	r.helm("uninstall", r.name, "--wait")
	if got := r.kubectl("-n", r.space, "get", "deployments,services,roles,rolebindings,configmaps,secrets,serviceaccounts", "-l", "app.kubernetes.io/name=sandpit", "-o", "name"); got != "" {
		t.Errorf("of the server there is %s", got)
	}
	if got := r.kubectl("-n", r.boxes, "get", "roles,rolebindings", "-o", "name"); got != "" {
		t.Errorf("of its rights there is %s", got)
	}
	if got := r.kubectl("-n", r.space, "get", "pvc", "-o", "jsonpath={.items[*].metadata.name}"); got != r.name {
		t.Errorf("of its disk there is %q", got)
	}
	if got := r.kubectl("-n", r.boxes, "get", "pods,pvc", "-l", "sandpit.dev/sandbox", "-o", "name"); !strings.Contains(got, "persistentvolumeclaim/sandbox-") || !strings.Contains(got, "pod/sandbox-") {
		t.Errorf("of the sandboxes there is %q", got)
	}
}
