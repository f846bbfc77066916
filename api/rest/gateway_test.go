// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
)

// The requests of the MCP Gateway's page as they stand there, with an id in place of {id} and of "abc123...", in
// its order; files are there before they are asked for, as the page has it.
func TestTheGatewaysPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	// ask sends a request of the page, byte by byte, and returns the fields of an answer that the page shows.
	ask := func(method, path, body string, status int, headers ...string) map[string]any {
		t.Helper()
		var b any
		if body != "" {
			b = []byte(body)
		}
		a := h.do(method, path, b, headers...)
		if a.StatusCode != status {
			t.Fatalf("%s %s: %s %s", method, path, a.Status, a.body)
		}
		var out map[string]any
		if a.Header.Get("Content-Type") == "application/json" && bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("{")) {
			must(t, json.Unmarshal(a.body, &out))
		}
		return out
	}
	const asJSON = "application/json"
	made := ask("POST", "/api/v1/sandboxes", "{\n\"image\": \"mcpgateway/sandbox-python:3.12\",\n\"memory_mb\": 512,\n\"idle_timeout_seconds\": 1800,\n\"session_key\": \"agent-session-abc\"\n}", http.StatusCreated, "Content-Type", asJSON)
	id, _ := made["id"].(string)
	if id == "" || made["status"] != "running" || made["workspace_path"] == nil {
		t.Fatalf("created %v", made)
	}
	if again := ask("POST", "/api/v1/sandboxes", "{\n\"image\": \"mcpgateway/sandbox-python:3.12\",\n\"memory_mb\": 512,\n\"idle_timeout_seconds\": 1800,\n\"session_key\": \"agent-session-abc\"\n}", http.StatusOK, "Content-Type", asJSON); again["id"] != id {
		t.Errorf("the same session is %v", again["id"])
	}
	at := "/api/v1/sandboxes/" + id
	ask("PUT", at+"/files/data.csv", "a,b\n\x00\xff1,2\n", http.StatusNoContent, "Content-Type", "application/octet-stream")
	// The page's programs are its reader's own.
	for name, text := range map[string]string{
		"main.py":    "print('Done.')\n",
		"analyze.py": "import os\nos.makedirs('outputs', exist_ok=True)\nopen('outputs/chart.png', 'w').write('x' * 45678)\nopen('outputs/report.csv', 'w').write('y' * 12345)\nprint('Analysis complete. 1,234 rows.')\n",
	} {
		ask("PUT", at+"/files/"+name, text, http.StatusNoContent, "Content-Type", "application/octet-stream")
	}
	// Where the host of this test's runtime calls Python otherwise.
	ask("POST", at+"/exec", `{"command": "command -v python >/dev/null || { mkdir -p ~/bin && ln -sf \"$(command -v python3)\" ~/bin/python; }"}`, http.StatusOK, "Content-Type", asJSON)
	python := "PATH=$HOME/bin:$PATH "
	for _, c := range []struct{ body, stdout string }{
		{"{\n\"command\": \"" + python + "python analyze.py --input data.csv\",\n\"timeout_seconds\": 300\n}", "Analysis complete. 1,234 rows.\n"},
		{"{\n\"command\": \"" + python + "python main.py\"\n}", "Done.\n"},
	} {
		got := ask("POST", at+"/exec", c.body, http.StatusOK, "Content-Type", asJSON)
		if got["exit_code"] != 0.0 || got["stdout"] != c.stdout || got["duration_ms"] == nil {
			t.Errorf("%s: %v", c.body, got)
		}
		if _, ok := got["files_changed"].([]any); !ok {
			t.Errorf("%s: files_changed is %v", c.body, got["files_changed"])
		}
	}
	skill := want[v1.Skill](h, http.StatusCreated, "POST", "/api/v1/skills/upload", zipped(t, map[string]string{"SKILL.md": strings.Replace(skillText, "name: pdf", "name: data-analyzer", 1)}))
	for _, wanted := range []struct{ key, empty string }{{"installed", "already_installed"}, {"already_installed", "installed"}} {
		got := ask("POST", at+"/skills", "{\n\"skill_ids\": [\""+skill.ID+"\"]\n}", http.StatusOK, "Content-Type", asJSON)
		names, _ := got[wanted.key].([]any)
		none, isList := got[wanted.empty].([]any)
		if len(names) != 1 || names[0] != "data-analyzer" || !isList || len(none) != 0 {
			t.Errorf("the skill: %v", got)
		}
	}
	a := h.do("GET", at+"/files?path=/workspace/outputs", nil)
	var files []struct {
		Name, Type string
		Size       int64
	}
	must(t, json.Unmarshal(a.body, &files))
	if len(files) != 2 || files[0].Name != "chart.png" || files[0].Type != "file" || files[0].Size != 45678 || files[1].Name != "report.csv" || files[1].Size != 12345 {
		t.Errorf("listed %s", a.body)
	}
	if a := h.do("GET", at+"/files/data.csv", nil); string(a.body) != "a,b\n\x00\xff1,2\n" {
		t.Errorf("downloaded %q", a.body)
	}
}
