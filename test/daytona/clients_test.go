// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// object is an answer of which some fields are looked at.
type object map[string]any

// get asks for a path as Daytona's command line or MCP server does, and returns the answer.
func (d *door) get(method, path string, body any, header ...string) object {
	d.t.Helper()
	var b []byte
	media := ""
	if body != nil {
		var err error
		if b, err = json.Marshal(body); err != nil {
			d.t.Fatal(err)
		}
		media = js
	}
	status, answer := d.ask(d.token, method, path, media, bytes.NewReader(b), header...)
	var o object
	if len(answer) > 0 {
		if err := json.Unmarshal(answer, &o); err != nil {
			var list []any
			if json.Unmarshal(answer, &list) != nil {
				d.t.Fatalf("%s %s: %d %s", method, path, status, answer)
			}
			o = object{"items": list}
		}
	}
	if o == nil {
		o = object{}
	}
	o["HTTP"] = status
	return o
}

// has fails if fields of an answer are not what they shall be.
func (d *door) has(what string, o object, want object) {
	d.t.Helper()
	for k, v := range want {
		if got := fmt.Sprint(o[k]); got != fmt.Sprint(v) {
			d.t.Errorf("%s: %s is %s, not %v: %v", what, k, got, v, o)
		}
	}
}

// The requests are those that Daytona's command line makes: no registry has the program itself.
func TestWhatTheCommandLineSends(t *testing.T) {
	d := open(t)
	from := []string{"X-Daytona-Source", "cli", "X-Daytona-SDK-Version", "0.205.1"}

	made := d.get("POST", "/sandbox", object{"name": "work", "autoArchiveInterval": 10080, "autoDeleteInterval": -1, "networkBlockAll": false, "spot": false}, from...)
	d.has("create", made, object{"HTTP": 200, "state": "started", "name": "work", "autoDeleteInterval": -1})
	d.has("create: the terminal's address", d.get("GET", "/sandbox/work/ports/22222/preview-url", nil, from...), object{"HTTP": 200, "sandboxId": made["id"]})

	// exec finds the toolbox once for the region, and says nothing of itself to it.
	d.has("exec: the sandbox", d.get("GET", "/sandbox/work", nil, from...), object{"state": "started", "target": made["target"]})
	address := d.get("GET", "/sandbox/work/toolbox-proxy-url", nil, from...)
	d.has("exec: the toolbox", address, object{"HTTP": 200, "url": made["toolboxProxyUrl"]})
	tools := strings.TrimPrefix(fmt.Sprint(address["url"]), d.url) + "/" + fmt.Sprint(made["id"])
	d.has("exec", d.get("POST", tools+"/process/execute", object{"command": "sh -c 'echo out; exit 3'"}), object{"HTTP": 200, "exitCode": 3, "result": "out\n"})
	d.has("exec: --cwd, --timeout", d.get("POST", tools+"/process/execute", object{"command": "pwd", "cwd": "/tmp", "timeout": 10}), object{"exitCode": 0, "result": "/tmp\n"})

	list := d.get("GET", "/sandbox?limit=100&includeErroredDeleted=false&includeWarm=false", nil, from...)
	if items, _ := list["items"].([]any); list["HTTP"] != 200 || len(items) != 1 {
		t.Errorf("list: %v", list)
	}
	signed := d.get("GET", "/sandbox/work/ports/3000/signed-preview-url?expiresInSeconds=3600", nil, from...)
	d.has("preview-url", signed, object{"HTTP": 200, "port": 3000})
	for _, step := range []struct{ verb, state string }{{"stop", "stopped"}, {"start", "started"}, {"pause", "paused"}, {"start", "started"}, {"stop", "stopped"}, {"archive", "archived"}} {
		d.has(step.verb, d.get("POST", "/sandbox/work/"+step.verb, nil, from...), object{"HTTP": 200, "state": step.state})
	}
	d.has("volume create", d.get("POST", "/volumes", object{"name": "data"}, from...), object{"HTTP": 200, "name": "data"})
	volume := d.get("GET", "/volumes/by-name/data", nil, from...)
	d.has("volume get", volume, object{"HTTP": 200, "name": "data"})
	d.has("volume list", d.get("GET", "/volumes", nil, from...), object{"HTTP": 200})
	d.has("volume delete", d.get("DELETE", "/volumes/"+fmt.Sprint(volume["id"]), nil, from...), object{"HTTP": 200})
	d.has("delete", d.get("DELETE", "/sandbox/work", nil, from...), object{"HTTP": 200, "state": "destroyed"})
	d.has("info of what is deleted", d.get("GET", "/sandbox/work", nil, from...), object{"HTTP": 404})
	d.has("snapshot push", d.get("GET", "/docker-registry/registry-push-access", nil, from...), object{"HTTP": 404})
	d.has("login by a browser", d.get("GET", "/config", nil, from...), object{"HTTP": 200})
	d.has("organization list", d.get("GET", "/organizations", nil, from...), object{"HTTP": 404})
}

// The requests are those of Daytona's MCP server, whose create waits for nothing: the next tool is called at once.
func TestWhatTheMCPServerSends(t *testing.T) {
	d := open(t)
	from := []string{"X-Daytona-Source", "daytona-mcp", "X-Daytona-CLI-Version", "0.205.1"}
	id := fmt.Sprint(d.get("POST", "/sandbox", object{"spot": false}, from...)["id"])
	box := d.get("GET", "/sandbox/"+id, nil, from...)
	d.has("execute_command: the sandbox", box, object{"HTTP": 200, "state": "started"})
	tools := strings.TrimPrefix(fmt.Sprint(box["toolboxProxyUrl"]), d.url) + "/" + id
	d.has("execute_command", d.get("POST", tools+"/process/execute", object{"command": `/bin/sh -c "cd /tmp && pwd"`}, from...), object{"HTTP": 200, "exitCode": 0, "result": "/tmp\n"})

	d.has("file_upload: the folder", d.get("POST", tools+"/files/folder?path="+url.QueryEscape("a/b")+"&mode=0755", nil, from...), object{"HTTP": 201})
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	if part, err := w.CreateFormFile("file", "c.txt"); err != nil {
		t.Fatal(err)
	} else if _, err := part.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if status, b := d.ask(d.token, "POST", tools+"/files/upload-v2?path=a/b/c.txt", w.FormDataContentType(), &form, from...); status != http.StatusOK {
		t.Errorf("file_upload: %d %s", status, b)
	}
	if status, b := d.ask(d.token, "GET", tools+"/files/download?path=a/b/c.txt", "", nil, from...); status != http.StatusOK || string(b) != "hello" {
		t.Errorf("file_download: %d %s", status, b)
	}
	d.has("get_file_info", d.get("GET", tools+"/files/info?path=a/b/c.txt", nil, from...), object{"HTTP": 200, "size": 5})
	if files, _ := d.get("GET", tools+"/files?path=a/b", nil, from...)["items"].([]any); len(files) != 1 {
		t.Errorf("list_files: %v", files)
	}
	d.has("move_file", d.get("POST", tools+"/files/move?source=a/b/c.txt&destination=a/d.txt", nil, from...), object{"HTTP": 200})
	d.has("delete_file", d.get("DELETE", tools+"/files?path=a/d.txt", nil, from...), object{"HTTP": 204})

	probe := d.get("POST", tools+"/process/execute", object{"command": "curl -s -o /dev/null -w '%{http_code}' http://localhost:3000 --max-time 2"}, from...)
	d.has("preview_link: the probe", probe, object{"HTTP": 200, "result": "000"})
	d.has("preview_link", d.get("GET", "/sandbox/"+id+"/ports/3000/preview-url", nil, from...), object{"HTTP": 200, "sandboxId": id})
	d.has("git_clone of nothing", d.get("POST", tools+"/git/clone", object{"url": "http://127.0.0.1:9/x.git", "path": "x"}, from...), object{"code": "GIT_TRANSPORT_FAILED"})
	d.has("computer_use_start", d.get("POST", tools+"/computeruse/start", nil, from...), object{"HTTP": 503})
	d.has("destroy_sandbox", d.get("DELETE", "/sandbox/"+id, nil, from...), object{"HTTP": 200, "state": "destroyed"})
}
